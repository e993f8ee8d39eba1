import { describe, expect, it } from "vitest";
import { drawChart } from "../../bench/chart.ts";
import { checkReport } from "../../bench/checks.ts";
import { sumUp } from "../../bench/profile-owners.ts";
import { type Report, summarise } from "../../bench/report.ts";
import type { ContenderId, Scenario } from "../../bench/scenarios.ts";
import { difference, figure, ratio, type Slice } from "../../bench/statistics.ts";

// What the benchmarks make of what they measured: medians, ratios, verdicts, the chart. The figures are given here.

const slices = (...cpuUs: number[]): Slice[] =>
  cpuUs.map((each) => ({ count: 1, cpuUs: each, wallUs: each, p50Us: each, p99Us: each }));

const SCENARIO: Scenario = {
  id: "echo",
  title: "a scenario with a long title, for the chart",
  transport: "stdio",
  tool: "echo",
  operations: 1,
  budget: 1.2,
};

function reportOf(measured: Partial<Record<ContenderId, Slice[] | string>>, scenario = SCENARIO): Report {
  const summary = summarise(scenario, new Map(Object.entries(measured)) as never);
  return { scenarios: [summary], startUp: [], heap: [], profiles: [] } as unknown as Report;
}

describe("figures", () => {
  it("are medians, with half the distance between the quartiles", () => {
    expect(figure([5, 1, 2, 4, 3])).toEqual({ median: 3, spread: 1 });
    expect(figure([1, 2])).toEqual({ median: 1.5, spread: 0.25 });
  });

  it("compare slices of the same turn, so that what slows both down cancels out", () => {
    const floor = slices(10, 20, 40);
    expect(ratio(slices(11, 22, 44), floor).median).toBeCloseTo(1.1);
    expect(ratio(slices(11, 22, 44), floor).spread).toBeCloseTo(0);
    expect(difference(slices(13, 23, 43), floor)).toEqual({ median: 3, spread: 0 });
  });
});

describe("the check", () => {
  const verdictOf = (...cpuUs: number[]) =>
    checkReport(reportOf({ engine: slices(...cpuUs), floor: slices(10, 10, 10, 10, 10) }))[0]!.verdict;

  it("is met at the budget, and missed above it by more than the runs differ among themselves", () => {
    expect(verdictOf(12, 12, 12, 12, 12)).toBe("met");
    expect(verdictOf(13, 13, 13, 13, 13)).toBe("missed");
    expect(verdictOf(11, 11.9, 13, 14.1, 15)).toBe("noise");
    expect(verdictOf(12.5, 12.9, 13, 13.1, 13.5)).toBe("missed");
  });

  it("holds the engine to what it adds to the binding, where the budget says so", () => {
    const { budget: _, ...rest } = SCENARIO;
    const scenario = { ...rest, budgetOverBindingUs: 3 };
    const checked = (engine: number) =>
      checkReport(reportOf({ engine: slices(engine), binding: slices(10), floor: slices(10) }, scenario));
    expect(checked(12.9)).toMatchObject([{ verdict: "met", budget: 3 }]);
    expect(checked(13.1)).toMatchObject([{ verdict: "missed" }]);
  });

  it("holds start-up and heap to theirs, and passes over what is there for scale", () => {
    const at = (median: number) => ({ median, spread: 1 });
    const report = {
      ...reportOf({}),
      startUp: [
        { id: "a", title: "a", extraMs: at(17), budgetMs: 15 },
        { id: "b", title: "b", extraMs: at(15.5), budgetMs: 15 },
        { id: "c", title: "c", extraMs: at(100) },
      ],
      heap: [{ id: "d", title: "d", bytes: 65, budgetBytes: 64 }],
    } as unknown as Report;
    const verdicts = checkReport(report).map(({ id, verdict }) => [id, verdict]);
    expect(verdicts).toEqual([
      ["a", "missed"],
      ["b", "noise"],
      ["d", "missed"],
    ]);
  });
});

describe("the chart", () => {
  const svg = drawChart(
    reportOf({
      engine: slices(8),
      "client-2": slices(120),
      "ai-sdk": "took too long & <stopped>",
      floor: slices(10),
    }),
  );

  it("draws a bar from the floor: to the left for what is cheaper, to the right for what is dearer", () => {
    const floor = Number(/<line x1="([\d.]+)"[^>]*stroke="#111827"\/>/.exec(svg)![1]);
    const bars = [...svg.matchAll(/<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="9"/g)];
    const [cheap, dear] = bars.map(([, x, width]) => [Number(x), Number(x) + Number(width)]);
    expect(cheap![0]).toBeLessThan(floor);
    expect(cheap![1]).toBeCloseTo(floor, 0);
    expect(dear![0]).toBe(floor);
    expect(dear![1]).toBeLessThan(880);
    expect(svg).toContain(">0.80</text>");
    expect(svg).toContain(">12.00</text>");
  });

  it("has room for the titles, and keeps the text of the page", () => {
    const title = /<text x="([\d.]+)" y="[\d.]+" text-anchor="end">([^<]*)</.exec(svg)!;
    expect(title[2]).toBe(SCENARIO.title);
    expect(Number(title[1])).toBeGreaterThan(SCENARIO.title.length * 6);
  });
});

describe("a profile", () => {
  it("is summed up by whose code ran, without what is idle or the bench's own", () => {
    const frame = (functionName: string, url: string) => ({ functionName, url, lineNumber: 0 });
    const frames = [
      frame("(idle)", ""),
      frame("(garbage collector)", ""),
      frame("writev", ""),
      frame("insert", "node:internal/timers"),
      frame("dispatch", "file:///x/node_modules/undici/lib/core/request.js"),
      frame("run", "file:///x/bench/profile.mjs"),
      frame("compileSourceTextModule", "node:internal/modules/esm/utils"),
      frame("parse", "file:///x/node_modules/undici/lib/llhttp/parser.js"),
    ];
    const owned = sumUp({
      nodes: frames.map((callFrame, id) => ({ id, callFrame })),
      samples: frames.map((_, id) => id),
      timeDeltas: frames.map((_, id) => 1000 * 2 ** id),
    });
    expect(owned).toEqual({
      engine: 0,
      binding: 0,
      collector: 2,
      native: 4,
      "Node.js": 8,
      packages: 16 + 128,
      compiling: 64,
    });
  });
});
