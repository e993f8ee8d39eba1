import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { readResults, type ScenarioResult } from "./results.ts";
import { formatTable, judge, type Verdict } from "./verdict.ts";

const good: ScenarioResult = {
  scenario: "tools_call",
  passed: 2,
  failed: 0,
  warnings: 0,
  client: "done",
  complaints: [],
};

describe("the verdict on a conformance run", () => {
  const cases: readonly {
    readonly title: string;
    readonly result: Partial<ScenarioResult>;
    readonly unexpected: Verdict;
    readonly expected: Verdict;
  }[] = [
    { title: "all checks pass", result: {}, unexpected: "pass", expected: "NOW PASSES" },
    { title: "a check fails", result: { failed: 1 }, unexpected: "FAILS", expected: "expected failure" },
    { title: "a check warns", result: { warnings: 1 }, unexpected: "FAILS", expected: "expected failure" },
    {
      title: "nothing was checked",
      result: { passed: 0 },
      unexpected: "FAILS",
      expected: "expected failure",
    },
    {
      title: "the checks pass and the client fails",
      result: { client: "failed" },
      unexpected: "FAILS",
      expected: "expected failure",
    },
    {
      title: "the client hangs or crashes",
      result: { client: "lost", failed: 1 },
      unexpected: "FAILS",
      expected: "FAILS",
    },
  ];
  it.each(cases)("$title", ({ result, unexpected, expected }) => {
    const results = [{ ...good, ...result }];
    const isGood = (verdict: Verdict) => verdict === "pass" || verdict === "expected failure";
    for (const [list, verdict] of [
      [[], unexpected],
      [["tools_call"], expected],
    ] as const) {
      const judgement = judge(results, list);
      expect(judgement.rows.map((row) => row.verdict)).toEqual([verdict]);
      expect(judgement.problems).toHaveLength(isGood(verdict) ? 0 : 1);
    }
  });

  it("an expected failure that was not run is a problem", () => {
    expect(judge([good], ["auth/gone"]).problems).toEqual([expect.stringContaining("auth/gone")]);
  });

  it("a run of nothing is a problem", () => {
    expect(judge([], []).problems).toEqual(["No scenario was run."]);
  });

  it("a problem repeats what the checks and the client said", () => {
    const failed = { ...good, failed: 1, client: "failed", complaints: ["FAILURE some-check: why"] } as const;
    expect(judge([failed], []).problems).toEqual([
      "tools_call fails, and its client failed:\n  FAILURE some-check: why",
    ]);
  });

  it("the table has a line for each scenario, what must pass first", () => {
    const failing = { ...good, scenario: "auth/a", passed: 0, failed: 12, client: "failed" } as const;
    expect(formatTable(judge([failing, good], ["auth/a"]).rows)).toBe(
      [
        "scenario    passed  failed  warnings  verdict",
        "tools_call       2       0         0  pass",
        "auth/a           0      12         0  expected failure",
      ].join("\n"),
    );
  });
});

describe("reading what the suite left behind", () => {
  let directory: string | undefined;
  afterEach(() => directory && rm(directory, { recursive: true }));

  async function leave(scenario: string, files: Readonly<Record<string, string>>): Promise<string> {
    directory ??= await mkdtemp(join(tmpdir(), "rally-verdict-"));
    const path = join(directory, `${scenario}-2026-12-01T07-13-47-904Z`);
    await mkdir(path, { recursive: true });
    for (const [name, text] of Object.entries(files)) await writeFile(join(path, name), text);
    return directory;
  }

  it("counts checks by status, takes the client's last line, and keeps what was said", async () => {
    const checks = [
      { id: "a", status: "SUCCESS", description: "a holds" },
      { id: "b", status: "FAILURE", description: "b holds", errorMessage: "it does not" },
      { id: "c", status: "WARNING", description: "c holds" },
      { id: "d", status: "SKIPPED", description: "d holds" },
      { id: "e", status: "INFO", description: "e" },
    ];
    await leave("tools_call", {
      "checks.json": JSON.stringify(checks),
      "stdout.txt": 'noise\n{"done":true}\n',
      "stderr.txt": "",
    });
    await leave("auth/a", {
      "checks.json": "[]",
      "stdout.txt": '{"done":false}\n',
      "stderr.txt": "Error: 401\n",
    });
    const root = await leave("never-started", {});
    expect(await readResults(root)).toEqual([
      { scenario: "auth/a", passed: 0, failed: 0, warnings: 0, client: "failed", complaints: ["Error: 401"] },
      { scenario: "never-started", passed: 0, failed: 0, warnings: 0, client: "lost", complaints: [] },
      {
        scenario: "tools_call",
        passed: 1,
        failed: 1,
        warnings: 1,
        client: "done",
        complaints: ["FAILURE b: it does not", "WARNING c: c holds"],
      },
    ]);
  });
});
