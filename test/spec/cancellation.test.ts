import { describe, expect, it } from "vitest";
import type { Client } from "../../src/client.ts";
import type { CallOptions } from "../../src/client-options.ts";
import type { Script } from "../../src/testing/peer-types.ts";
import { complete } from "../../src/testing/replies.ts";
import { BINDINGS, httpJson, httpSse, memory, stdio, webSocket } from "../support/bindings.ts";
import { manualClock, settled } from "../support/clocks.ts";
import { errorOf, expectAtRest, textOf } from "../support/outcomes.ts";

// Cancelling: the caller is released at once, and the peer is told in the transport's own way.

const silent: Script = () => {};

/** Silent to the tool "slow", quick to any other. */
const slowOrQuick: Script = ({ params }, exchange) => {
  if (params.name !== "slow") exchange.result(complete("quick"));
};

for (const { name, open, shared } of BINDINGS) {
  describe(`cancelling over ${name}`, () => {
    it("CAN-01 CAN-02 B070 B079: releases the caller at once, whatever the peer does, and tells the peer once", async () => {
      const rig = await open(slowOrQuick);
      const controller = new AbortController();
      const call = errorOf(rig.client.callTool("slow", {}, { signal: controller.signal }));
      await rig.peer.waitFor(1);
      const reason = new Error("the user left");
      controller.abort(reason);
      const error = await call;
      expect([error.code, error.cause]).toEqual(["cancelled", reason]);
      expect(rig.client.operations).toEqual([]);
      await rig.peer.waitForCancelled(1);
      const { id } = rig.peer.requests[0]!;
      expect(rig.peer.cancelled).toEqual([id]);
      // Another call shows that nothing more comes, and that the connection is of use.
      expect(textOf(await rig.client.callTool("quick"))).toBe("quick");
      const cancels = rig.peer.notifications.filter(({ method }) => method === "notifications/cancelled");
      expect(cancels.map(({ params }) => params.requestId)).toEqual(shared ? [id] : []);
      expect(JSON.stringify(cancels)).not.toContain("the user left");
      expectAtRest(rig);
    });

    it("CAN-01 CAN-02: one signal for several calls ends those that are pending, and no others", async () => {
      const rig = await open(slowOrQuick);
      const controller = new AbortController();
      const { signal } = controller;
      const slow = [1, 2].map(() => errorOf(rig.client.callTool("slow", {}, { signal })));
      await rig.client.callTool("quick", {}, { signal });
      const apart = errorOf(rig.client.callTool("slow", {}, { attemptMs: 1e9 }));
      await rig.peer.waitFor(4);
      controller.abort();
      for (const call of slow) expect((await call).code).toBe("cancelled");
      await rig.peer.waitForCancelled(2);
      expect(rig.client.operations).toHaveLength(1);
      await rig.client.close();
      expect((await apart).code).toBe("closed");
    });

    it("CAN-03: a signal that has aborted already sends nothing and opens nothing", async () => {
      const rig = await open(silent);
      const error = await errorOf(rig.client.callTool("t", {}, { signal: AbortSignal.abort("before") }));
      expect([error.code, error.cause]).toEqual(["cancelled", "before"]);
      expect(rig.peer.received).toEqual([]);
      expect(rig.events.filter(({ type }) => type === "link.changed")).toEqual([]);
    });

    it("CAN-01 CAN-02: a request that was not written yet is never written, and no cancel for it", async () => {
      const rig = await open(slowOrQuick);
      const cold = new AbortController();
      const first = errorOf(rig.client.callTool("slow", {}, { signal: cold.signal }));
      cold.abort();
      expect((await first).code).toBe("cancelled");
      await rig.client.callTool("quick");
      const warm = new AbortController();
      const second = errorOf(rig.client.callTool("slow", {}, { signal: warm.signal }));
      warm.abort();
      await second;
      await rig.client.callTool("quick");
      expect(rig.peer.requests.map(({ params }) => params.name)).toEqual(["quick", "quick"]);
      expect(rig.peer.notifications).toEqual([]);
    });

    it("CAN-02 B074: a signal that aborts after the answer does nothing", async () => {
      const rig = await open(complete("done"));
      const controller = new AbortController();
      await rig.client.callTool("t", {}, { signal: controller.signal });
      controller.abort();
      await rig.client.callTool("t");
      expect(rig.peer.notifications).toEqual([]);
      expect(rig.peer.cancelled).toEqual([]);
    });

    it("CAN-01 CAN-02 B074: a timeout cancels on the wire as an abort does, and the siblings go on", async () => {
      const clock = manualClock();
      const rig = await open(slowOrQuick, { clock });
      const slow = errorOf(rig.client.callTool("slow", {}, { attemptMs: 25_000 }));
      await rig.peer.waitFor(1);
      await clock.advance(25_000);
      const siblings = await Promise.all([1, 2, 3].map(() => rig.client.callTool("quick")));
      expect(siblings.map(textOf)).toEqual(["quick", "quick", "quick"]);
      expect((await slow).code).toBe("timeout");
      await rig.peer.waitForCancelled(1);
      expect(rig.peer.cancelled).toEqual([rig.peer.requests[0]?.id]);
      expectAtRest(rig);
    });
  });
}

describe("every method", () => {
  const calls: [method: string, call: (client: Client, options: CallOptions) => Promise<unknown>][] = [
    ["callTool", (client, options) => client.callTool("t", {}, options)],
    ["readResource", (client, options) => client.readResource("note://x", options)],
    ["getPrompt", (client, options) => client.getPrompt("p", {}, options)],
    ["complete", (client, options) => client.complete({ ref: {}, argument: {} }, options)],
    ["listTools", (client, options) => client.listTools(options)],
    ["listPrompts", (client, options) => client.listPrompts(options)],
    ["listResources", (client, options) => client.listResources(options)],
    ["listResourceTemplates", (client, options) => client.listResourceTemplates(options)],
    ["discover", (client, options) => client.discover(options)],
    ["request", (client, options) => client.request("x/y", {}, options)],
    ["begin", (client, options) => client.begin("tools/call", { name: "t" }, options)],
  ];
  it.each(calls)("B071: %s takes a signal", async (_method, call) => {
    const rig = await memory.open(silent, { peerOptions: { discover: false } });
    const controller = new AbortController();
    const pending = errorOf(call(rig.client, { signal: controller.signal }));
    await rig.peer.waitFor(1);
    controller.abort("stop");
    expect(await pending).toMatchObject({ code: "cancelled", cause: "stop" });
    expect(rig.peer.cancelled).toHaveLength(1);
  });
});

it.each([{}, null, "abort"])(
  "CAN-03: a signal that is none (%j) is a UsageError, and nothing is left pending",
  async (signal) => {
    const rig = await memory.open(silent);
    const error = await errorOf(rig.client.callTool("t", {}, { signal: signal as never }));
    expect(error).toMatchObject({ code: "usage", path: "signal" });
    expect([rig.client.operations.length, rig.peer.received.length]).toEqual([0, 0]);
  },
);

describe("over Streamable HTTP", () => {
  it("CAN-01: cancelling closes a stream that has begun", async () => {
    const rig = await httpSse.open((_request, exchange) =>
      exchange.notify("notifications/message", { data: 1 }),
    );
    const controller = new AbortController();
    const heard = new Promise<void>((resolve) => {
      const onLog = () => resolve();
      void errorOf(rig.client.callTool("t", {}, { signal: controller.signal, onLog }));
    });
    await heard;
    controller.abort();
    await rig.peer.waitForCancelled(1);
    expect(rig.peer.received).toHaveLength(1);
  });

  it("CAN-01: a call that waits for a connection is dropped from the queue", async () => {
    const rig = await httpJson.open(
      async ({ params }, exchange) => {
        if (params.name === "first") await rig.peer.waitForCancelled(1);
        exchange.result(complete("done"));
      },
      { http: { maxConnections: 1 } },
    );
    const first = new AbortController();
    const holding = errorOf(rig.client.callTool("first", {}, { signal: first.signal }));
    await rig.peer.waitFor(1);
    const queued = new AbortController();
    const waiting = errorOf(rig.client.callTool("queued", {}, { signal: queued.signal }));
    await settled();
    queued.abort();
    expect((await waiting).code).toBe("cancelled");
    first.abort();
    await holding;
    await rig.client.callTool("third");
    expect(rig.peer.requests.map(({ params }) => params.name)).toEqual(["first", "third"]);
  });
});

for (const { name, open } of [stdio, webSocket]) {
  describe(`a cancel of the server over ${name}`, () => {
    it("B076: of an ordinary request is illegal, and changes nothing", async () => {
      const rig = await open(({ id }, exchange) => {
        exchange.notify("notifications/cancelled", { requestId: id, reason: "no" });
        exchange.notify("notifications/cancelled", { requestId: "x" });
        exchange.result(complete("done"));
      });
      expect(textOf(await rig.client.callTool("t"))).toBe("done");
      const kinds = rig.events.flatMap((event) => (event.type === "wire.anomaly" ? [event.kind] : []));
      expect(kinds).toEqual(["unexpected-cancel", "unexpected-cancel"]);
    });
  });
}
