import { describe, expect, it, vi } from "vitest";
import { CancelledError, ClosedError, RpcError, TimeoutError, UsageError } from "../../src/errors.ts";
import type { Script } from "../../src/testing/peer-types.ts";
import {
  acknowledge,
  acknowledging,
  BINDINGS,
  cancelListen,
  change,
  endGracefully,
  HTTP,
  nameOf,
  next,
  QUICK,
  readAll,
  rig,
  STDIO,
  TOOLS,
  UPDATED,
} from "./subscription-rig.ts";

describe.each(BINDINGS)("over $name", (binding) => {
  it("SUB-01: the acknowledged filter is exposed, and changes come in order", async () => {
    const { client, peer, states, anomalies } = await rig(
      binding,
      acknowledging((request, exchange) => {
        change(request, exchange);
        change(request, exchange, UPDATED, { uri: "note://1" });
        change(request, exchange, "notifications/example/happened", { n: 1 });
      }),
    );
    const filter = { toolsListChanged: true, promptsListChanged: false, resourceSubscriptions: ["note://1"] };
    const subscription = client.subscribe(filter, { meta: { "example.com/trace": "t1" } });
    expect(subscription.state).toBe("opening");
    expect(await subscription.acknowledged).toEqual({
      toolsListChanged: true,
      resourceSubscriptions: ["note://1"],
    });
    expect(subscription).toMatchObject({ state: "open", refused: [] });

    expect(await next(subscription)).toMatchObject({ type: "notification", method: TOOLS });
    expect(await next(subscription)).toMatchObject({
      type: "notification",
      method: UPDATED,
      params: { uri: "note://1" },
    });
    expect(await next(subscription)).toMatchObject({ type: "extension", params: { n: 1 } });

    const [request] = peer.requests;
    expect(request?.method).toBe("subscriptions/listen");
    expect(request?.params.notifications).toEqual({
      toolsListChanged: true,
      resourceSubscriptions: ["note://1"],
    });
    expect(request?.meta).toMatchObject({
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test-host" },
      "io.modelcontextprotocol/clientCapabilities": {},
      "example.com/trace": "t1",
    });

    await subscription.close();
    await subscription.close();
    expect(await subscription.closed).toEqual({ reason: "closed-by-host" });
    expect(await next(subscription)).toBeUndefined();
    expect(states()).toEqual(["opening", "open", "closed"]);
    expect(anomalies()).toEqual([]);
    await peer.waitForCancelled(1);
    const told = peer.notifications.filter(({ method }) => method === "notifications/cancelled");
    expect(told.map(({ params }) => params.requestId)).toEqual(binding.shared ? [request?.id] : []);
  });

  it("SUB-01: several subscriptions at once each get their own changes", async () => {
    const { client } = await rig(
      binding,
      acknowledging((request, exchange) => {
        const { resourceSubscriptions } = request.params.notifications as { resourceSubscriptions: string[] };
        for (const uri of resourceSubscriptions) change(request, exchange, UPDATED, { uri });
      }),
    );
    const uris = ["note://1", "note://2", "note://3", "note://4"];
    const subscriptions = uris.map((uri) => client.subscribe({ resourceSubscriptions: [uri] }));
    const items = await Promise.all(subscriptions.map(next));
    expect(items.map((item) => item?.type === "notification" && item.params?.uri)).toEqual(uris);
    expect(new Set(subscriptions.map(({ id }) => id)).size).toBe(4);
  });

  const ends: [string, Script, object][] = [
    ["B064: a result is a graceful end", endGracefully, { reason: "graceful" }],
    [
      "B064: a cancel of the listen request is the server's",
      cancelListen,
      { reason: "server-cancelled", message: "shutting down" },
    ],
    [
      "B064: a cancel and then a result are one end",
      (request, exchange) => {
        cancelListen(request, exchange);
        endGracefully(request, exchange);
      },
      { reason: "server-cancelled" },
    ],
    [
      "B064: a result and then a cancel are one end",
      (request, exchange) => {
        endGracefully(request, exchange);
        cancelListen(request, exchange);
      },
      { reason: "graceful" },
    ],
    [
      "an error after the acknowledgment is final",
      (_request, exchange) => exchange.error(-32603, "out of memory"),
      { reason: "failed", error: { code: "rpc", rpcCode: -32603 } },
    ],
    [
      "MRTR-01: a listen request that is answered input_required is a violation",
      (_request, exchange) => exchange.result({ resultType: "input_required", requestState: "s" }),
      { reason: "failed", error: { code: "protocol-violation", field: "result.resultType" } },
    ],
  ];
  it.each(ends)("SUB-01 %s", async (_title, end, expected) => {
    const { client, peer, states } = await rig(binding, async (request, exchange) => {
      if (request.method !== "subscriptions/listen") return exchange.result({ resultType: "complete" });
      acknowledge(request, exchange);
      change(request, exchange);
      await end(request, exchange);
    });
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten: QUICK });
    // What came before the end can still be read, and the loop ends by itself.
    expect(await readAll(subscription)).toEqual([TOOLS]);
    expect(await subscription.closed).toMatchObject(expected);
    expect(await subscription.acknowledged).toEqual({ toolsListChanged: true });
    // A call that is answered after it shows that nothing came after the end, and that nothing was told back.
    await client.request("example/ping");
    expect(states()).toEqual(["opening", "open", "closed"]);
    expect(peer.requests.filter(({ method }) => method === "subscriptions/listen")).toHaveLength(1);
    expect(peer.notifications.filter(({ method }) => method === "notifications/cancelled")).toEqual([]);
  });

  it("SUB-01 B062: a server without subscriptions fails it with its error, once", async () => {
    const { client, peer } = await rig(binding, (_request, exchange) =>
      exchange.error(-32601, "Method not found"),
    );
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten: QUICK });
    await expect(subscription.acknowledged).rejects.toMatchObject({ code: "rpc", rpcCode: -32601 });
    const end = await subscription.closed;
    expect(end).toMatchObject({ reason: "failed", error: expect.any(RpcError) });
    expect(await readAll(subscription)).toEqual([]);
    expect(peer.requests).toHaveLength(1);
  });

  it("SUB-01 B065: an empty acknowledgment is reported and listened to", async () => {
    const { client, peer, events } = await rig(
      binding,
      (request, exchange) => void acknowledge(request, exchange, {}),
    );
    const subscription = client.subscribe({ toolsListChanged: true, resourceSubscriptions: ["note://1"] });
    expect(await subscription.acknowledged).toEqual({});
    expect(subscription).toMatchObject({ state: "open", refused: ["toolsListChanged", "note://1"] });
    expect(events).toContainEqual(
      expect.objectContaining({ state: "open", refused: ["toolsListChanged", "note://1"] }),
    );
    await subscription.close();
    expect(peer.requests).toHaveLength(1);
  });

  it("SUB-01 B065: an empty acknowledgment and an end at once do not loop", async () => {
    const { client, peer } = await rig(binding, (request, exchange) => {
      acknowledge(request, exchange, {});
      endGracefully(request, exchange);
    });
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten: QUICK });
    expect(await subscription.closed).toEqual({ reason: "graceful" });
    expect(subscription.refused).toEqual(["toolsListChanged"]);
    expect(peer.requests).toHaveLength(1);
  });

  it("SUB-01: a listen request that is not acknowledged in time is cancelled, and tried again a few times", async () => {
    const { client, peer, states, clock } = await rig(binding, () => {});
    const ackMs = 54_321;
    const subscription = client.subscribe(
      { toolsListChanged: true },
      { ackMs, relisten: { ...QUICK, firstMax: 1 } },
    );
    for (const listens of [1, 2]) {
      await peer.waitFor(listens);
      expect(clock.fire(ackMs)).toBe(1);
    }
    expect(await subscription.closed).toMatchObject({
      reason: "failed",
      error: { code: "timeout", limitMs: ackMs },
    });
    await expect(subscription.acknowledged).rejects.toBeInstanceOf(TimeoutError);
    await peer.waitForCancelled(2);
    expect(peer.requests).toHaveLength(2);
    expect(states()).toEqual(["opening", "lost", "opening", "closed"]);
  });

  it("SUB-01 B091: no timeout of calls ends an idle stream, and its end fails no call", async () => {
    let endListen = () => {};
    const { client } = await rig(
      binding,
      (request, exchange) => {
        if (request.method === "subscriptions/listen") {
          acknowledge(request, exchange);
          endListen = () => exchange.error(-32603, "the stream failed");
        } else if (request.method === "example/slow") {
          setTimeout(() => exchange.result({ resultType: "complete", slow: true }), 150);
        } else {
          exchange.result({ resultType: "complete" });
        }
      },
      { timeouts: { attemptMs: 40, attemptMaxMs: 40, operationMs: 40 } },
    );
    const subscription = client.subscribe({ toolsListChanged: true });
    await subscription.acknowledged;
    const bounds = { attemptMs: 5000, attemptMaxMs: 5000, operationMs: 5000 };
    await client.request("example/slow", {}, bounds);
    expect(subscription.state).toBe("open");

    const calls = Promise.all([1, 2, 3].map(() => client.request("example/slow", {}, bounds)));
    endListen();
    expect(await subscription.closed).toMatchObject({ reason: "failed" });
    expect(await calls).toHaveLength(3);
  });

  it("SUB-01: closing the client ends its subscriptions, also those that come later", async () => {
    const { client, peer } = await rig(binding, acknowledging());
    const subscription = client.subscribe({ toolsListChanged: true });
    await subscription.acknowledged;
    const reading = readAll(subscription);
    const opening = client.subscribe({ promptsListChanged: true });
    const closing = client.close();
    const late = client.subscribe({ toolsListChanged: true });
    for (const each of [subscription, opening, late]) {
      expect(await each.closed).toEqual({ reason: "client-closed" });
    }
    await expect(late.acknowledged).rejects.toBeInstanceOf(ClosedError);
    expect(await reading).toEqual([]);
    await closing;
    expect(peer.requests.length).toBeLessThanOrEqual(2);
  });
});

describe("the reader", () => {
  it("SUB-01: leaving the loop closes the subscription", async () => {
    const { client, peer } = await rig(
      HTTP,
      acknowledging((request, exchange) => change(request, exchange)),
    );
    const subscription = client.subscribe({ toolsListChanged: true });
    for await (const item of subscription) {
      expect(nameOf(item)).toBe(TOOLS);
      break;
    }
    expect(await subscription.closed).toEqual({ reason: "closed-by-host" });
    await peer.waitForCancelled(1);
  });

  it("SUB-01: `await using` closes the subscription", async () => {
    const { client, peer } = await rig(STDIO, acknowledging());
    {
      await using subscription = client.subscribe({ toolsListChanged: true });
      await subscription.acknowledged;
    }
    await peer.waitForCancelled(1);
  });

  it("SUB-01: a reader that does not keep up gets a gap where items were dropped", async () => {
    let heard = 0;
    let allHeard = () => {};
    const ten = new Promise<void>((resolve) => {
      allHeard = resolve;
    });
    let more = () => {};
    const { client } = await rig(
      HTTP,
      acknowledging((request, exchange) => {
        for (let n = 0; n < 10; n++) change(request, exchange, UPDATED, { uri: `note://${n}` });
        more = () => {
          change(request, exchange);
          endGracefully(request, exchange);
        };
      }),
      { onNotification: () => void (++heard === 10 && allHeard()) },
    );
    const subscription = client.subscribe(
      { toolsListChanged: true, resourceSubscriptions: ["note://0"] },
      { queueSize: 3 },
    );
    await ten;
    const first = await Promise.all([1, 2, 3].map(() => next(subscription)));
    expect(first.map((item) => item?.type === "notification" && item.params?.uri)).toEqual([
      "note://0",
      "note://1",
      "note://2",
    ]);
    more();
    expect(await readAll(subscription)).toEqual(["gap overflow", TOOLS]);
  });

  it("SUB-01 CAN-03: the signal closes it; one that has aborted already sends nothing", async () => {
    const { client, peer } = await rig(HTTP, () => {});
    const aborted = client.subscribe({ toolsListChanged: true }, { signal: AbortSignal.abort("no") });
    expect(await aborted.closed).toEqual({ reason: "closed-by-host" });
    await expect(aborted.acknowledged).rejects.toMatchObject({ code: "cancelled", cause: "no" });
    expect(peer.requests).toHaveLength(0);

    const controller = new AbortController();
    const remove = vi.spyOn(controller.signal, "removeEventListener");
    const open = client.subscribe({ toolsListChanged: true }, { signal: controller.signal });
    const closed = client.subscribe({ toolsListChanged: true }, { signal: controller.signal });
    await peer.waitFor(2);
    await closed.close();
    controller.abort("enough");
    expect(await open.closed).toEqual({ reason: "closed-by-host" });
    await expect(open.acknowledged).rejects.toBeInstanceOf(CancelledError);
    await peer.waitForCancelled(2);
    expect(remove.mock.calls.length).toBeLessThanOrEqual(1);
  });
});

describe("the host", () => {
  it("SUB-01: every change also reaches onNotification, the reader after it", async () => {
    const heard: string[] = [];
    const { client } = await rig(
      HTTP,
      acknowledging((request, exchange) => {
        change(request, exchange);
        endGracefully(request, exchange);
      }),
      { onNotification: ({ method }) => void heard.push(method) },
    );
    const subscription = client.subscribe({ toolsListChanged: true });
    expect(await readAll(subscription)).toEqual([TOOLS]);
    expect(heard).toEqual([TOOLS]);
  });

  it("SAF-02 SUB-01: callbacks that throw, reject or close in the middle do no harm", async () => {
    const { client } = await rig(
      HTTP,
      acknowledging((request, exchange) => {
        change(request, exchange);
        change(request, exchange);
      }),
      {
        onNotification: (() => Promise.reject(new Error("the host's"))) as () => void,
        onEvent: (event) => {
          if (event.type === "subscription.changed" && event.state === "open") void second.close();
          throw new Error("the host's");
        },
      },
    );
    const first = client.subscribe({ toolsListChanged: true });
    const second = client.subscribe({ promptsListChanged: true });
    expect(nameOf(await next(first))).toBe(TOOLS);
    expect(nameOf(await next(first))).toBe(TOOLS);
    expect(await second.closed).toEqual({ reason: "closed-by-host" });
  });

  it("SAF-02 SUB-01: a meta function that throws fails the subscription, and nothing is sent", async () => {
    const { client, peer } = await rig(HTTP, acknowledging());
    const meta = () => {
      throw new Error("no trace");
    };
    const subscription = client.subscribe({ toolsListChanged: true }, { meta });
    expect(await subscription.closed).toMatchObject({ reason: "failed", error: expect.any(UsageError) });
    expect(peer.requests).toHaveLength(0);
  });

  it("SUB-01: a known discovery does not keep the acknowledgment's time from running", async () => {
    const discovery = { supportedVersions: ["2026-07-28"], capabilities: {} };
    const { client, peer, clock } = await rig(STDIO, () => {}, { discovery });
    const ackMs = 54_321;
    const subscription = client.subscribe({ toolsListChanged: true }, { ackMs, relisten: { firstMax: 0 } });
    // The process is being started: that time is not the acknowledgment's.
    expect(clock.fire(ackMs)).toBe(0);
    await peer.waitFor(1);
    expect(clock.fire(ackMs)).toBe(1);
    expect(await subscription.closed).toMatchObject({ reason: "failed", error: { code: "timeout" } });
  });

  it("SUB-01: a meta function that closes the subscription keeps it from being listened to again", async () => {
    const { client, peer } = await rig(
      HTTP,
      acknowledging((_request, exchange) => exchange.drop()),
    );
    let made = 0;
    const meta = () => {
      if (++made === 2) void subscription.close();
      return {};
    };
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten: QUICK, meta });
    expect(await subscription.closed).toEqual({ reason: "closed-by-host" });
    expect(peer.requests).toHaveLength(1);
  });

  const wrong: [string, unknown, object, RegExp][] = [
    ["no filter", undefined, {}, /must be an object/],
    ["an array", [], {}, /must be an object/],
    ["an empty filter", {}, {}, /asks for nothing/],
    ["a filter of false", { toolsListChanged: false, resourceSubscriptions: [] }, {}, /asks for nothing/],
    ["an unknown member", { toolListChanged: true }, {}, /filter\.toolListChanged is unknown/],
    ["a flag that is no boolean", { toolsListChanged: "yes" }, {}, /must be true or false, not string/],
    ["a URI that is no string", { resourceSubscriptions: [1] }, {}, /must be an array of URIs/],
    ["an ackMs of 0", { toolsListChanged: true }, { ackMs: 0 }, /ackMs/],
    ["a queueSize of NaN", { toolsListChanged: true }, { queueSize: Number.NaN }, /queueSize/],
    ["no pause", { toolsListChanged: true }, { relisten: { backoffMs: 0 } }, /relisten\.backoffMs/],
    ["a negative max", { toolsListChanged: true }, { relisten: { max: -1 } }, /relisten\.max/],
    ["a relisten of true", { toolsListChanged: true }, { relisten: true }, /relisten must be an object/],
    ["meta that is no object", { toolsListChanged: true }, { meta: [] }, /meta must be an object/],
  ];
  it.each(wrong)("SUB-01: %s is a UsageError at once", async (_title, filter, options, message) => {
    const { client, peer } = await rig(HTTP, acknowledging());
    expect(() => client.subscribe(filter as object, options)).toThrowError(UsageError);
    expect(() => client.subscribe(filter as object, options)).toThrowError(message);
    expect(peer.requests).toHaveLength(0);
  });

  it("SUB-01: a filter of a declared extension is taken as it is", async () => {
    const { client, peer } = await rig(HTTP, acknowledging(), {
      capabilities: { extensions: { "example.com/jobs": {} } },
    });
    const subscription = client.subscribe({ jobIds: ["j1"] } as object);
    expect(await subscription.acknowledged).toEqual({ jobIds: ["j1"] });
    expect(peer.requests[0]?.params.notifications).toEqual({ jobIds: ["j1"] });
  });
});
