/** Progress and log entries: what a server says about a call while it runs (PRG-01, LOG-01). */

import { callHost } from "./events.ts";
import type { Attempt, LogEntry, PendingOperation, Progress } from "./pending.ts";
import type { AnomalyKind, NotificationFrame } from "./transport.ts";

/** An object that is still being put together. */
type Writable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * Reads a `notifications/progress` of an attempt; in place of a report, which anomaly it is: a token that was not given out,
 * or progress that does not grow.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress}
 */
export function readProgress(
  frame: NotificationFrame,
  attempt: Attempt,
  isAsked: boolean,
): Progress | Extract<AnomalyKind, "unknown-token" | "progress-order"> {
  const { progressToken, progress, total, message } = frame.params ?? {};
  if (!isAsked || progressToken !== attempt.wireId) return "unknown-token";
  if (typeof progress !== "number" || !(progress > attempt.lastProgress)) return "progress-order";
  const report: Writable<Progress> = { progress, round: attempt.round, attempt: attempt.number };
  if (typeof total === "number") report.total = total;
  if (typeof message === "string") report.message = message;
  return report;
}

/** Hands a `notifications/message` to the listener that wants it, if any. */
export function tellLogEntry(
  frame: NotificationFrame,
  listener: ((entry: LogEntry) => void) | undefined,
): void {
  if (listener !== undefined) callHost(listener, readLogEntry(frame));
}

/** Reads a `notifications/message`. A level that is no string is taken for "info". */
function readLogEntry(frame: NotificationFrame): LogEntry {
  const { level, logger, data } = frame.params ?? {};
  return {
    level: typeof level === "string" ? level : "info",
    ...(typeof logger === "string" && { logger }),
    data,
  };
}

/** A shared channel does not tell whose a log entry is: the one operation that wants any, or nobody's (LOG-01). */
export function onlyLogger(operations: Iterable<PendingOperation>): ((entry: LogEntry) => void) | undefined {
  let only: PendingOperation | undefined;
  for (const operation of operations) {
    if (operation.spec.logLevel === undefined) continue;
    if (only !== undefined) return undefined;
    only = operation;
  }
  return only?.spec.onLog;
}
