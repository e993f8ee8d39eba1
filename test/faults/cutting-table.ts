/** Tries every cut of an operation, many lanes at once, and tells which of them broke a rule. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Transport } from "../../src/transport.ts";
import type { Cut, CuttingProxy } from "./cutting-proxy.ts";
import { faultsOf, runThreeRounds, type ThreeRounds } from "./three-rounds.ts";

/** One way to the peer, with a proxy of its own. */
export interface Lane {
  readonly proxy: CuttingProxy;
  /** A new transport through the proxy. */
  connect(): Transport;
}

/** A peer for operations of three rounds, and the lanes to it. */
export interface CutRig {
  readonly peer: ThreeRounds;
  readonly lanes: readonly Lane[];
  /** Throws when anything was left open. */
  close(): Promise<void>;
}

/** Which cuts are tried. */
export interface CutOptions {
  readonly start: () => Promise<CutRig>;
  /** Default: both. */
  readonly directions?: readonly Cut["direction"][];
  /** Only every n-th offset. Default 1: all of them. */
  readonly every?: number;
}

type Policy = "always" | "never";

/** What came of the cuts under one policy. */
interface CutReport {
  readonly tried: number;
  /** How many operations ended in the right result. */
  readonly succeeded: number;
  readonly attempts: number;
  /** A line for each rule that was broken. */
  readonly faults: readonly string[];
}

const TABLE_MS = 300_000;
const SOCKETS_GRACE_MS = 5000;
/** "always" is tried at every offset; "never", which ends at the cut, at every third: what it shows changes slowly. */
const NEVER_STEP = 3;
/** More than one cut can cost, so that it is never the budget that ends an operation. */
const BUDGET = 8;

/** Registers the tests of one binding: the whole table once for each policy. */
export function describeCuts(binding: string, options: CutOptions): void {
  describe(`${binding}, cut everywhere`, () => {
    let rig: CutRig;
    beforeAll(async () => {
      rig = await options.start();
    });
    afterAll(() => rig.close());

    async function table(policy: Policy): Promise<CutReport> {
      const startedAt = performance.now();
      const report = await cutEverywhere(rig, options, policy);
      const { tried, succeeded, attempts, faults } = report;
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
      console.log(
        `${binding}, reissue "${policy}": ${tried} cuts, ${succeeded} right results, ${tried - succeeded} errors, ` +
          `${attempts} attempts, ${faults.length} faults, ${seconds} s`,
      );
      expect(faults.slice(0, 20)).toEqual([]);
      return report;
    }

    it("MRTR-18 always: whatever is lost, the operation ends in the right result", {
      timeout: TABLE_MS,
    }, async () => {
      const { tried, succeeded } = await table("always");
      expect(succeeded).toBe(tried);
    });

    it("MRTR-18 never: what may have run is not issued again, and the error says so", {
      timeout: TABLE_MS,
    }, async () => {
      const { tried, succeeded } = await table("never");
      expect(succeeded).toBeLessThan(tried);
    });
  });
}

/** Runs the operation once uncut to learn its length, then once for each offset. */
async function cutEverywhere(rig: CutRig, options: CutOptions, policy: Policy): Promise<CutReport> {
  const { directions = ["up", "down"], every = 1 } = options;
  const { faults, passed } = await tryCut(rig, rig.lanes[0]!, policy, undefined);
  const cuts: Cut[] = [];
  const step = policy === "always" ? every : every * NEVER_STEP;
  for (const direction of directions) {
    for (let n = 0; n * step <= passed[direction]; n++) {
      // Odd steps: so each way to cut meets every part of the exchange, under either policy.
      cuts.push({ direction, offset: n * step, how: n % 2 === 0 ? "end" : "reset" });
    }
  }
  let next = 0;
  let succeeded = 0;
  let attempts = 0;
  async function work(lane: Lane): Promise<void> {
    while (next < cuts.length) {
      const cut = cuts[next++]!;
      const tried = await tryCut(rig, lane, policy, cut);
      if (tried.succeeded) succeeded++;
      attempts += tried.attempts;
      for (const fault of tried.faults) faults.push(`${cut.direction} ${cut.offset} ${cut.how}: ${fault}`);
    }
  }
  await Promise.all(rig.lanes.map(work));
  return { tried: cuts.length, succeeded, attempts, faults: [...faults, ...rig.peer.faults] };
}

let operations = 0;

async function tryCut(rig: CutRig, { proxy, connect }: Lane, policy: Policy, cut: Cut | undefined) {
  proxy.plan(cut);
  const marker = `m${String(++operations).padStart(6, "0")}`;
  const observed = await runThreeRounds(connect(), marker, {
    reissue: { policy, max: BUDGET, backoffMs: 0 },
  });
  const left = await proxy.drain(SOCKETS_GRACE_MS);
  const faults = faultsOf(observed, rig.peer.ran(marker), policy);
  if (left > 0) faults.push(`${left} socket(s) were left open`);
  if (cut !== undefined && !proxy.fired) faults.push("the operation ended before it was cut");
  return {
    faults,
    passed: { ...proxy.passed },
    attempts: observed.events.filter(({ type }) => type === "attempt.sent").length,
    succeeded: observed.error === undefined,
  };
}
