/** The whole of a run as plain data: what is printed, kept as JSON, and published. */

import { readFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import type { HeapFigure } from "./heap.ts";
import type { Measured } from "./run-scenario.ts";
import { CONTENDERS, type ContenderId, type Scenario } from "./scenarios.ts";
import type { StartUp } from "./start-up.ts";
import type { Profile } from "./profile.ts";
import { difference, type Figure, figure, ratio, type Slice } from "./statistics.ts";

/** One contender in one scenario. */
export interface Cell {
  readonly contender: ContenderId;
  readonly runs: number;
  readonly cpuUs: Figure;
  readonly toFloor: Figure;
  /** Absent where the binding alone was not measured. */
  readonly overBindingUs?: Figure;
  readonly wallUs: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly perSecond: number;
}

export interface ScenarioReport {
  readonly id: string;
  readonly title: string;
  readonly megabytes?: number;
  readonly budget?: number;
  readonly budgetOverBindingUs?: number;
  readonly cells: readonly Cell[];
  /** Contenders without figures, and why. */
  readonly notes: readonly { readonly contender: ContenderId; readonly note: string }[];
}

export interface Machine {
  readonly node: string;
  readonly platform: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  /** The load average of the last minute, before the run. */
  readonly load: number;
}

export interface Report {
  readonly at: string;
  readonly machine: Machine;
  readonly rounds: number;
  readonly isQuick: boolean;
  readonly versions: Readonly<Record<string, string>>;
  readonly scenarios: readonly ScenarioReport[];
  readonly startUp: readonly StartUp[];
  readonly heap: readonly HeapFigure[];
  /** Where the time goes; none in a quick run. */
  readonly profiles: readonly Profile[];
  /** Instructions per call over memory, where they could be counted. */
  readonly instructions?: { readonly engine: number; readonly binding: number };
}

export function describeMachine(): Machine {
  return {
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    load: Math.round(loadavg()[0]! * 100) / 100,
  };
}

/** The versions of what is measured; a peer that is not installed has none. */
export function readVersions(): Record<string, string> {
  const versions: Record<string, string> = { "mcp-rally": versionIn("../package.json")! };
  for (const name of ["undici", "ws"]) versions[name] = versionIn(`../node_modules/${name}/package.json`)!;
  for (const { package: name } of CONTENDERS) {
    const version = name && versionIn(`peers/node_modules/${name}/package.json`);
    if (name !== undefined && version !== undefined) versions[name] = version;
  }
  return versions;
}

function versionIn(path: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")) as { version: string }).version;
  } catch {
    return undefined;
  }
}

/** Sums one scenario up. */
export function summarise(scenario: Scenario, measured: Measured): ScenarioReport {
  const { id, title, megabytes, budget, budgetOverBindingUs } = scenario;
  const slicesOf = (contender: ContenderId): readonly Slice[] => {
    const slices = measured.get(contender);
    return typeof slices === "object" ? slices : [];
  };
  const floor = slicesOf("floor");
  const binding = slicesOf("binding");
  const cells: Cell[] = [];
  const notes: { contender: ContenderId; note: string }[] = [];
  for (const [contender, slices] of measured) {
    if (typeof slices === "string") notes.push({ contender, note: slices });
    else if (slices.length > 0) cells.push(cellOf(contender, slices, floor, binding));
  }
  return {
    id,
    title,
    ...(megabytes !== undefined && { megabytes }),
    ...(budget !== undefined && { budget }),
    ...(budgetOverBindingUs !== undefined && { budgetOverBindingUs }),
    cells,
    notes,
  };
}

function cellOf(
  contender: ContenderId,
  slices: readonly Slice[],
  floor: readonly Slice[],
  binding: readonly Slice[],
): Cell {
  const median = (of: (slice: Slice) => number) => figure(slices.map(of)).median;
  return {
    contender,
    runs: slices.length,
    cpuUs: figure(slices.map(({ cpuUs }) => cpuUs)),
    toFloor: ratio(slices, floor),
    ...(binding.length > 0 && { overBindingUs: difference(slices, binding) }),
    wallUs: median(({ wallUs }) => wallUs),
    p50Us: median(({ p50Us }) => p50Us),
    p99Us: median(({ p99Us }) => p99Us),
    perSecond: 1e6 / median(({ wallUs }) => wallUs),
  };
}
