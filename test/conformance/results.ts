/** What the official suite left behind for each scenario, read from the directory it was given. */

import { readdir, readFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";

/** How the client's own part went: "lost" is a run without an outcome, which hung or crashed. */
export type ClientOutcome = "done" | "failed" | "lost";

/** One scenario as it was run. */
export interface ScenarioResult {
  /** Such as "tools_call" or "auth/scope-step-up". */
  readonly scenario: string;
  /** Checks with the status SUCCESS. */
  readonly passed: number;
  /** Checks with the status FAILURE. */
  readonly failed: number;
  /** Checks with the status WARNING: a SHOULD of the specification that was not kept. */
  readonly warnings: number;
  readonly client: ClientOutcome;
  /** One line for each check that failed or warned, then what the client wrote to stderr. */
  readonly complaints: readonly string[];
}

/** One entry of the suite's checks.json, as far as it is read. */
interface Check {
  readonly id: string;
  readonly status: string;
  readonly description: string;
  readonly errorMessage?: string;
}

/** The suite names a directory after the scenario and the time it began, with ":" and "." as "-". */
const RESULT_DIRECTORY = /^(.+)-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$/;

/** Reads every scenario's result, in the order of their names. The suite makes a directory also for one that it could not start. */
export async function readResults(directory: string): Promise<ScenarioResult[]> {
  const results: ScenarioResult[] = [];
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const path = join(entry.parentPath, entry.name);
    const scenario = RESULT_DIRECTORY.exec(relative(directory, path))?.[1]?.replaceAll(sep, "/");
    if (scenario !== undefined) results.push(await readResult(scenario, path));
  }
  return results.sort((a, b) => (a.scenario < b.scenario ? -1 : 1));
}

async function readResult(scenario: string, path: string): Promise<ScenarioResult> {
  const [checksText, stdout, stderr] = await Promise.all(
    ["checks.json", "stdout.txt", "stderr.txt"].map((name) =>
      readFile(join(path, name), "utf8").catch(() => ""),
    ),
  );
  const checks: Check[] = checksText ? JSON.parse(checksText) : [];
  const count = (status: string) => checks.filter((check) => check.status === status).length;
  return {
    scenario,
    passed: count("SUCCESS"),
    failed: count("FAILURE"),
    warnings: count("WARNING"),
    client: readOutcome(stdout ?? ""),
    complaints: [...checks.flatMap(complaintOf), ...(stderr ? [stderr.trim()] : [])],
  };
}

function complaintOf({ id, status, description, errorMessage }: Check): string[] {
  if (status !== "FAILURE" && status !== "WARNING") return [];
  return [`${status} ${id}: ${errorMessage ?? description}`];
}

/** The client's last line says how it went. */
function readOutcome(stdout: string): ClientOutcome {
  switch (stdout.trimEnd().split("\n").at(-1)) {
    case '{"done":true}':
      return "done";
    case '{"done":false}':
      return "failed";
    default:
      return "lost";
  }
}
