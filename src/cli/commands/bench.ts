/** `mcp-rally bench`: how long the calls of one tool take, and where the time goes. */

import type { Client } from "../../client.ts";
import type { CallOptions } from "../../client-options.ts";
import { RallyError } from "../../errors.ts";
import type { CallToolResult } from "../../mcp-types.ts";
import type { JsonObject } from "../../wire.ts";
import type { Arguments } from "../arguments.ts";
import { answering } from "../ask-call.ts";
import { createAsker } from "../asker.ts";
import {
  type Bucket,
  type Percentiles,
  percentiles,
  type RoundFigures,
  roundFigures,
} from "../bench-figures.ts";
import { type RoundTimes, Timelines } from "../bench-timeline.ts";
import { type Command, type CommandContext, TARGET } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { withClient } from "../open-client.ts";
import { INPUT_OPTIONS, SERVER_OPTIONS } from "../options.ts";
import type { Output } from "../output.ts";
import { ProgressBar } from "../progress-bar.ts";
import { clipLine } from "../sanitise.ts";
import { CommandLineError } from "../usage.ts";
import { readToolArguments } from "../values.ts";

const SECONDS = 5;
const CALLS = 1000;
const WARM_UP = 5;
/** Round trips to `server/discover`, before the calls and after them. */
const PROBES = 5;
/** So many failures without a success between them, and the server is left alone. */
const FAILURES_IN_A_ROW = 10;
const BAR_MS = 100;
const HISTOGRAM_CELLS = 40;

export const benchCommand: Command = {
  name: "bench",
  summary: "Measure how long calls of a tool take, round by round",
  positionals: [TARGET],
  options: {
    tool: { takes: "NAME", help: "The tool to call; the bench calls it again and again" },
    args: { takes: "JSON", help: "The tool's arguments as a JSON object; @FILE or @- reads it" },
    arg: { takes: "NAME=VALUE", multiple: true, help: "One argument, laid over --args" },
    seconds: { takes: "N", help: `How long to go on; default ${SECONDS}` },
    calls: { takes: "N", help: `The most calls to measure; default ${CALLS}` },
    concurrency: { takes: "N", help: "Calls at a time; default 1" },
    "warm-up": { takes: "N", help: `Calls beforehand that do not count; default ${WARM_UP}` },
    answer: INPUT_OPTIONS.answer!,
    decline: INPUT_OPTIONS.decline!,
    root: INPUT_OPTIONS.root!,
    ...SERVER_OPTIONS,
    reissue: {
      takes: "always|safe|never",
      help: "Send a request again whose answer was lost; default never",
    },
  },
  notes: [
    `The tool really runs, each time: bench a tool that may run a thousand times. Nothing is sent again that was lost,
unless --reissue says so. It ends after ${FAILURES_IN_A_ROW} failures in a row.`,
    `wire and server are estimates: a server/discover, measured before and after, stands for the wire, and what a call
takes beyond it for the server. The engine's part is measured: from the call to its request leaving, and from the
answer to its result.`,
  ],
  examples: [
    "bench https://example.com/mcp --tool echo --arg text=hello",
    "bench --tool echo --seconds 10 --concurrency 8 --json -- node server.mjs",
  ],
  async run(context) {
    const plan = await readPlan(context);
    const asker = await createAsker(context, { suspends: false, prompts: false });
    return answering(context, asker, `the tool ${clipLine(plan.tool, 80)}`, async () => {
      const measured = await withClient(context, asker.handlers(), (client, options) =>
        measure(client, options, plan, context),
      );
      const report = reportOf(plan, measured);
      if (context.output.json) context.output.document(report);
      else printReport(report, context.output);
      return measured.calls.length > 0 && measured.toolErrors === measured.calls.length
        ? EXIT.toolError
        : EXIT.done;
    });
  },
};

interface Plan {
  readonly tool: string;
  readonly args: JsonObject | undefined;
  readonly seconds: number;
  readonly calls: number;
  readonly concurrency: number;
  readonly warmUp: number;
}

async function readPlan({ args, io }: CommandContext): Promise<Plan> {
  const tool = args.text("tool");
  if (tool === undefined) {
    throw new CommandLineError("bench needs --tool NAME: it calls no tool that was not named", {
      path: "--tool",
    });
  }
  return {
    tool,
    args: await readToolArguments(args, io),
    seconds: readAtLeastOne(args, "seconds", SECONDS),
    calls: readAtLeastOne(args, "calls", CALLS),
    concurrency: readAtLeastOne(args, "concurrency", 1),
    warmUp: args.count("warm-up") ?? WARM_UP,
  };
}

function readAtLeastOne(args: Arguments, name: string, fallback: number): number {
  const count = args.count(name) ?? fallback;
  if (count === 0) throw new CommandLineError(`--${name} must be at least 1`, { path: `--${name}` });
  return count;
}

/** One call that succeeded. */
interface MeasuredCall {
  readonly ms: number;
  readonly rounds: readonly RoundTimes[];
}

interface Measured {
  readonly calls: readonly MeasuredCall[];
  readonly toolErrors: number;
  /** How often each error code came. */
  readonly failures: Readonly<Record<string, number>>;
  /** How long the calls went on. */
  readonly ms: number;
  /** CPU of this process for each call. */
  readonly cpuMs: number;
  /** The median round trip of `server/discover`; undefined where the server has none. */
  readonly roundTripMs: number | undefined;
}

async function measure(
  client: Client,
  shared: CallOptions,
  plan: Plan,
  { output, io, signal }: CommandContext,
): Promise<Measured> {
  // A lost call that is sent again would count as one slow call, and load the server twice.
  const { onProgress: _, ...rest } = shared;
  const options: CallOptions = { ...rest, reissue: shared.reissue ?? "never" };
  const call = () => client.callTool(plan.tool, plan.args, options);
  const bar = io.stderr.isTTY === true && !output.json ? new ProgressBar(io.stderr) : undefined;
  const timelines = new Timelines();
  try {
    for (let done = 0; done < plan.warmUp; done++) await call();
    const before = await probe(client, options);
    const load = new Load(plan, () => timelines.measure<CallToolResult>(call), signal, bar);
    const cpu = process.cpuUsage();
    const startedAt = performance.now();
    await load.run();
    const ms = performance.now() - startedAt;
    const { user, system } = process.cpuUsage(cpu);
    const roundTrips = [...before, ...(await probe(client, options))];
    return {
      calls: load.calls,
      toolErrors: load.toolErrors,
      failures: load.failures,
      ms,
      cpuMs: (user + system) / 1000 / Math.max(1, load.calls.length),
      roundTripMs: roundTrips.length === 0 ? undefined : percentiles(roundTrips).p50,
    };
  } finally {
    bar?.clear();
    timelines.end();
  }
}

async function probe(client: Client, options: CallOptions): Promise<readonly number[]> {
  const times: number[] = [];
  for (let done = 0; done < PROBES; done++) {
    const startedAt = performance.now();
    try {
      await client.discover({ ...options, cache: "bypass" });
    } catch (error) {
      // It only helps to tell the wire from the server.
      if (!RallyError.is(error) || error.code === "cancelled") throw error;
      return times;
    }
    times.push(performance.now() - startedAt);
  }
  return times;
}

type MeasuredResult = MeasuredCall & { readonly value: CallToolResult };

/** Calls, at most so many at a time, until the time or the calls are used up. */
class Load {
  readonly calls: MeasuredCall[] = [];
  toolErrors = 0;
  readonly failures: Record<string, number> = {};
  readonly #plan: Plan;
  readonly #call: () => Promise<MeasuredResult>;
  readonly #signal: AbortSignal;
  readonly #bar: ProgressBar | undefined;
  #startedAt = 0;
  #begun = 0;
  #failuresInARow = 0;
  #lastError: unknown;

  constructor(
    plan: Plan,
    call: () => Promise<MeasuredResult>,
    signal: AbortSignal,
    bar: ProgressBar | undefined,
  ) {
    this.#plan = plan;
    this.#call = call;
    this.#signal = signal;
    this.#bar = bar;
  }

  /** @throws what a call failed with, when none succeeded or too many failed in a row */
  async run(): Promise<void> {
    this.#startedAt = performance.now();
    const redraw = this.#bar && setInterval(() => this.#draw(), BAR_MS);
    try {
      await Promise.all(Array.from({ length: this.#plan.concurrency }, () => this.#work()));
    } finally {
      clearInterval(redraw);
    }
    if (this.calls.length === 0 || this.#isHopeless) throw this.#lastError;
  }

  async #work(): Promise<void> {
    while (this.#goesOn()) {
      this.#begun++;
      try {
        const { value, ms, rounds } = await this.#call();
        this.calls.push({ ms, rounds });
        if (value.isError === true) this.toolErrors++;
        this.#failuresInARow = 0;
      } catch (error) {
        if (this.#signal.aborted) throw error;
        this.#failed(error);
      }
    }
  }

  #goesOn(): boolean {
    if (this.#signal.aborted || this.#isHopeless || this.#begun >= this.#plan.calls) return false;
    return performance.now() - this.#startedAt < this.#plan.seconds * 1000;
  }

  get #isHopeless(): boolean {
    return this.#failuresInARow >= FAILURES_IN_A_ROW;
  }

  #failed(error: unknown): void {
    this.#lastError = error;
    this.#failuresInARow++;
    const code = RallyError.is(error) ? error.code : "internal";
    this.failures[code] = (this.failures[code] ?? 0) + 1;
  }

  #draw(): void {
    const { seconds, calls } = this.#plan;
    const done = this.calls.length;
    const share = Math.max((performance.now() - this.#startedAt) / 1000 / seconds, this.#begun / calls);
    this.#bar?.update({
      progress: Math.min(0.999, share),
      total: 1,
      message: `${done} calls`,
      round: 1,
      attempt: 1,
    });
  }
}

/** What `--json` prints; times are milliseconds. */
interface BenchReport {
  readonly tool: string;
  readonly concurrency: number;
  readonly seconds: number;
  readonly calls: number;
  readonly callsPerSecond: number;
  readonly toolErrors: number;
  readonly failures: Readonly<Record<string, number>>;
  readonly callMs: Percentiles;
  readonly cpuMs: number;
  readonly roundTripMs?: number;
  readonly rounds: readonly RoundFigures[];
}

function reportOf({ tool, concurrency }: Plan, measured: Measured): BenchReport {
  const { calls, toolErrors, failures, ms, cpuMs, roundTripMs } = measured;
  return {
    tool,
    concurrency,
    seconds: ms / 1000,
    calls: calls.length,
    callsPerSecond: (calls.length * 1000) / ms,
    toolErrors,
    failures,
    callMs: percentiles(calls.map((call) => call.ms)),
    cpuMs,
    ...(roundTripMs !== undefined && { roundTripMs }),
    rounds: roundFigures(
      calls.map(({ rounds }) => rounds),
      roundTripMs,
    ),
  };
}

function printReport(report: BenchReport, output: Output): void {
  const { tool, calls, seconds, callsPerSecond, concurrency, callMs, cpuMs, rounds } = report;
  output.line(
    `${clipLine(tool, 80)}: ${calls} calls in ${seconds.toFixed(1)} s, ${callsPerSecond.toFixed(1)} a second, ${concurrency} at a time`,
  );
  if (report.toolErrors > 0) output.line(`the tool said isError ${report.toolErrors} times`);
  for (const [code, count] of Object.entries(report.failures)) output.line(`failed with ${code}: ${count}`);
  output.line(line("call", callMs));
  output.line(`${"cpu here".padEnd(NAME)}${ms(cpuMs)} a call`);
  for (const round of rounds) {
    output.line("");
    output.line(`round ${round.round}: ${round.calls} calls`);
    output.line(line("exchange", round.exchangeMs));
    if (round.wireMs !== undefined) output.line(`${"  wire, about".padEnd(NAME)}p50 ${ms(round.wireMs)}`);
    if (round.serverMs !== undefined)
      output.line(`${"  server, about".padEnd(NAME)}p50 ${ms(round.serverMs)}`);
    if (round.inputMs !== undefined) output.line(line("inputs", round.inputMs));
    if (round.pauseMs !== undefined) output.line(line("pause", round.pauseMs));
    output.line(line("engine", round.engineMs));
    for (const text of bars(round.histogram)) output.line(text);
  }
}

const NAME = 17;

function line(name: string, { p50, p90, p99, min, max }: Percentiles): string {
  return `${name.padEnd(NAME)}p50 ${ms(p50)}  p90 ${ms(p90)}  p99 ${ms(p99)}  (${ms(min).trim()} to ${ms(max).trim()})`;
}

/** Milliseconds with about three digits: an engine's part is microseconds, a slow tool's is minutes. */
function ms(value: number): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3;
  return `${value.toFixed(digits).padStart(7)} ms`;
}

function bars(histogram: readonly Bucket[]): string[] {
  const most = Math.max(...histogram.map(({ count }) => count));
  return histogram.map(({ toMs, count }) => {
    const bar = "#".repeat(Math.ceil((count / most) * HISTOGRAM_CELLS));
    return `  up to ${String(toMs).padStart(7)} ms ${String(count).padStart(6)} ${bar}`.trimEnd();
  });
}
