import { describe, expect, it } from "vitest";
import { type Bucket, histogram, percentiles } from "../../src/cli/bench-figures.ts";
import {
  complete,
  createScriptedPeer,
  elicitForm,
  inputRequired,
  type Script,
} from "../../src/testing/index.ts";
import { officialStdio } from "../support/servers.ts";
import { document, type Run, run } from "./harness.ts";

/** Runs the bench on a scripted peer over HTTP. */
async function onPeer(script: Script, argv: readonly string[]): Promise<Run & { calls: number }> {
  await using peer = createScriptedPeer(script);
  const { url } = await peer.http();
  const ended = await run(["bench", url, ...argv]);
  return { ...ended, calls: peer.requests.filter(({ method }) => method === "tools/call").length };
}

const ECHOES: Script = (_request, exchange) => exchange.result(complete("hello"));

/** Asks once, and is content with what it is told. */
const ASKS: Script = (request, exchange) =>
  exchange.result(
    "inputResponses" in request.params
      ? complete("done")
      : inputRequired({ inputRequests: { sure: elicitForm("Sure?") }, requestState: "s" }),
  );

const FEW = ["--calls", "6", "--warm-up", "2"];

describe("bench", () => {
  it("says in its help that it sends nothing again by default, which is not what a call does", async () => {
    expect((await run(["bench", "--help"])).stdout).toMatch(/whose answer was lost; default\s+never/);
    expect((await run(["call", "--help"])).stdout).toMatch(/whose answer was lost; default\s+always/);
  });

  it("calls the named tool, and tells where the time of its calls went", async () => {
    const { code, stdout, stderr, calls } = await onPeer(ECHOES, ["--tool", "echo", ...FEW]);
    expect([code, stderr, calls]).toEqual([0, "", 8]);
    expect(stdout).toMatch(/^echo: 6 calls in [\d.]+ s, [\d.]+ a second, 1 at a time\n/);
    for (const name of ["call", "exchange", "engine"]) {
      expect(stdout).toMatch(
        new RegExp(`^${name} +p50 +[\\d.]+ ms {2}p90 +[\\d.]+ ms {2}p99 +[\\d.]+ ms`, "m"),
      );
    }
    expect(stdout).toMatch(/^ {2}wire, about +p50 +[\d.]+ ms\n {2}server, about +p50 +[\d.]+ ms\n/m);
    expect(stdout).toMatch(/^ {2}up to +[\d.]+ ms +\d+ #+$/m);
  });

  it("--json is one document, whose rounds add up to the calls", async () => {
    const ended = await onPeer(ASKS, ["--tool", "ask", ...FEW, "--json", "--answer", "sure=decline"]);
    expect([ended.code, ended.stderr]).toEqual([0, ""]);
    const report = document(ended) as unknown as {
      calls: number;
      concurrency: number;
      callMs: { max: number };
      roundTripMs: number;
      rounds: {
        round: number;
        calls: number;
        exchangeMs: { p50: number; max: number };
        wireMs: number;
        serverMs: number;
        engineMs: { min: number };
        inputMs?: { min: number };
        histogram: Bucket[];
      }[];
    };
    expect(report).toMatchObject({ tool: "ask", calls: 6, concurrency: 1, failures: {}, toolErrors: 0 });
    expect(report.rounds.map(({ round, calls }) => [round, calls])).toEqual([
      [1, 6],
      [2, 6],
    ]);
    for (const { exchangeMs, wireMs, serverMs, engineMs, histogram: buckets } of report.rounds) {
      expect(exchangeMs.max).toBeLessThan(report.callMs.max);
      expect(wireMs + serverMs).toBeCloseTo(exchangeMs.p50);
      expect(engineMs.min).toBeGreaterThan(0);
      expect(buckets.reduce((sum, { count }) => sum + count, 0)).toBe(6);
    }
    expect(report.rounds[0]!.inputMs).toBeUndefined();
    expect(report.rounds[1]!.inputMs!.min).toBeGreaterThanOrEqual(0);
  });

  it("a state-only round counts as a pause, not as the engine's time", async () => {
    const script: Script = (request, exchange) =>
      exchange.result(
        request.params.requestState === "s" ? complete("done") : inputRequired({ requestState: "s" }),
      );
    const ended = await onPeer(script, ["--tool", "wait", "--calls", "1", "--warm-up", "0", "--json"]);
    const { rounds } = document(ended) as { rounds: Record<string, { min: number }>[] };
    expect(rounds[1]!.pauseMs!.min).toBeGreaterThan(200);
    expect(rounds[1]!.engineMs!.min).toBeLessThan(100);
  });

  it("--concurrency keeps so many calls under way, and no more", async () => {
    let running = 0;
    let most = 0;
    const script: Script = async (request, exchange) => {
      if (request.method !== "tools/call") return exchange.result(complete("x"));
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 5));
      running--;
      exchange.result(complete("x"));
    };
    const { code } = await onPeer(script, [
      "--tool",
      "t",
      "--calls",
      "12",
      "--warm-up",
      "0",
      "--concurrency",
      "3",
    ]);
    expect([code, most]).toEqual([0, 3]);
  });

  it("over stdio, and the time is up before the calls are", async () => {
    const { command, args } = officialStdio();
    const ended = await run(
      [
        "bench",
        "--tool",
        "slow",
        "--args",
        '{"ms":30,"steps":1}',
        "--seconds",
        "1",
        "--warm-up",
        "0",
        "--json",
      ].concat("--", command, args),
    );
    expect(ended.code).toBe(0);
    const { calls, seconds, rounds } = document(ended) as {
      calls: number;
      seconds: number;
      rounds: { exchangeMs: { min: number } }[];
    };
    expect(calls).toBeLessThan(40);
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(rounds[0]!.exchangeMs.min).toBeGreaterThan(25);
  });

  it("1: every call said isError", async () => {
    const script: Script = (_request, exchange) => exchange.result({ ...complete("no"), isError: true });
    const { code, stdout } = await onPeer(script, ["--tool", "t", ...FEW]);
    expect(code).toBe(1);
    expect(stdout).toContain("the tool said isError 6 times");
  });

  it("3: a question without an answer ends it in the warm-up", async () => {
    const { code, stdout, stderr, calls } = await onPeer(ASKS, ["--tool", "ask", ...FEW]);
    expect([code, stdout, calls]).toEqual([3, "", 1]);
    expect(stderr).toMatch(/sure/);
  });

  it("4: leaves a server alone that only fails", async () => {
    let count = 0;
    const script: Script = (_request, exchange) =>
      ++count > 2 ? exchange.error(-32603, "no more") : exchange.result(complete("x"));
    const { code, stderr, calls } = await onPeer(script, ["--tool", "t", "--warm-up", "2"]);
    expect([code, calls]).toEqual([4, 12]);
    expect(stderr).toMatch(/no more/);
  });

  it.each([
    [["--seconds", "1"], /bench needs --tool NAME/],
    [["--tool", "t", "--concurrency", "0"], /--concurrency must be at least 1/],
    [["--tool", "t", "--seconds", "many"], /--seconds must be a whole number/],
    [["--tool", "t", "--args", "[1]"], /--args must be a JSON object/],
  ])("2: %j, and nothing is called", async (argv, message) => {
    const { code, stdout, stderr, calls } = await onPeer(ECHOES, argv);
    expect([code, stdout, calls]).toEqual([2, "", 0]);
    expect(stderr).toMatch(message);
  });
});

describe("figures", () => {
  it("percentiles are values that came", () => {
    expect(percentiles([5, 1, 4, 2, 3])).toEqual({ min: 1, p50: 3, p90: 5, p99: 5, max: 5 });
    expect(percentiles([7])).toEqual({ min: 7, p50: 7, p90: 7, p99: 7, max: 7 });
  });

  it.each([
    [[0.3, 0.4, 7], { 0.5: 2, 1: 0, 2: 0, 5: 0, 10: 1 }],
    [[1], { 1: 1 }],
    [[0], { 0.001: 1 }],
    [[150, 20], { 20: 1, 50: 0, 100: 0, 200: 1 }],
  ])("the histogram of %j has no empty ends", (values, expected) => {
    const buckets = histogram(values).map(({ toMs, count }) => [toMs, count]);
    expect(buckets).toEqual(
      Object.entries(expected)
        .map(([to, count]) => [Number(to), count])
        .sort(([a], [b]) => a! - b!),
    );
  });
});
