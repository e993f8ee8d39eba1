import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/clock.ts";
import { Backoff } from "../../transports/backoff.ts";
import { serverEnvironment } from "../../transports/environment.ts";
import { StderrTail } from "../../transports/stderr-tail.ts";
import { windowsCommand } from "../../transports/windows-command.ts";

describe("backoff", () => {
  let now = 0;
  const clock: Clock = { now: () => now, wallNow: () => now, setTimer: () => 0, clearTimer: () => {} };
  const lifeOf = (backoff: Backoff, uptimeMs: number): number => {
    const delay = backoff.next();
    backoff.up();
    now += uptimeMs;
    backoff.down();
    return delay;
  };

  it("STD-02 WS-02: the first opening and the first restart wait for nothing, then each waits twice as long, to a bound", () => {
    const backoff = new Backoff({ initialMs: 100, maxMs: 500, sustainedMs: 1000 }, clock, () => 0);
    expect(Array.from({ length: 7 }, () => lifeOf(backoff, 10))).toEqual([0, 0, 100, 200, 400, 500, 500]);
  });

  it("STD-02 WS-02: jitter takes away at most a half", () => {
    const backoff = new Backoff({ initialMs: 100 }, clock, () => 0.999999);
    backoff.next();
    backoff.next();
    expect(backoff.next()).toBeCloseTo(50, 2);
  });

  it("STD-02 WS-02: only sustained uptime begins the count anew", () => {
    const backoff = new Backoff({ initialMs: 100, sustainedMs: 1000 }, clock, () => 0);
    expect([10, 10, 999, 1000, 10, 10].map((uptimeMs) => lifeOf(backoff, uptimeMs))).toEqual([
      0, 0, 100, 200, 0, 100,
    ]);
  });

  it("STD-02 WS-02: openings that never came up count, whatever time they took", () => {
    const backoff = new Backoff({ initialMs: 100, sustainedMs: 1000 }, clock, () => 0);
    const delays = [1, 2, 3, 4].map(() => {
      const delay = backoff.next();
      now += 5000;
      backoff.down();
      return delay;
    });
    expect(delays).toEqual([0, 0, 100, 200]);
  });
});

describe("environment", () => {
  it("STD-04 B127: on Windows names are one whatever their case, and env replaces what it names", () => {
    const source = { Path: "C:\\bin", SystemRoot: "C:\\Windows", SECRET: "s", ComSpec: "C:\\cmd.exe" };
    expect({ ...serverEnvironment({ PATH: "D:\\bin", comspec: undefined }, source, "win32") }).toEqual({
      PATH: "D:\\bin",
      SystemRoot: "C:\\Windows",
    });
  });

  it("STD-04 B127: exported shell functions are dropped, inherited or given", () => {
    const environment = serverEnvironment(
      { A: "() { :;}", B: "()", C: "(1)" },
      { HOME: "() { x; }", USER: "me" },
      "linux",
    );
    expect({ ...environment }).toEqual({ USER: "me", C: "(1)" });
  });

  it("STD-04: names of Object.prototype are names like others", () => {
    const environment = serverEnvironment(JSON.parse('{"__proto__":"a","constructor":"b"}'), {}, "linux");
    expect(Object.entries(environment)).toEqual([
      ["__proto__", "a"],
      ["constructor", "b"],
    ]);
  });
});

describe("the end of stderr", () => {
  const cases: { name: string; chunks: string[]; tail: string }[] = [
    { name: "nothing", chunks: [], tail: "" },
    { name: "little", chunks: ["a", "é", "\n"], tail: "aé\n" },
    { name: "exactly the ring", chunks: ["x".repeat(8192)], tail: "x".repeat(8192) },
    {
      name: "one chunk larger than the ring",
      chunks: [`${"x".repeat(20_000)}end`],
      tail: `${"x".repeat(8189)}end`,
    },
    { name: "many small chunks", chunks: Array(9000).fill("ab"), tail: "ab".repeat(4096) },
    {
      name: "a chunk over the edge",
      chunks: ["x".repeat(8000), "y".repeat(1000)],
      tail: "x".repeat(7192) + "y".repeat(1000),
    },
    { name: "a character cut at the front", chunks: ["€".repeat(4000)], tail: "€".repeat(2730) },
  ];
  for (const { name, chunks, tail } of cases) {
    it(`STD-01 B116: ${name}`, () => {
      const stderr = new StderrTail();
      for (const chunk of chunks) stderr.push(Buffer.from(chunk));
      expect(stderr.text()).toBe(tail);
    });
  }
});

describe("commands on Windows", () => {
  const env = { PATH: "C:\\one;C:\\node js", PATHEXT: ".EXE;.CMD", ComSpec: "C:\\cmd.exe" };
  const files = new Set(["c:\\node js\\npx.cmd", "c:\\node js\\node.exe", "d:\\run.bat"]);
  const on = (command: string, args: string[]) =>
    windowsCommand(command, args, env, "win32", (path) => files.has(path.toLowerCase()));
  const through = (line: string) => ({
    command: "C:\\cmd.exe",
    args: ["/d", "/s", "/c", line],
    verbatim: true,
  });

  it("STD-02 B128: a program is found along the PATH of the server's environment and started as it is", () => {
    expect(on("node", ["a b"])).toEqual({ command: "C:\\node js\\node.EXE", args: ["a b"], verbatim: false });
    expect(on("nowhere", [])).toEqual({ command: "nowhere", args: [], verbatim: false });
  });

  it("STD-02 B128: a batch file goes through cmd.exe, everything in quotes", () => {
    expect(on("npx", ["-y", "a b", "x&y|z^<>", "C:\\dir\\"])).toEqual(
      through('""C:\\node js\\npx.CMD" "-y" "a b" "x&y|z^<>" "C:\\dir\\\\""'),
    );
    expect(on("npx.cmd", [])).toEqual(through('""C:\\node js\\npx.cmd""'));
    expect(on("D:\\run.bat", [])).toEqual(through('""D:\\run.bat""'));
  });

  for (const [name, arg] of [
    ["a quote", 'say "hi"'],
    ["a percent sign", "%PATH%"],
    ["a line break", "a\nb"],
  ] as const) {
    it(`STD-02 B128: ${name} in an argument of a batch file is refused, with the way out`, () => {
      expect(() => on("npx", [arg])).toThrow(/cannot be passed safely.*node with the script's path/);
    });
  }

  it("STD-02 B128: elsewhere nothing is changed", () => {
    expect(windowsCommand("npx", ['"%'], {}, "linux")).toEqual({
      command: "npx",
      args: ['"%'],
      verbatim: false,
    });
  });
});
