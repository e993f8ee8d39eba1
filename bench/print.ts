/** A report as text for a terminal. */

import type { Check } from "./checks.ts";
import { OWNERS } from "./profile-owners.ts";
import type { Cell, Report, ScenarioReport } from "./report.ts";
import { CONTENDERS } from "./scenarios.ts";

const HEADINGS = ["", "CPU µs", "±", "× floor", "±", "wall µs", "p50 µs", "p99 µs", "per s"] as const;

/** The name of a contender as reports show it. */
export function titleOf(contender: string): string {
  return CONTENDERS.find(({ id }) => id === contender)?.title ?? contender;
}

/** One scenario as a small table. */
export function printScenario(scenario: ScenarioReport): string {
  const rows = scenario.cells.map((cell) => rowOf(cell));
  const lines = [scenario.title, ...columns([HEADINGS, ...rows]).map((line) => `  ${line}`)];
  for (const { contender, note } of scenario.notes) {
    lines.push(`  ${titleOf(contender)}: ${note.split("\n")[0]!.slice(0, 100)}`);
  }
  return lines.join("\n");
}

function rowOf(cell: Cell): readonly string[] {
  const { cpuUs, toFloor, wallUs, p50Us, p99Us, perSecond } = cell;
  return [
    titleOf(cell.contender),
    number(cpuUs.median),
    number(cpuUs.spread),
    toFloor.median.toFixed(2),
    toFloor.spread.toFixed(2),
    number(wallUs),
    number(p50Us),
    number(p99Us),
    Math.round(perSecond).toString(),
  ];
}

/** What was measured once for the whole run. */
export function printRest({ startUp, heap, profiles, instructions }: Report): string {
  const lines: string[] = [];
  for (const { title, baseMs, extraMs, extraCpuMs, extraRssMb } of startUp) {
    lines.push(
      `start-up: ${title}: ${extraMs.median.toFixed(1)} ± ${extraMs.spread.toFixed(1)} ms, which took ${baseMs.median.toFixed(0)} ms, CPU ${extraCpuMs.median.toFixed(1)} ms, ${extraRssMb.median.toFixed(1)} MB`,
    );
  }
  for (const { title, bytes } of heap) lines.push(`heap: ${title}: ${bytes.toFixed(0)} bytes`);
  if (profiles.length > 0) {
    const rows = profiles.map(({ title, unit, owned }) => [
      title,
      ...OWNERS.map((owner) => owned[owner].toFixed(1)),
      unit,
    ]);
    lines.push(
      "",
      "where the time goes",
      ...columns([["", ...OWNERS, ""], ...rows]).map((line) => `  ${line}`),
    );
  }
  if (instructions !== undefined) {
    const { engine, binding } = instructions;
    lines.push(
      `instructions per call over memory: ${Math.round(engine)}, of which the binding ${Math.round(binding)}`,
    );
  }
  return lines.join("\n");
}

/** The budgets, each with its verdict. */
export function printChecks(checks: readonly Check[]): string {
  const rows = checks.map(({ title, value, noise, budget, what, verdict }) => [
    verdict === "met" ? "ok" : verdict === "noise" ? "~" : "MISSED",
    title,
    `${number(value)} ± ${number(noise)} ${what}`,
    `budget ${budget}`,
  ]);
  return ["Budgets", ...columns(rows, 3).map((line) => `  ${line}`)].join("\n");
}

/** About three digits. */
export function number(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

/** Lines of aligned columns; the first `left` are aligned to the left. */
function columns(rows: readonly (readonly string[])[], left = 1): string[] {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => row[at]!.length)));
  return rows.map((row) =>
    row
      .map((text, at) => (at < left ? text.padEnd(widths[at]!) : text.padStart(widths[at]!)))
      .join("  ")
      .trimEnd(),
  );
}
