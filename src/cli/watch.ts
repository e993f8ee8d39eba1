/** What is told on stderr while a call runs: the trace, the progress, the server's log, and warnings. */

import type { CallOptions } from "../client-options.ts";
import type { RallyEvent } from "../events.ts";
import type { Progress } from "../pending.ts";
import type { Arguments } from "./arguments.ts";
import type { CliIo } from "./io.ts";
import type { Output } from "./output.ts";
import { ProgressBar } from "./progress-bar.ts";
import { clipLine } from "./sanitise.ts";

/** Watches one client. */
export interface Watch {
  readonly onEvent: (event: RallyEvent) => void;
  /** The callbacks of every call. */
  readonly callbacks: Pick<CallOptions, "onProgress" | "onLog">;
  /** What a started server writes to stderr; undefined when no one wants to see it. */
  readonly onStderr: ((text: string) => void) | undefined;
  /** Takes away what is drawn. */
  end(): void;
}

/** Makes a watch as the options ask. */
export function watch(args: Arguments, io: CliIo, output: Output): Watch {
  const trace = args.has("trace");
  const bar = io.stderr.isTTY === true && !trace ? new ProgressBar(io.stderr) : undefined;
  output.beforeWrite = () => bar?.clear();
  const onProgress =
    bar !== undefined
      ? (progress: Progress) => bar.update(progress)
      : trace
        ? (progress: Progress) => output.note(progressText(progress))
        : undefined;
  return {
    onEvent(event) {
      if (event.type === "attempt.ended" && trace) output.note(attemptText(event));
      const warning = warningText(event);
      if (warning !== undefined) output.note(`mcp-rally: warning: ${warning}`);
      if (event.type === "operation.ended" || event.type === "input.requested") bar?.clear();
    },
    callbacks: {
      ...(onProgress !== undefined && { onProgress }),
      onLog: ({ level, logger, data }) => {
        const text = typeof data === "string" ? data : (JSON.stringify(data) ?? "");
        output.note(
          `log ${clipLine(level, 20)}${logger === undefined ? "" : ` ${clipLine(logger, 60)}`}: ${clipLine(text, 2000)}`,
        );
      },
    },
    onStderr: args.has("debug") ? lineWriter((line) => output.note(`server: ${line}`)) : undefined,
    end() {
      bar?.clear();
    },
  };
}

/** `trace op=1 tools/call round=1 attempt=1 id=2 complete 12.3ms` */
function attemptText(event: Extract<RallyEvent, { type: "attempt.ended" }>): string {
  const { operationId, method, round, attempt, wireId, outcome, ms, rpcCode, code, delivery } = event;
  const why = [
    rpcCode !== undefined && `code=${rpcCode}`,
    code !== undefined && `code=${code}`,
    delivery !== undefined && `delivery=${delivery}`,
  ].filter(Boolean);
  return [
    "trace",
    `op=${operationId}`,
    method,
    `round=${round}`,
    `attempt=${attempt}`,
    `id=${wireId}`,
    outcome,
    ...why,
    `${ms.toFixed(1)}ms`,
  ].join(" ");
}

function progressText({ progress, total, message, round, attempt }: Progress): string {
  const of = total === undefined ? "" : `/${total}`;
  const text = message === undefined ? "" : ` ${clipLine(message, 200)}`;
  return `progress round=${round} attempt=${attempt} ${progress}${of}${text}`;
}

function warningText(event: RallyEvent): string | undefined {
  if (event.type === "list.stopped") return `the list is not complete: ${event.reason}`;
  if (event.type === "tool.rejected")
    return `the tool ${clipLine(event.tool, 80)} is left out: ${event.reason}`;
  return undefined;
}

/** Cuts text that comes in pieces into lines. */
function lineWriter(write: (line: string) => void): (text: string) => void {
  let rest = "";
  return (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!.slice(-4096);
    for (const line of lines) write(line);
  };
}
