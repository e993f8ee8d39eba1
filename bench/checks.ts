/** Holds a report against the budgets. */

import type { Report, ScenarioReport } from "./report.ts";
import type { Figure } from "./statistics.ts";

/** - met: at or below the budget. - noise: above it, but by no more than the runs differ among themselves. - missed. */
export type Verdict = "met" | "noise" | "missed";

export interface Check {
  readonly id: string;
  readonly title: string;
  /** What is held against the budget. */
  readonly what: string;
  readonly value: number;
  readonly noise: number;
  readonly budget: number;
  readonly verdict: Verdict;
}

/** How much more a megabyte may cost in the largest result than in the smallest: twice would be far from linear. */
const GROWTH_BUDGET = 1.5;

/** Every budget that the report has a figure for. */
export function checkReport(report: Report): readonly Check[] {
  const checks: Check[] = [];
  for (const scenario of report.scenarios) checks.push(...checkScenario(scenario));
  const growth = growthOf(report);
  if (growth !== undefined) checks.push(growth);
  for (const { id, title, extraMs, budgetMs } of report.startUp) {
    if (budgetMs === undefined) continue;
    checks.push(judge({ id, title: `start-up: ${title}`, what: "ms", figure: extraMs, budget: budgetMs }));
  }
  for (const { id, title, bytes, budgetBytes } of report.heap) {
    const figure = { median: bytes, spread: 0 };
    checks.push(judge({ id, title: `heap: ${title}`, what: "bytes", figure, budget: budgetBytes }));
  }
  return checks;
}

function checkScenario({ id, title, budget, budgetOverBindingUs, cells }: ScenarioReport): Check[] {
  const engine = cells.find(({ contender }) => contender === "engine");
  if (engine === undefined) return [];
  const checks: Check[] = [];
  if (budget !== undefined) {
    checks.push(judge({ id, title, what: "× the floor", figure: engine.toFloor, budget }));
  }
  if (budgetOverBindingUs !== undefined && engine.overBindingUs !== undefined) {
    const what = "µs over the binding";
    checks.push(judge({ id, title, what, figure: engine.overBindingUs, budget: budgetOverBindingUs }));
  }
  return checks;
}

/** What a megabyte costs in the largest result over stdio, for each that it costs in the smallest. */
function growthOf({ scenarios }: Report): Check | undefined {
  const sizes = scenarios.flatMap(({ id, megabytes, cells }) => {
    const engine = cells.find(({ contender }) => contender === "engine");
    return id.startsWith("stdio-") && megabytes !== undefined && engine !== undefined
      ? [
          {
            megabytes,
            perMb: engine.cpuUs.median / megabytes,
            noise: engine.cpuUs.spread / engine.cpuUs.median,
          },
        ]
      : [];
  });
  const smallest = sizes[0];
  const largest = sizes.at(-1);
  if (smallest === undefined || largest === undefined || largest.megabytes < 10 * smallest.megabytes)
    return undefined;
  const median = largest.perMb / smallest.perMb;
  return judge({
    id: "stdio-growth",
    title: `stdio, a megabyte of ${largest.megabytes} MB over one of ${smallest.megabytes} MB`,
    what: "× the CPU",
    figure: { median, spread: median * (largest.noise + smallest.noise) },
    budget: GROWTH_BUDGET,
  });
}

interface Judged {
  readonly id: string;
  readonly title: string;
  readonly what: string;
  readonly figure: Figure;
  readonly budget: number;
}

function judge({ id, title, what, figure, budget }: Judged): Check {
  const { median: value, spread: noise } = figure;
  const verdict: Verdict = value <= budget ? "met" : value - noise <= budget ? "noise" : "missed";
  return { id, title, what, value, noise, budget, verdict };
}
