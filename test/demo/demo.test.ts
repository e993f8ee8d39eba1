import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Runs a program of the demo as `npm run demo` does, on the package that was built before the tests. */
function runProgram(name: string): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ["--import", "tsx", `test/demo/${name}`],
      { cwd: root },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

describe("the demo", { timeout: 60_000 }, () => {
  it("STD-02 MRTR-11 CAN-03: every scene ends as expected over stdio, HTTP and WebSocket", async () => {
    const { code, stdout, stderr } = await runProgram("main.ts");
    expect(stderr).toBe("");
    expect(stdout).toMatch(/\n16 scenes, 16 as expected\n$/);
    expect(code).toBe(0);
    for (const binding of ["stdio: node ", "http: http://", "websocket: ws://"]) {
      expect(stdout).toContain(`\n${binding}`);
    }
    // One line for each attempt: operation, round, attempt, wire id, request, outcome, milliseconds.
    const line =
      /^ {4}\d+ +\d+ +\d+ +\d+ +tools\/call \w+ +(complete|input_required|failure: .*) +\d+\.\d$/gm;
    const attempts = stdout.match(line) ?? [];
    expect(attempts.length).toBe(3 * 12 + 8);
    expect(attempts.filter((attempt) => attempt.includes("connection-lost, delivery unknown")).length).toBe(
      1,
    );
  });

  it("exits with 1, and says which, when a scene does not end as expected", async () => {
    const { code, stdout } = await runProgram("wrong-expectation.ts");
    expect(code).toBe(1);
    expect(stdout).toContain("WRONG: deployed\n    expected: something else\n");
    expect(stdout).toContain("\nwrong: stdio, a tool that needs confirmation");
    expect(stdout).toMatch(/\n2 scenes, 1 as expected\n$/);
  });
});
