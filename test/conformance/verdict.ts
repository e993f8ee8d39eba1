/** Judges the results of a conformance run against the list of what is expected to fail, and shows them as a table. */

import type { ScenarioResult } from "./results.ts";

/** What a result means; the last two make the run fail. */
export type Verdict = "pass" | "expected failure" | "FAILS" | "NOW PASSES";

/** One result with its verdict. */
export interface Judged extends ScenarioResult {
  readonly verdict: Verdict;
}

/** A judged run. */
export interface Judgement {
  readonly rows: readonly Judged[];
  /** What is wrong, one text each; empty when the run is good. */
  readonly problems: readonly string[];
}

/**
 * A scenario passes when it has checks, none of them failed or warned, and the client did what it had come for. One that
 * is expected to fail must fail in an orderly way: a client that hung or crashed is never expected.
 */
export function judge(results: readonly ScenarioResult[], expectedFailures: readonly string[]): Judgement {
  const expected = new Set(expectedFailures);
  const rows = results.map((result) => ({ ...result, verdict: verdictOf(result, expected) }));
  const problems = rows.flatMap(problemOf);
  for (const scenario of expected) {
    if (results.some((result) => result.scenario === scenario)) continue;
    problems.push(`${scenario} is expected to fail, and was not run: take it out of the expected failures.`);
  }
  if (results.length === 0) problems.push("No scenario was run.");
  return { rows, problems };
}

function verdictOf(result: ScenarioResult, expected: ReadonlySet<string>): Verdict {
  const { scenario, passed, failed, warnings, client } = result;
  const passes = passed > 0 && failed === 0 && warnings === 0 && client === "done";
  if (!expected.has(scenario)) return passes ? "pass" : "FAILS";
  if (passes) return "NOW PASSES";
  return client === "lost" ? "FAILS" : "expected failure";
}

function problemOf({ verdict, scenario, client, complaints }: Judged): string[] {
  switch (verdict) {
    case "FAILS": {
      const how =
        client === "done"
          ? "fails"
          : `fails, and its client ${client === "lost" ? "hung or crashed" : "failed"}`;
      return [[`${scenario} ${how}:`, ...complaints].join("\n  ")];
    }
    case "NOW PASSES":
      return [`${scenario} is expected to fail, and passes: take it out of the expected failures.`];
    default:
      return [];
  }
}

/** The results as a table of text: what must pass first. */
export function formatTable(rows: readonly Judged[]): string {
  const cells = [...rows]
    .sort((a, b) => Number(a.verdict === "expected failure") - Number(b.verdict === "expected failure"))
    .map((row) => [row.scenario, row.passed, row.failed, row.warnings, row.verdict].map(String));
  const lines = [["scenario", "passed", "failed", "warnings", "verdict"], ...cells];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...lines.map((line) => line[column]!.length)));
  return lines
    .map(([scenario, passed, failed, warnings, verdict]) =>
      [
        scenario!.padEnd(widths[0]!),
        passed!.padStart(widths[1]!),
        failed!.padStart(widths[2]!),
        warnings!.padStart(widths[3]!),
        verdict!,
      ].join("  "),
    )
    .join("\n");
}
