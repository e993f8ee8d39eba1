/**
 * Runs the official client scenarios of one requirement set against the built package, prints a table of them, and ends
 * with exit code 1 when one fails that is not expected to, or passes that is expected to fail.
 */

import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readResults } from "./results.ts";
import { formatTable, judge } from "./verdict.ts";

const REVISION = "2026-07-28";

/** When the suite gives a client up; the client ends itself before. */
const SCENARIO_MS = 300_000;

const suite = fileURLToPath(import.meta.resolve("@modelcontextprotocol/conformance/dist/index.js"));
const client = fileURLToPath(new URL("everything-client.mjs", import.meta.url));
const expectedFailures = new URL("expected-failures.json", import.meta.url);

/** The suite itself needs Node 22; the client runs on the Node that runs this. */
function suiteNode(): [command: string, ...args: string[]] {
  if (Number.parseInt(process.versions.node, 10) >= 22) return [process.execPath];
  return ["npx", "--yes", "--package", "node@22", "node"];
}

/** The suite hands this line to a shell. */
function quoted(path: string): string {
  return `'${path.replaceAll("'", `'\\''`)}'`;
}

/** Runs the suite to its end, and gives what it printed. Its exit code knows nothing of our list of expected failures. */
async function runSuite(outputDirectory: string): Promise<string> {
  const [command, ...args] = [
    ...suiteNode(),
    suite,
    "client",
    ...["--requirements", REVISION],
    ...["--command", `${quoted(process.execPath)} ${quoted(client)}`],
    ...["--timeout", String(SCENARIO_MS)],
    ...["--output-dir", outputDirectory],
  ];
  const child = spawn(command!, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  await new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
  return output;
}

const directory = await mkdtemp(join(tmpdir(), "rally-conformance-"));
try {
  const output = await runSuite(directory);
  const results = await readResults(directory);
  const { client: expected } = JSON.parse(await readFile(expectedFailures, "utf8")) as { client: string[] };
  const { rows, problems } = judge(results, expected);
  const count = (verdict: string) => rows.filter((row) => row.verdict === verdict).length;
  console.log(`Official client scenarios for ${REVISION}\n\n${formatTable(rows)}\n`);
  console.log(
    `${count("pass")} of ${rows.length} scenarios pass, ${count("expected failure")} fail as expected, ${problems.length} problems.`,
  );
  for (const problem of problems) console.error(`\n${problem}`);
  if (rows.length === 0) console.error(`\nThe suite said:\n${output.slice(-4000)}`);
  if (problems.length > 0) process.exitCode = 1;
} finally {
  await rm(directory, { recursive: true, force: true });
}
