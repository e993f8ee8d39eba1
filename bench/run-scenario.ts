/** Runs one scenario: a child process for each contender, all of them warm, which take turns slice by slice. */

import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Contender, ContenderId, Scenario } from "./scenarios.ts";
import type { Slice } from "./statistics.ts";

/** Where the servers are. */
export interface Targets {
  readonly httpUrl: string;
  readonly stdioCommand: { readonly command: string; readonly args: readonly string[] };
}

export interface RunOptions {
  readonly rounds: number;
  /** How many times over the processes are new ones. */
  readonly generations: number;
  /** A build in another directory to measure beside this one. */
  readonly against: string | undefined;
}

/** The slices of each contender, in the order of the rounds; a text says why there are none. */
export type Measured = Map<ContenderId, readonly Slice[] | string>;

/**
 * A nearly empty heap is collected, and its pages are given back, at times that differ from process to process and have
 * nothing to do with who made the garbage. Large results are therefore read in a heap of the size a host may well have.
 */
const LARGE_HEAP = ["--initial-old-space-size=512"];

const HERE = new URL("./", import.meta.url);

/**
 * Measures the contenders of one scenario in interleaved slices, over several generations of processes: one process may
 * have its code and its data better placed in memory than another, for as long as it lives.
 */
export async function runScenario(
  scenario: Scenario,
  contenders: readonly Contender[],
  targets: Targets,
  options: RunOptions,
): Promise<Measured> {
  const measured: Measured = new Map();
  for (const { id } of contenders) {
    const reason = scenario.without?.[id];
    if (reason !== undefined) measured.set(id, reason);
  }
  const generations = scenario.megabytes === undefined ? options.generations : 1;
  for (let generation = 0; generation < generations; generation++) {
    // Peers are so far away that one generation tells enough of them.
    const taking = contenders.filter(
      ({ id, package: peer }) =>
        typeof measured.get(id) !== "string" && (generation === 0 || peer === undefined),
    );
    const runners = taking.map(
      (contender) => new Runner(contender, scenario, targetOf(scenario, targets), options),
    );
    try {
      await takeTurns(runners, scenario, Math.ceil(options.rounds / generations), measured);
    } finally {
      await Promise.all(runners.map((runner) => runner.close()));
    }
  }
  return measured;
}

/** Runs one generation, and adds its slices to what was measured; a contender that fails has a text in their place. */
async function takeTurns(
  runners: readonly Runner[],
  scenario: Scenario,
  rounds: number,
  measured: Measured,
): Promise<void> {
  const live = new Set(runners);
  const failed = (runner: Runner, error: unknown) => {
    live.delete(runner);
    measured.set(runner.contender.id, (error as Error).message);
  };
  for (const runner of runners) await runner.ready().catch((error) => failed(runner, error));
  const slices = new Map<Runner, Slice[]>([...live].map((runner) => [runner, []]));
  for (let round = -WARM_UPS; round < rounds; round++) {
    // Every other round goes backwards, so that no contender always follows the same one.
    const order = round % 2 === 0 ? [...live] : [...live].reverse();
    for (const runner of order) {
      try {
        const slice = await runner.run(operationsOf(scenario, runner.contender, round < 0));
        if (round >= 0) slices.get(runner)!.push(slice);
        if (hasEnough(runner.contender, slices.get(runner)!)) live.delete(runner);
      } catch (error) {
        slices.delete(runner);
        failed(runner, error);
      }
    }
  }
  for (const [{ contender }, own] of slices) {
    const before = measured.get(contender.id);
    measured.set(contender.id, typeof before === "object" ? [...before, ...own] : own);
  }
}

/** Runs whose figures are thrown away: compilers and connections warm up in them. */
const WARM_UPS = 1;
/** A warm-up is so many times as long as a slice: it takes a compiler some thousand calls to come to its last step. */
const WARM_UP_FACTOR = 4;
/** A peer takes several times as long for a call, so a part of a slice has to do; but it warms up as the others do. */
const PEER_SHARE = 0.25;

/** The operations of one slice. */
function operationsOf(
  { operations, concurrency = 1, megabytes }: Scenario,
  { package: peer }: Contender,
  isWarmUp: boolean,
): number {
  let wanted = operations * (peer === undefined ? 1 : PEER_SHARE);
  if (isWarmUp && megabytes === undefined) wanted = operations * WARM_UP_FACTOR;
  return Math.max(1, Math.round(wanted / concurrency)) * concurrency;
}

const FEWEST_RUNS = 7;
const FEWEST_PEER_RUNS = 3;
const ENOUGH_MS = 4000;

/** A contender that takes very long for a slice has fewer of them. */
function hasEnough({ package: peer }: Contender, slices: readonly Slice[]): boolean {
  const spentMs = slices.reduce((sum, { wallUs, count }) => sum + (wallUs * count) / 1000, 0);
  return spentMs > ENOUGH_MS && slices.length >= (peer === undefined ? FEWEST_RUNS : FEWEST_PEER_RUNS);
}

/** What a contender is given to reach the servers. */
export function targetOf({ transport }: Scenario, targets: Targets): unknown {
  switch (transport) {
    case "memory":
      return {};
    case "http-json":
      return { url: `${targets.httpUrl}/json` };
    case "http-sse":
      return { url: `${targets.httpUrl}/sse` };
    case "stdio":
      return { command: targets.stdioCommand };
    case "websocket":
      return { url: `${targets.httpUrl.replace("http", "ws")}/` };
  }
}

type Reply = { readonly ready: true } | { readonly slice: Slice } | { readonly error: string };

/** A contender that needs longer for a slice is given up; its report says so. */
const SLICE_MS = 12_000;

/** One child process. */
class Runner {
  readonly contender: Contender;
  readonly #child: ChildProcess;
  #stderr = "";
  #waiting: ((reply: Reply) => void) | undefined;
  readonly #first: Promise<Reply>;

  constructor(contender: Contender, scenario: Scenario, target: unknown, { against }: RunOptions) {
    this.contender = contender;
    const args = [new URL(contender.file, HERE).href, JSON.stringify(scenario), JSON.stringify(target)];
    this.#child = fork(fileURLToPath(new URL("child.mjs", HERE)), args, {
      // Whatever runs this program, a TypeScript loader for one, must not run in what it measures.
      execArgv: scenario.megabytes === undefined ? [] : LARGE_HEAP,
      env: {
        ...process.env,
        NODE_OPTIONS: "",
        ...(contender.id === "before" && { RALLY_DIR: against }),
      },
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#child.stderr!.on("data", (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString()).slice(-2000);
    });
    this.#child.on("message", (reply: Reply) => this.#tell(reply));
    this.#child.on("exit", () => this.#tell({ error: this.#stderr.trim() || "the process ended" }));
    this.#first = this.#next();
  }

  async ready(): Promise<void> {
    const reply = await this.#first;
    if ("error" in reply) throw new Error(reply.error);
  }

  async run(operations: number): Promise<Slice> {
    const reply = this.#next();
    this.#child.send({ run: operations });
    const got = await reply;
    if ("slice" in got) return got.slice;
    throw new Error("error" in got ? got.error : "an unexpected reply");
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = new Promise((resolve) => this.#child.once("exit", resolve));
    if (this.#child.connected) this.#child.send({ close: true });
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), 3000);
    await exited;
    clearTimeout(timer);
  }

  #next(): Promise<Reply> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#child.kill("SIGKILL");
        this.#waiting?.({ error: `more than ${SLICE_MS / 1000} s` });
      }, SLICE_MS);
      this.#waiting = (reply) => {
        clearTimeout(timer);
        this.#waiting = undefined;
        resolve(reply);
      };
    });
  }

  #tell(reply: Reply): void {
    this.#waiting?.(reply);
  }
}
