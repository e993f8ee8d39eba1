/** Medians and their spread. */

/** What one contender gave in one slice; times are microseconds per operation. */
export interface Slice {
  readonly count: number;
  readonly cpuUs: number;
  readonly wallUs: number;
  readonly p50Us: number;
  readonly p99Us: number;
}

/** A middle value, and half the distance between the quartiles around it. */
export interface Figure {
  readonly median: number;
  readonly spread: number;
}

/** The median of some values with their spread. */
export function figure(values: readonly number[]): Figure {
  const sorted = values.toSorted((left, right) => left - right);
  return { median: quantile(sorted, 0.5), spread: (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 2 };
}

function quantile(sorted: readonly number[], share: number): number {
  const at = (sorted.length - 1) * share;
  const low = sorted[Math.floor(at)]!;
  return low + (sorted[Math.ceil(at)]! - low) * (at - Math.floor(at));
}

/** What one contender cost for each of another, slice by slice of the same round: what slows both down cancels out. */
export function ratio(of: readonly Slice[], to: readonly Slice[]): Figure {
  return figure(pairs(of, to).map(([left, right]) => left.cpuUs / right.cpuUs));
}

/** How much CPU one contender took more than another, slice by slice. */
export function difference(of: readonly Slice[], to: readonly Slice[]): Figure {
  return figure(pairs(of, to).map(([left, right]) => left.cpuUs - right.cpuUs));
}

function pairs(of: readonly Slice[], to: readonly Slice[]): [Slice, Slice][] {
  return of.flatMap((slice, index) => (to[index] === undefined ? [] : [[slice, to[index]]]));
}
