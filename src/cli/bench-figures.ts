/** Sums measured calls up: percentiles, histograms, and what of a round was the wire and what the server. */

import type { RoundTimes } from "./bench-timeline.ts";

/** Milliseconds. */
export interface Percentiles {
  readonly min: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** How many values were at most `toMs`, and more than the bucket before. */
export interface Bucket {
  readonly toMs: number;
  readonly count: number;
}

/** All calls' times in one round. */
export interface RoundFigures {
  readonly round: number;
  readonly calls: number;
  /** From the request leaving the engine to its answer coming back: wire and server. */
  readonly exchangeMs: Percentiles;
  /** An estimate: what a `server/discover` takes, which asks the server for next to nothing. Absent where that failed. */
  readonly wireMs?: number;
  /** An estimate: what the exchange took beyond that, at the median. */
  readonly serverMs?: number;
  readonly engineMs: Percentiles;
  /** Only where something was asked. */
  readonly inputMs?: Percentiles;
  /** Only where the protocol makes the client wait before the round. */
  readonly pauseMs?: Percentiles;
  readonly histogram: readonly Bucket[];
}

/** The percentiles of some values; there must be one at least. */
export function percentiles(values: readonly number[]): Percentiles {
  const sorted = values.toSorted((left, right) => left - right);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)]!;
  return { min: sorted[0]!, p50: at(0.5), p90: at(0.9), p99: at(0.99), max: sorted.at(-1)! };
}

const STEPS = [1, 2, 5];

/** Below a microsecond nothing is told apart. */
const FINEST_MS = 1e-3;

/** Buckets that end at 1, 2 and 5 times the powers of ten, from the one that holds the least value to the greatest. */
export function histogram(values: readonly number[]): readonly Bucket[] {
  const [least, greatest] = bounds(values);
  const buckets: { toMs: number; count: number }[] = [];
  for (let power = Math.floor(Math.log10(least)), last = 0; last < greatest; power++) {
    for (const step of STEPS) {
      const toMs = Number((step * 10 ** power).toPrecision(1));
      if (toMs < least || last >= greatest) continue;
      buckets.push({ toMs, count: 0 });
      last = toMs;
    }
  }
  for (const value of values) buckets.find(({ toMs }) => value <= toMs)!.count++;
  return buckets;
}

/** The least and the greatest: a spread of many thousand values is more than a call can take. */
function bounds(values: readonly number[]): [number, number] {
  let least = Number.POSITIVE_INFINITY;
  let greatest = FINEST_MS;
  for (const value of values) {
    if (value < least) least = value;
    if (value > greatest) greatest = value;
  }
  return [Math.max(least, FINEST_MS), greatest];
}

/** Figures of each round; `roundTripMs` is the time of a round trip that asks for nothing, where it is known. */
export function roundFigures(
  calls: readonly (readonly RoundTimes[])[],
  roundTripMs: number | undefined,
): readonly RoundFigures[] {
  const byRound = new Map<number, RoundTimes[]>();
  for (const times of calls.flat()) {
    const list = byRound.get(times.round);
    if (list === undefined) byRound.set(times.round, [times]);
    else list.push(times);
  }
  return [...byRound]
    .toSorted(([left], [right]) => left - right)
    .map(([round, times]) => figuresOf(round, times, roundTripMs));
}

function figuresOf(
  round: number,
  times: readonly RoundTimes[],
  roundTripMs: number | undefined,
): RoundFigures {
  const exchanges = times.map(({ exchangeMs }) => exchangeMs);
  const exchangeMs = percentiles(exchanges);
  const inputs = times.map(({ inputMs }) => inputMs);
  const pauses = times.map(({ pauseMs }) => pauseMs);
  const wireMs = roundTripMs === undefined ? undefined : Math.min(roundTripMs, exchangeMs.p50);
  return {
    round,
    calls: times.length,
    exchangeMs,
    ...(wireMs !== undefined && { wireMs, serverMs: exchangeMs.p50 - wireMs }),
    engineMs: percentiles(times.map(({ engineMs }) => engineMs)),
    ...(inputs.some((ms) => ms > 0) && { inputMs: percentiles(inputs) }),
    ...(pauses.some((ms) => ms > 0) && { pauseMs: percentiles(pauses) }),
    histogram: histogram(exchanges),
  };
}
