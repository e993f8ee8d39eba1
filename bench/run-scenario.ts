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

/** Measures the contenders of one scenario in interleaved slices. */
export async function runScenario(
  scenario: Scenario,
  contenders: readonly Contender[],
  targets: Targets,
  options: RunOptions,
): Promise<Measured> {
  const measured: Measured = new Map();
  const runners: Runner[] = [];
  for (const contender of contenders) {
    const reason = scenario.without?.[contender.id];
    if (reason !== undefined) measured.set(contender.id, reason);
    else runners.push(new Runner(contender, scenario, targetOf(scenario, targets), options));
  }
  const live = new Set<Runner>();
  const done = new Set<Runner>();
  for (const runner of runners) {
    try {
      await runner.ready();
      live.add(runner);
    } catch (error) {
      measured.set(runner.contender.id, (error as Error).message);
    }
  }
  const slices = new Map<Runner, Slice[]>();
  const spentMs = new Map<Runner, number>();
  for (let round = -WARM_UPS; round < options.rounds; round++) {
    // Every other round goes backwards, so that no contender always follows the same one.
    const order = round % 2 === 0 ? [...live] : [...live].reverse();
    for (const runner of order) {
      const startedAt = performance.now();
      try {
        const slice = await runner.run(operationsOf(scenario, runner.contender, round < 0));
        if (round < 0) continue;
        const list = slices.get(runner) ?? [];
        list.push(slice);
        slices.set(runner, list);
        const spent = (spentMs.get(runner) ?? 0) + performance.now() - startedAt;
        spentMs.set(runner, spent);
        if (hasEnough(runner.contender, list.length, spent)) done.add(runner);
      } catch (error) {
        live.delete(runner);
        measured.set(runner.contender.id, (error as Error).message);
      }
    }
    for (const runner of done) live.delete(runner);
  }
  for (const runner of [...live, ...done]) measured.set(runner.contender.id, slices.get(runner) ?? []);
  await Promise.all(runners.map((runner) => runner.close()));
  return measured;
}

/** Runs whose figures are thrown away: compilers and connections warm up in them. */
const WARM_UPS = 2;
/** In a warm-up each operation is made this often: so many calls take a compiler's last step. */
const WARM_UP_FACTOR = 3;

/** The operations of one slice. A peer takes several times as long, so a part of them has to do. */
function operationsOf(
  { operations, concurrency = 1, megabytes }: Scenario,
  { package: peer }: Contender,
  isWarmUp: boolean,
): number {
  const factor = isWarmUp && megabytes === undefined ? WARM_UP_FACTOR : 1;
  const wanted = operations * factor * (peer === undefined ? 1 : 0.25);
  return Math.max(1, Math.round(wanted / concurrency)) * concurrency;
}

const FEWEST_RUNS = 7;
const FEWEST_PEER_RUNS = 3;
const ENOUGH_MS = 4000;

/** A contender that takes very long for a slice has fewer of them. */
function hasEnough({ package: peer }: Contender, runs: number, spentMs: number): boolean {
  return spentMs > ENOUGH_MS && runs >= (peer === undefined ? FEWEST_RUNS : FEWEST_PEER_RUNS);
}

function targetOf({ transport }: Scenario, targets: Targets): unknown {
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
