import { describe, expect, it } from "vitest";
import type { CapabilityRequiredError, RpcError, UsageError } from "../../src/errors.ts";
import { META } from "../../src/protocol.ts";
import type { Script } from "../../src/testing/peer-types.ts";
import { complete } from "../../src/testing/replies.ts";
import {
  BINDINGS,
  HTTP_AND_STDIO,
  httpJson,
  httpSse,
  memory,
  stdio,
  webSocket,
} from "../support/bindings.ts";
import { errorOf, expectAtRest, textOf } from "../support/outcomes.ts";

// The frame that goes out, and which frame coming back is its answer.

for (const { name, open } of HTTP_AND_STDIO) {
  describe(`a request over ${name}`, () => {
    it("REQ-01 B182: carries the engine's _meta, and the host's merged without overriding it", async () => {
      const rig = await open(complete("done"), {
        info: { name: "the-host", version: "2.0.0", title: "The host" },
        meta: { traceparent: "00-a", mine: { deep: [1] }, [META.clientInfo]: "forged" },
      });
      await rig.client.request("tools/call", {
        name: "t",
        _meta: { tracestate: "x=1", [META.protocolVersion]: "1999-01-01", progressToken: "forged" },
      });
      await rig.client.callTool("t", {}, { meta: { mine: 2, [META.clientCapabilities]: { roots: {} } } });
      const own = {
        [META.protocolVersion]: "2026-07-28",
        [META.clientInfo]: { name: "the-host", version: "2.0.0", title: "The host" },
        [META.clientCapabilities]: {},
      };
      expect(rig.peer.requests.map(({ meta }) => meta)).toEqual([
        { ...own, traceparent: "00-a", mine: { deep: [1] }, tracestate: "x=1" },
        { ...own, traceparent: "00-a", mine: 2 },
      ]);
    });

    it("REQ-01 B143: says its id before its params, so that no param can be taken for it", async () => {
      const rig = await open(complete("done"));
      await rig.client.callTool("t", { id: 99, jsonrpc: "1.0", method: "x" });
      expect(rig.peer.requests[0]?.text).toMatch(
        /^\{"jsonrpc":"2\.0","id":\d+,"method":"tools\/call","params":/,
      );
    });

    it("CAP-01: -32021 lists what the server requires, and is never retried", async () => {
      const required = { elicitation: { form: {} }, roots: {} };
      const rig = await open((_request, exchange) =>
        exchange.error(-32021, "more is needed", { requiredCapabilities: required }),
      );
      const error = await errorOf<CapabilityRequiredError>(rig.client.callTool("t"));
      expect(error).toMatchObject({
        code: "capability-required",
        rpcCode: -32021,
        requiredCapabilities: required,
      });
      expect(error.message).toContain("elicitation");
      expect(rig.peer.requests).toHaveLength(1);
    });

    it("B041 B080: an error of the server is an RpcError with code and data, and no other error looks like one", async () => {
      const rig = await open((_request, exchange) => exchange.error(-32602, "no such tool", { tool: "t" }));
      const error = await errorOf<RpcError>(rig.client.callTool("t"));
      expect(error).toMatchObject({
        code: "rpc",
        rpcCode: -32602,
        data: { tool: "t" },
        message: "no such tool",
      });
      expect(error.operation).toMatchObject({ method: "tools/call", round: 1, attempt: 1 });
    });
  });
}

/** Answers with frames that are not the answer, before the one that is. */
const noise: Script = ({ id }, exchange) => {
  exchange.frame(JSON.stringify({ jsonrpc: "2.0", id: String(id), result: { ...complete("string id") } }));
  exchange.frame(
    JSON.stringify({ jsonrpc: "2.0", id: Number(id) + 999, result: { ...complete("another id") } }),
  );
  exchange.result(complete("right"));
};

describe("matching", () => {
  for (const { name, open } of [httpSse, stdio, webSocket]) {
    it(`REQ-02 B139 over ${name}: is strict, and answers to nothing are anomalies`, async () => {
      const rig = await open(noise);
      expect(textOf(await rig.client.callTool("t"))).toBe("right");
      const kinds = rig.events.flatMap((event) => (event.type === "wire.anomaly" ? [event.kind] : []));
      expect(kinds).toEqual(["unknown-id", "unknown-id"]);
    });

    it(`REQ-04 B146 over ${name}: a request of the peer is not answered, and resolves nothing`, async () => {
      const rig = await open(({ id }, exchange) => {
        exchange.frame(JSON.stringify({ jsonrpc: "2.0", id, method: "ping" }));
        exchange.frame(JSON.stringify({ jsonrpc: "2.0", id, method: "sampling/createMessage", params: {} }));
        exchange.result(complete("right"));
      });
      expect(textOf(await rig.client.callTool("t"))).toBe("right");
      const kinds = rig.events.flatMap((event) => (event.type === "wire.anomaly" ? [event.kind] : []));
      expect(kinds).toEqual(["peer-request", "peer-request"]);
      expect(rig.peer.received.every((text) => "method" in JSON.parse(text))).toBe(true);
    });
  }

  it.each([
    ["another id", { id: 4711, result: complete("x") }, "frame"],
    ["an id of null", { id: null, result: complete("x") }, "frame"],
    ["no id", { result: complete("x") }, "frame"],
    ["the id as a string", { id: "1", result: complete("x") }, "frame"],
    ["an error of another id", { id: 4711, error: { code: -32603, message: "broken" } }, "rpc"],
    ["an error without id", { error: { code: -32603, message: "broken" } }, "rpc"],
  ])("REQ-02 B140 B142: one JSON answer to a POST with %s is judged at once", async (_title, frame, code) => {
    const rig = await httpJson.open((_request, exchange) =>
      exchange.raw(JSON.stringify({ jsonrpc: "2.0", ...frame })),
    );
    expect((await errorOf(rig.client.callTool("t"))).code).toBe(code);
    expect(rig.peer.requests).toHaveLength(1);
    expectAtRest(rig);
  });

  it("REQ-02 MRTR-18: an event stream that ends without the answer is a failure", async () => {
    const rig = await httpSse.open(
      (_request, exchange) => {
        exchange.frame(JSON.stringify({ jsonrpc: "2.0", id: 4711, result: complete("x") }));
        exchange.drop();
      },
      { reissue: "never" },
    );
    expect(await errorOf(rig.client.callTool("t"))).toMatchObject({
      code: "connection-lost",
      delivery: "unknown",
    });
  });

  for (const { name, open } of [stdio, webSocket]) {
    it(`REQ-02 B073 over ${name}: a late and a duplicate answer are anomalies, and the others go on`, async () => {
      const rig = await open(async ({ params }, exchange) => {
        if (params.name !== "slow") return exchange.result(complete("quick"));
        await exchange.cancelled;
        exchange.error(0, "cancelled");
        exchange.result(complete("late"));
      });
      const controller = new AbortController();
      const slow = errorOf(rig.client.callTool("slow", {}, { signal: controller.signal }));
      await rig.peer.waitFor(1);
      controller.abort();
      expect((await slow).code).toBe("cancelled");
      await rig.peer.waitForCancelled(1);
      const quick = await Promise.all([1, 2, 3, 4, 5].map(() => rig.client.callTool("quick")));
      expect(quick.map(textOf)).toEqual(Array(5).fill("quick"));
      const kinds = rig.events.flatMap((event) => (event.type === "wire.anomaly" ? [event.kind] : []));
      expect(kinds).toEqual(["late-response", "late-response"]);
    });
  }
});

describe("malformed answers", () => {
  const error = (value: unknown) => ({ jsonrpc: "2.0", error: value });
  const frames: [title: string, frame: object, says: string][] = [
    ["jsonrpc 1.0", { jsonrpc: "1.0", result: {} }, "jsonrpc"],
    ["no jsonrpc", { result: {} }, "jsonrpc"],
    ["both result and error", { jsonrpc: "2.0", result: {}, error: { code: 1, message: "" } }, "both"],
    ["neither", { jsonrpc: "2.0" }, "neither"],
    ["a result that is a list", { jsonrpc: "2.0", result: [] }, "result"],
    ["a result that is null", { jsonrpc: "2.0", result: null }, "result"],
    ["an error that is a string", error("broken"), "error"],
    ["a code that is a string", error({ code: "-32603", message: "" }), "error.code"],
    ["a code that is no whole number", error({ code: 1.5, message: "" }), "error.code"],
    ["no message", error({ code: 1 }), "error.message"],
  ];
  for (const { name, open } of BINDINGS) {
    it(`REQ-03 B145 over ${name}: end their exchange with an error that names the fault`, async () => {
      const rig = await open(
        frames.map(
          ([, frame]): Script =>
            ({ id }, exchange) =>
              exchange.raw(JSON.stringify({ ...frame, id })),
        ),
      );
      for (const [title, , says] of frames) {
        const failed = await errorOf(rig.client.callTool("t"));
        expect([title, failed.code, failed.message]).toEqual([title, "frame", expect.stringContaining(says)]);
      }
      expect(rig.peer.requests).toHaveLength(frames.length);
      expectAtRest(rig);
    });
  }
});

describe("params", () => {
  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  it.each([
    ["a BigInt", { a: { b: [1n] } }, "arguments.a.b[0]"],
    ["a cycle", { a: cycle }, "arguments.a.self"],
    ["a list", [1], "arguments"],
    ["a Date", new Date(0), "arguments"],
    ["an object whose toJSON gives a list", { toJSON: () => [1] }, "arguments"],
  ])(
    "MRTR-06: arguments that are %s are a UsageError with the path, and nothing is sent",
    async (_title, args, path) => {
      const rig = await memory.open(complete("done"));
      const error = await errorOf<UsageError>(rig.client.callTool("t", args));
      expect([error.code, error.path]).toEqual(["usage", path]);
      expect(rig.peer.received).toEqual([]);
    },
  );

  it.each([
    ["a list", [1], "params"],
    ["a Date", new Date(0), "params"],
    ["inputResponses of the wrong type", { inputResponses: [] }, "params.inputResponses"],
    ["a requestState of the wrong type", { requestState: 1 }, "params.requestState"],
    ["a _meta of the wrong type", { _meta: "x" }, "params._meta"],
  ])("MRTR-06: params with %s are a UsageError with the path", async (_title, params, path) => {
    const rig = await memory.open(complete("done"));
    const error = await errorOf<UsageError>(rig.client.request("tools/call", params));
    expect([error.code, error.path]).toEqual(["usage", path]);
    expect(rig.peer.received).toEqual([]);
  });

  it("MRTR-06: what a toJSON of the params gives is read like any other params", async () => {
    const rig = await memory.open(complete("done"));
    await rig.client.request("tools/call", {
      toJSON: () => ({ name: "t", requestState: "s", _meta: { a: 1 } }),
    });
    const { params, meta } = rig.peer.requests[0]!;
    expect(params).toEqual({ name: "t", requestState: "s", _meta: expect.objectContaining({ a: 1 }) });
    expect(meta[META.protocolVersion]).toBe("2026-07-28");
  });
});
