/** Puts the figures of a run into docs/: no figure there is typed by hand. */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { drawChart } from "./chart.ts";
import type { Check } from "./checks.ts";
import { number, titleOf } from "./print.ts";
import { OWNERS } from "./profile-owners.ts";
import type { Cell, Report, ScenarioReport } from "./report.ts";
import { CONTENDERS, type ContenderId } from "./scenarios.ts";

const BEGIN = "<!-- figures: written by npm run bench -- --publish -->";
const END = "<!-- end of figures -->";

const at = (path: string) => new URL(path, import.meta.url);

/** Keeps the report, so that it can be looked at again. */
export function keep(report: Report, checks: readonly Check[]): void {
  mkdirSync(at("results/"), { recursive: true });
  writeFileSync(at("results/latest.json"), `${JSON.stringify({ ...report, checks }, undefined, 2)}\n`);
}

/** Writes the chart, and the table between the markers of docs/benchmarks.md. */
export function publish(report: Report, checks: readonly Check[]): void {
  writeFileSync(at("../docs/benchmarks.svg"), drawChart(report));
  const path = at("../docs/benchmarks.md");
  const page = readFileSync(path, "utf8");
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin === -1 || end < begin) throw new Error(`docs/benchmarks.md lacks the marks ${BEGIN} … ${END}`);
  const text = `${page.slice(0, begin + BEGIN.length)}\n\n${figures(report, checks)}\n\n${page.slice(end)}`;
  writeFileSync(path, text);
}

function figures(report: Report, checks: readonly Check[]): string {
  return [
    machine(report),
    budgets(checks),
    table(report),
    latencies(report),
    rest(report),
    whereTimeGoes(report),
    notes(report),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function machine({ at: when, machine: host, rounds, versions }: Report): string {
  const { node, platform, cpu, cores, memoryGb, load } = host;
  const packages = Object.entries(versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(", ");
  return `Measured ${when.slice(0, 10)} with Node.js ${node} on ${platform}: ${cpu}, ${cores} cores, ${memoryGb} GB, load average ${load} before the run; ${rounds} interleaved runs of each. ${packages}.`;
}

function budgets(checks: readonly Check[]): string {
  const words = { met: "met", noise: "above, within the noise", missed: "**missed**" };
  const rows = checks.map(({ title, value, noise, budget, what, verdict }) => [
    title,
    `${number(value)} ± ${number(noise)} ${what}`,
    String(budget),
    words[verdict],
  ]);
  return `### Budgets\n\n${markdown(["scenario", "measured", "budget", ""], rows)}`;
}

function table({ scenarios }: Report): string {
  const columns = usedBy(scenarios);
  const rows = scenarios.map(({ title, cells, notes: reasons }) => [
    title,
    ...columns.map((contender) => {
      const cell = cells.find((each) => each.contender === contender);
      if (cell === undefined) return reasons.some((each) => each.contender === contender) ? "–" : "";
      const cpu = number(cell.cpuUs.median);
      return contender === "floor" ? `${cpu} µs` : `${cpu} µs (${cell.toFloor.median.toFixed(2)})`;
    }),
  ]);
  const heads = ["scenario", ...columns.map(titleOf)];
  return `### CPU of the client process per call, and its ratio to the floor\n\n${markdown(heads, rows)}`;
}

function latencies({ scenarios }: Report): string {
  const rows = scenarios.flatMap(({ title, cells }) => {
    const by = (contender: ContenderId): Cell | undefined =>
      cells.find((each) => each.contender === contender);
    const engine = by("engine");
    const floor = by("floor");
    if (engine === undefined || floor === undefined) return [];
    const times = ({ p50Us, p99Us, perSecond }: Cell) => [
      number(p50Us),
      number(p99Us),
      String(Math.round(perSecond)),
    ];
    return [[title, ...times(engine), ...times(floor)]];
  });
  const heads = ["scenario", "p50 µs", "p99 µs", "per s", "floor p50 µs", "floor p99 µs", "floor per s"];
  return `### Latency and throughput\n\n${markdown(heads, rows)}`;
}

function rest({ startUp, heap, instructions }: Report): string {
  const lines = startUp.map(
    ({ title, baseMs, extraMs, extraCpuMs, extraRssMb }) =>
      `- Start-up, ${title}: ${extraMs.median.toFixed(1)} ± ${extraMs.spread.toFixed(1)} ms, and that took ${baseMs.median.toFixed(0)} ms; ${extraCpuMs.median.toFixed(1)} ms of CPU, ${extraRssMb.median.toFixed(1)} MB.`,
  );
  for (const { title, bytes } of heap) lines.push(`- Heap, ${title}: ${bytes.toFixed(0)} bytes.`);
  if (instructions !== undefined) {
    const added = Math.round(instructions.engine - instructions.binding);
    lines.push(
      `- Instructions per call over memory: ${Math.round(instructions.engine)}; ${added} of them are the engine's.`,
    );
  }
  return lines.length === 0 ? "" : `### Start-up and memory\n\n${lines.join("\n")}`;
}

function whereTimeGoes({ profiles }: Report): string {
  const tables = (["%", "ms"] as const).flatMap((unit) => {
    const rows = profiles
      .filter((profile) => profile.unit === unit)
      .map(({ title, owned }) => [title, ...OWNERS.map((owner) => owned[owner].toFixed(1))]);
    return rows.length === 0 ? [] : [markdown([unit === "%" ? "% of the CPU" : "ms more", ...OWNERS], rows)];
  });
  return tables.length === 0 ? "" : `### Where the time goes\n\n${tables.join("\n\n")}`;
}

function notes({ scenarios }: Report): string {
  const lines = new Map<string, string[]>();
  for (const { title, notes: reasons } of scenarios) {
    for (const { contender, note } of reasons) {
      const line = `${titleOf(contender)}: ${note.split("\n")[0]!.slice(0, 160)}`;
      lines.set(line, [...(lines.get(line) ?? []), title]);
    }
  }
  if (lines.size === 0) return "";
  const items = [...lines].map(([line, titles]) => `- ${line} (${titles.join("; ")}).`);
  return `### Empty cells\n\n${items.join("\n")}`;
}

function usedBy(scenarios: readonly ScenarioReport[]): readonly ContenderId[] {
  return CONTENDERS.map(({ id }) => id).filter((id) =>
    scenarios.some(({ cells }) => cells.some(({ contender }) => contender === id)),
  );
}

function markdown(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(heads), line(heads.map(() => "---")), ...rows.map(line)].join("\n");
}
