import { describe, expect, it } from "vitest";
import type { RallyEvent } from "../../src/events.ts";
import type { LogEntry, Progress } from "../../src/pending.ts";
import { META } from "../../src/protocol.ts";
import type { Script } from "../../src/testing/peer-types.ts";
import { complete, elicitForm, inputRequired } from "../../src/testing/replies.ts";
import type { JsonObject } from "../../src/wire.ts";
import { BINDINGS, httpSse, memory, stdio, webSocket } from "../support/bindings.ts";
import { expectAtRest, textOf } from "../support/outcomes.ts";

// What a peer tells on the way to its answer, and whose it is.

const STREAMING = [memory, httpSse, stdio, webSocket];

function anomalies(events: readonly RallyEvent[]): string[] {
  return events.flatMap((event) => (event.type === "wire.anomaly" ? [event.kind] : []));
}

describe("the progress token", () => {
  for (const { name, open } of BINDINGS) {
    it(`PRG-01 over ${name}: is sent only with onProgress or resetOnProgress, and is a new one each time`, async () => {
      const question = inputRequired({ inputRequests: { k: elicitForm("?") } });
      const rig = await open([complete("1"), complete("2"), question, complete("3")], {
        inputs: { elicitForm: () => ({ action: "decline" }) },
      });
      await rig.client.callTool("t");
      await rig.client.callTool("t", {}, { resetOnProgress: true });
      await rig.client.callTool("t", {}, { onProgress: () => {} });
      const [none, ...tokens] = rig.peer.requests.map(({ meta }) => meta.progressToken);
      expect(none).toBeUndefined();
      expect(tokens).toEqual(rig.peer.requests.slice(1).map(({ id }) => id));
      expect(new Set(tokens).size).toBe(3);
    });
  }
});

/** Reports progress `1, 2` before each answer; asks once. */
const twoRounds: Script = ({ params, meta }, exchange) => {
  const { progressToken } = meta;
  exchange.notify("notifications/progress", {
    progressToken,
    progress: 1,
    total: 2,
    message: `${params.name}`,
  });
  exchange.notify("notifications/progress", { progressToken, progress: 2 });
  if ("inputResponses" in params) exchange.result(complete("done"));
  else exchange.result(inputRequired({ inputRequests: { k: elicitForm("?") } }));
};

for (const { name, open } of STREAMING) {
  describe(`notifications over ${name}`, () => {
    it("PRG-01: progress reaches the onProgress of its own attempt, with round and attempt", async () => {
      const rig = await open(twoRounds, { inputs: { elicitForm: () => ({ action: "decline" }) } });
      const heard: Record<string, Progress[]> = { a: [], b: [] };
      await Promise.all(
        ["a", "b"].map((tool) =>
          rig.client.callTool(tool, {}, { onProgress: (progress) => heard[tool]?.push(progress) }),
        ),
      );
      for (const tool of ["a", "b"]) {
        expect(heard[tool]).toEqual([
          { progress: 1, total: 2, message: tool, round: 1, attempt: 1 },
          { progress: 2, round: 1, attempt: 1 },
          { progress: 1, total: 2, message: tool, round: 2, attempt: 2 },
          { progress: 2, round: 2, attempt: 2 },
        ]);
      }
      expect(anomalies(rig.events)).toEqual([]);
    });

    it("PRG-01 B085: what is not this attempt's, or does not increase, is an anomaly and harms nothing", async () => {
      const script: Script = ({ id, params }, exchange) => {
        if (params.name === "after") return exchange.result(complete("after"));
        const good = { progressToken: id, progress: 5 };
        const bad: JsonObject[] = [
          { progressToken: "tool-call-1", progress: 1 },
          { progressToken: String(id), progress: 1 },
          { progressToken: null, progress: 1 },
          { progressToken: 4711, progress: 1 },
          { progress: 1 },
          { ...good, progress: 4 },
          { ...good, progress: 5 },
          { ...good, progress: "6" },
          { ...good, progress: null },
        ];
        exchange.notify("notifications/progress", good);
        for (const params of bad) exchange.notify("notifications/progress", params);
        exchange.frame('{"jsonrpc":"2.0","method":"notifications/progress"}');
        exchange.result(complete("done"));
      };
      const rig = await open(script);
      const heard: number[] = [];
      const options = { onProgress: ({ progress }: Progress) => heard.push(progress) };
      expect(textOf(await rig.client.callTool("t", {}, options))).toBe("done");
      expect(heard).toEqual([5]);
      expect(anomalies(rig.events)).toEqual([
        ...Array(5).fill("unknown-token"),
        ...Array(4).fill("progress-order"),
        "unknown-token",
      ]);
      expect(textOf(await rig.client.callTool("after"))).toBe("after");
      expectAtRest(rig);
    });
  });
}

describe("progress after the end", () => {
  for (const { name, open } of [stdio, webSocket]) {
    it(`PRG-01 B085 over ${name}: is an anomaly`, async () => {
      const script: Script = ({ id, params }, exchange) => {
        exchange.result(complete("done"));
        if (params.name !== "late") return;
        exchange.notify("notifications/progress", { progressToken: id, progress: 1 });
      };
      const rig = await open(script);
      const heard: Progress[] = [];
      await rig.client.callTool("late", {}, { onProgress: (progress) => heard.push(progress) });
      await rig.client.callTool("next");
      expect(heard).toEqual([]);
      expect(anomalies(rig.events)).toEqual(["unknown-token"]);
    });
  }
});

/** Logs one line that names the tool, before the answer; only where the call asked for logs. */
const logging: Script = ({ params, meta }, exchange) => {
  const level = meta[META.logLevel];
  if (level !== undefined) {
    exchange.notify("notifications/message", { level, logger: "peer", data: { tool: params.name } });
  }
  exchange.result(complete("done"));
};
const entry = (tool: string): LogEntry => ({ level: "info", logger: "peer", data: { tool } });

describe("log entries", () => {
  for (const { name, open } of [memory, httpSse]) {
    it(`LOG-01 over ${name}: reach the onLog of their own call, or else the client's`, async () => {
      const general: LogEntry[] = [];
      const rig = await open(logging, { onLog: (log) => general.push(log) });
      const own: Record<string, LogEntry[]> = { a: [], b: [] };
      await Promise.all([
        ...["a", "b"].map((tool) =>
          rig.client.callTool(tool, {}, { logLevel: "info", onLog: (log) => own[tool]?.push(log) }),
        ),
        rig.client.callTool("c", {}, { logLevel: "info" }),
        rig.client.callTool("d"),
      ]);
      expect(own).toEqual({ a: [entry("a")], b: [entry("b")] });
      expect(general).toEqual([entry("c")]);
      const levels = rig.peer.requests.map(({ params, meta }) => [params.name, meta[META.logLevel]]);
      expect(levels.sort()).toEqual([
        ["a", "info"],
        ["b", "info"],
        ["c", "info"],
        ["d", undefined],
      ]);
    });
  }

  for (const { name, open } of [stdio, webSocket]) {
    it(`LOG-01 over ${name}: reach the one pending call with a logLevel, and the client where there are more`, async () => {
      const general: LogEntry[] = [];
      // Two calls that want logs are both pending before either is logged for.
      const waiting: (() => void)[] = [];
      const script: Script = (request, exchange) => {
        if (request.params.name === "plain" || request.params.name === "alone")
          return logging(request, exchange);
        waiting.push(() => logging(request, exchange));
        if (waiting.length === 2) for (const go of waiting) go();
      };
      const rig = await open(script, { onLog: (log) => general.push(log) });
      const own: LogEntry[] = [];
      const onLog = (log: LogEntry) => own.push(log);
      await Promise.all([
        rig.client.callTool("alone", {}, { logLevel: "info", onLog }),
        rig.client.callTool("plain", {}, { onLog }),
      ]);
      expect([own, general]).toEqual([[entry("alone")], []]);
      // The first of the two to end leaves the other the only one: what is not told apart must not be guessed.
      const both = ["a", "b"].map((tool) => rig.client.callTool(tool, {}, { logLevel: "info", onLog }));
      await Promise.all(both);
      expect(general[0]).toEqual(entry("a"));
      expect([...own, ...general].map(({ data }) => (data as { tool: string }).tool).sort()).toEqual([
        "a",
        "alone",
        "b",
      ]);
    });
  }

  it("LOG-01: a malformed entry is handed over as far as it goes", async () => {
    const heard: LogEntry[] = [];
    const rig = await memory.open((_request, exchange) => {
      exchange.notify("notifications/message", { level: 7, data: null });
      exchange.notify("notifications/message");
      exchange.result(complete("done"));
    });
    await rig.client.callTool("t", {}, { onLog: (log) => heard.push(log) });
    expect(heard).toEqual([
      { level: "info", data: null },
      { level: "info", data: undefined },
    ]);
  });
});
