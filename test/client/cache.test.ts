/** The response cache: what is kept, for whom, for how long, and what makes it stale (CCH-01). */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Client, createClient } from "../../src/client.ts";
import type { CallOptions, ClientOptions } from "../../src/client-options.ts";
import type { RallyEvent } from "../../src/events.ts";
import { type CachedResult, type CacheStore, memoryCache } from "../../src/memory-cache.ts";
import { META } from "../../src/protocol.ts";
import type { Script, Step } from "../../src/testing/peer-types.ts";
import { complete, elicitForm, inputRequired } from "../../src/testing/replies.ts";
import { createScriptedPeer } from "../../src/testing/scripted-peer.ts";
import type { JsonObject } from "../../src/wire.ts";
import { httpTransport } from "../../transports/http.ts";
import {
  BINDINGS,
  httpJson,
  httpSse,
  memory,
  type Rig,
  rigOver,
  stdio,
  webSocket,
} from "../support/bindings.ts";
import { manualClock } from "../support/clocks.ts";
import { errorOf, textOf, until } from "../support/outcomes.ts";
import { type StartedServer, startOfficialHttp } from "../support/servers.ts";
import { mirroredValue, regionTool } from "./checking-server.ts";

const MINUTE = { ttlMs: 60_000, cacheScope: "public" };
const RESULTS: Readonly<Record<string, JsonObject>> = {
  "server/discover": { supportedVersions: ["2026-07-28"], capabilities: {} },
  "tools/list": { tools: [{ name: "t", inputSchema: { type: "object" } }] },
  "prompts/list": { prompts: [{ name: "p" }] },
  "resources/list": { resources: [{ uri: "note://a", name: "a" }] },
  "resources/templates/list": { resourceTemplates: [{ uriTemplate: "note://{x}", name: "x" }] },
  "resources/read": { contents: [{ uri: "note://a", text: "a" }] },
  "prompts/get": { messages: [] },
  "completion/complete": { completion: { values: [] } },
  "tools/call": { content: [] },
};

/** Answers any method with its result and `hints`. */
function hinting(hints: JsonObject): Script {
  return ({ method }, exchange) => exchange.result({ resultType: "complete", ...RESULTS[method], ...hints });
}

const WAYS: Readonly<Record<string, (client: Client, options?: CallOptions) => Promise<unknown>>> = {
  "server/discover": (client, options) => client.discover(options),
  "tools/list": (client, options) => client.listTools(options),
  "prompts/list": (client, options) => client.listPrompts(options),
  "resources/list": (client, options) => client.listResources(options),
  "resources/templates/list": (client, options) => client.listResourceTemplates(options),
  "resources/read": (client, options) => client.readResource("note://a", options),
};

function types({ events }: Rig): string[] {
  return events.map(({ type }) => type).filter((type) => type.startsWith("cache."));
}

/** How many requests the peer had to answer for these calls, one after the other. */
async function costOf({ peer }: Rig, ...calls: (() => Promise<unknown>)[]): Promise<number> {
  const before = peer.requests.length;
  for (const call of calls) await call();
  return peer.requests.length - before;
}

describe("what is cached", () => {
  it.each(Object.entries(WAYS))(
    "CCH-01: %s is answered from the cache until its ttl is over",
    async (method, call) => {
      const clock = manualClock();
      const rig = await memory.open(hinting(MINUTE), { clock, peerOptions: { discover: false } });
      const first = await call(rig.client);
      await clock.advance(59_999);
      expect(await call(rig.client)).toEqual(first);
      expect(rig.peer.requests).toHaveLength(1);
      await clock.advance(1);
      await call(rig.client);
      expect(rig.peer.requests).toHaveLength(2);
      const stamp = { method, atMs: expect.any(Number) };
      expect(rig.events.filter(({ type }) => type.startsWith("cache."))).toEqual([
        { type: "cache.stored", ttlMs: 60_000, ...stamp },
        { type: "cache.hit", ageMs: 59_999, ...stamp },
        { type: "cache.stored", ttlMs: 60_000, ...stamp },
      ]);
    },
  );

  it.each(BINDINGS)("CCH-01: a list is fetched once over $name", async ({ open }) => {
    const rig = await open(hinting(MINUTE));
    const list = await rig.client.listTools();
    expect(await rig.client.listTools()).toEqual(list);
    expect(await rig.client.request("tools/list")).toMatchObject({ tools: list });
    expect(rig.peer.requests).toHaveLength(1);
  });

  it("CCH-01: other methods are not cached, whatever hints they carry", async () => {
    const rig = await memory.open(hinting(MINUTE));
    const { client } = rig;
    const cost = await costOf(
      rig,
      ...[0, 1].map(() => () => client.callTool("t")),
      ...[0, 1].map(() => () => client.getPrompt("p")),
      ...[0, 1].map(() => () => client.complete({})),
    );
    expect(cost).toBe(6);
    expect(types(rig)).toEqual([]);
  });

  it("CCH-01: an error is not cached", async () => {
    const rig = await memory.open((_request, exchange) => exchange.error(-32603, "no", { ...MINUTE }));
    await errorOf(rig.client.listTools());
    await errorOf(rig.client.listTools());
    expect(rig.peer.requests).toHaveLength(2);
  });

  it.each<[string, JsonObject, number]>([
    ["zero", { ttlMs: 0 }, 0],
    ["absent", {}, 0],
    ["negative", { ttlMs: -5 }, 0],
    ["a string", { ttlMs: "60000" }, 0],
    ["null, as NaN is written", { ttlMs: Number.NaN }, 0],
    ["an object", { ttlMs: {} }, 0],
    ["less than a millisecond", { ttlMs: 0.5 }, 0],
    ["1.5", { ttlMs: 1.5 }, 1],
    ["a year", { ttlMs: 31_536_000_000 }, 86_400_000],
    ["beyond all numbers", { ttlMs: 1e300 }, 86_400_000],
  ])("CCH-01 B163: a ttlMs that is %s", async (_what, hints, ttlMs) => {
    const clock = manualClock();
    const rig = await memory.open(hinting({ cacheScope: "public", ...hints }), { clock });
    const list = () => rig.client.listTools();
    expect(await costOf(rig, list, list)).toBe(ttlMs === 0 ? 2 : 1);
    if (ttlMs > 0)
      expect(rig.events).toContainEqual(expect.objectContaining({ type: "cache.stored", ttlMs }));
    await clock.advance(ttlMs);
    expect(await costOf(rig, list)).toBe(1);
  });

  it("CCH-01 B163: the time of day may jump as it likes", async () => {
    let wall = 1_000_000;
    const clock = { ...manualClock(), wallNow: () => wall };
    const rig = await memory.open(hinting(MINUTE), { clock });
    await rig.client.listTools();
    wall += 365 * 24 * 3600 * 1000;
    expect(await costOf(rig, () => rig.client.listTools())).toBe(0);
  });

  it.each<[string, Partial<ClientOptions>, CallOptions]>([
    ["the client has none", { cache: false }, {}],
    ["the call bypasses it", {}, { cache: "bypass" }],
    ["the call makes metadata anew each time", {}, { meta: () => ({ tenant: "a" }) }],
  ])("CCH-01: nothing is stored or taken when %s", async (_what, clientOptions, options) => {
    const rig = await memory.open(hinting(MINUTE), clientOptions);
    const list = () => rig.client.listTools(options);
    expect(await costOf(rig, list, list)).toBe(2);
    expect(types(rig)).toEqual([]);
  });

  it("CCH-01: refresh asks the server, and what it says is the new entry", async () => {
    const names = ["old", "new"];
    const rig = await memory.open((_request, exchange) =>
      exchange.result({ tools: [{ name: names.shift(), inputSchema: {} }], ...MINUTE }),
    );
    await rig.client.listTools();
    expect(await rig.client.listTools({ cache: "refresh" })).toMatchObject([{ name: "new" }]);
    expect(await rig.client.listTools()).toMatchObject([{ name: "new" }]);
    expect(rig.peer.requests).toHaveLength(2);
  });

  it("CCH-01: an unknown mode is refused before anything is sent", async () => {
    const rig = await memory.open(hinting(MINUTE));
    const error = await errorOf(rig.client.readResource("note://a", { cache: "never" as "bypass" }));
    expect(error).toMatchObject({ code: "usage", path: "cache" });
    expect(rig.peer.requests).toHaveLength(0);
  });

  it("CAN-03: an aborted signal and a closed client are told apart from a hit", async () => {
    const rig = await memory.open(hinting(MINUTE));
    await rig.client.listTools();
    const aborted = rig.client.request("tools/list", {}, { signal: AbortSignal.abort("no") });
    expect(await errorOf(aborted)).toMatchObject({ code: "cancelled", cause: "no" });
    await rig.client.close();
    expect(await errorOf(rig.client.request("tools/list"))).toMatchObject({ code: "closed" });
  });
});

describe("whose it is", () => {
  it.each<[string, JsonObject]>([
    ["private", { cacheScope: "private" }],
    ["absent", {}],
    ["unknown", { cacheScope: "shared" }],
    ["no string", { cacheScope: 1 }],
  ])("CCH-01 B163: a scope that is %s keeps a result to its authorization", async (_what, scope) => {
    const hints = { ttlMs: 60_000, ...scope };
    const rig = await memory.open(hinting(hints), { cachePartition: (user) => user as string });
    const as = (user: string) => () => rig.client.readResource("note://a", { context: user });
    expect(await costOf(rig, as("ann"), as("bob"), as("ann"), as("bob"))).toBe(2);
  });

  it("CCH-01 B163: with an unknown authorization a private result is not stored, a public one is", async () => {
    const hints = { ttlMs: 60_000, cacheScope: "private" };
    const rig = await memory.open((request, exchange) => hinting(hints)(request, exchange), {
      cachePartition: () => undefined,
    });
    const read = () => rig.client.readResource("note://a");
    expect(await costOf(rig, read, read)).toBe(2);
    hints.cacheScope = "public";
    expect(await costOf(rig, read, read)).toBe(1);
  });

  it("CCH-01 B163: a private result of an unknown authorization is nobody's", async () => {
    const rig = await memory.open(hinting({ ttlMs: 60_000 }), { cachePartition: (user) => user as string });
    const as = (user: string | undefined) => () => rig.client.listTools({ context: user });
    expect(await costOf(rig, as(undefined), as(""), as("undefined"))).toBe(3);
  });

  it("CCH-01: a public result is shared between authorizations", async () => {
    const rig = await memory.open(hinting(MINUTE), { cachePartition: (user) => user as string });
    const as = (user: string) => () => rig.client.listTools({ context: user });
    expect(await costOf(rig, as("ann"), as("bob"))).toBe(1);
  });

  it("CCH-01 B163: the transport tells the authorization, and the host's word stands over it", async () => {
    const peer = createScriptedPeer(hinting({ ttlMs: 60_000, cacheScope: "private" }));
    const transport = Object.assign(peer.memory(), { partition: (user: unknown) => user as string });
    const rig = rigOver(peer, transport);
    const as = (user: string | undefined) => () => rig.client.listTools({ context: user });
    expect(await costOf(rig, as("ann"), as("ann"), as("bob"), as(undefined), as(undefined))).toBe(4);
  });

  it("CCH-01: a partition that throws is an anomaly, and the call goes on without the cache", async () => {
    const rig = await memory.open(hinting({ ttlMs: 60_000 }), {
      cachePartition: () => {
        throw new Error("no user");
      },
    });
    const list = () => rig.client.listTools();
    expect(await costOf(rig, list, list)).toBe(2);
    expect(rig.events).toContainEqual(
      expect.objectContaining({
        type: "wire.anomaly",
        kind: "host-callback",
        detail: { what: "cache.partition", message: "no user" },
      }),
    );
  });

  it.each<[string, CallOptions, CallOptions, number]>([
    ["capabilities", {}, { inputs: { listRoots: () => ({ roots: [] }) } }, 2],
    ["metadata of the call", { meta: { tenant: "a" } }, { meta: { tenant: "b" } }, 2],
    ["a trace", { meta: { traceparent: "00-a" } }, { meta: { traceparent: "00-b" } }, 1],
    ["a log level", { logLevel: "debug" }, { logLevel: "error" }, 1],
  ])("CCH-01: a request that differs in %s", async (_what, first, second, cost) => {
    const rig = await memory.open(hinting(MINUTE));
    const list = (options: CallOptions) => () => rig.client.listTools(options);
    expect(await costOf(rig, list(first), list(second))).toBe(cost);
    expect(await costOf(rig, list(first), list(second))).toBe(0);
  });

  it("CCH-01: a request that differs in its params is another one", async () => {
    const rig = await memory.open(hinting(MINUTE));
    const request = (method: string, params?: object) => () => rig.client.request(method, params);
    const calls = [
      request("tools/list"),
      request("tools/list", { cursor: "" }),
      request("tools/list", { cursor: "a" }),
      request("prompts/list", { cursor: "a" }),
      request("resources/read", { uri: "note://a" }),
      request("resources/read", { uri: "note://b" }),
    ];
    expect(await costOf(rig, ...calls)).toBe(6);
    expect(await costOf(rig, ...calls)).toBe(0);
  });

  it("CCH-01: a request under another protocol version is another one", async () => {
    const versions = ["2027-01-01", "2026-07-28"];
    const supported = [...versions];
    const rig = await memory.open(
      (request, exchange) => {
        const version = request.meta[META.protocolVersion] as string;
        if (supported.includes(version)) hinting(MINUTE)(request, exchange);
        else exchange.error(-32022, "no", { supported });
      },
      { protocolVersions: versions },
    );
    await rig.client.listTools();
    expect(await costOf(rig, () => rig.client.listTools())).toBe(0);
    supported.shift();
    await rig.client.listPrompts();
    const list = () => rig.client.listTools();
    expect(await costOf(rig, list, list)).toBe(1);
  });

  it("CCH-01 B163: neither the first caller nor a later one can change what is cached", async () => {
    const rig = await memory.open(hinting(MINUTE));
    for (const round of ["fetched", "cached"]) {
      const tools = await rig.client.listTools();
      expect(() => {
        (tools[0] as { name: string }).name = round;
      }).toThrow(TypeError);
      expect(() => {
        (tools[0]!.inputSchema as { type: string }).type = round;
      }).toThrow(TypeError);
      tools.pop();
    }
    expect(await rig.client.listTools()).toEqual(RESULTS["tools/list"]!.tools);
    expect(rig.peer.requests).toHaveLength(1);
  });
});

describe("round trips", () => {
  const ASK = inputRequired({ inputRequests: { pin: elicitForm("PIN?") }, requestState: "s", ...MINUTE });
  const OPENED = { resultType: "complete", contents: [{ uri: "note://a", text: "opened" }], ...MINUTE };
  const inputs: ClientOptions["inputs"] = { elicitForm: () => ({ action: "accept", content: { ok: true } }) };

  it("MRTR-12 CCH-01: neither a question nor a result that a retry brought is cached", async () => {
    const script: Script = ({ params }, exchange) =>
      exchange.result("inputResponses" in params ? OPENED : { ...ASK, ...MINUTE });
    const rig = await memory.open(script, { inputs });
    const read = () => rig.client.readResource("note://a");
    expect(await costOf(rig, read, read)).toBe(4);
    expect(types(rig)).toEqual([]);
  });

  it("MRTR-12: state without questions makes a retry as well", async () => {
    const script: Script = ({ params }, exchange) =>
      exchange.result("requestState" in params ? OPENED : inputRequired({ requestState: "s" }));
    const rig = await memory.open(script, { inputs });
    const read = () => rig.client.readResource("note://a");
    expect(await costOf(rig, read, read)).toBe(4);
  });

  it.each([
    ["inputResponses", { inputResponses: {} }],
    ["requestState", { requestState: "" }],
  ])(
    "MRTR-12: a request with the caller's own %s is neither stored nor answered from the cache",
    async (_what, own) => {
      const rig = await memory.open(hinting(MINUTE));
      const plain = () => rig.client.request("resources/read", { uri: "note://a" });
      const retry = () => rig.client.request("resources/read", { uri: "note://a", ...own });
      expect(await costOf(rig, plain, retry, retry, plain)).toBe(3);
    },
  );

  it("MRTR-12: a round trip that started over and asked nothing the second time may be cached", async () => {
    const steps: Step[] = [
      ASK,
      (_request, exchange) => exchange.crash(),
      OPENED,
      (_request, exchange) => exchange.error(-32603, "should be cached"),
    ];
    const rig = await httpSse.open(steps, { inputs });
    const read = () => rig.client.readResource("note://a");
    expect(await costOf(rig, read, read)).toBe(3);
  });

  it("MRTR-12: manual mode has nothing to do with the cache", async () => {
    const rig = await memory.open(hinting(MINUTE));
    const begin = () => rig.client.begin("resources/read", { uri: "note://a" });
    expect(await costOf(rig, begin, begin, () => rig.client.readResource("note://a"))).toBe(3);
  });
});

describe("what makes it stale", () => {
  const NOTIFICATIONS: readonly [string, JsonObject, readonly string[]][] = [
    ["notifications/tools/list_changed", {}, ["tools/list"]],
    ["notifications/prompts/list_changed", {}, ["prompts/list"]],
    ["notifications/resources/list_changed", {}, ["resources/list", "resources/templates/list"]],
    ["notifications/resources/updated", { uri: "note://a" }, ["resources/read"]],
    ["notifications/resources/updated", { uri: "note://a/part" }, ["resources/read"]],
    ["notifications/resources/updated", { uri: "note://b" }, []],
    ["notifications/resources/updated", { uri: 7 }, []],
    ["notifications/other", {}, []],
  ];

  it.each(NOTIFICATIONS)("CCH-01: %s %j evicts %j and no more", async (method, params, evicted) => {
    const rig = await memory.open(
      (request, exchange) => {
        if (request.method === "tools/call") exchange.notify(method, params);
        hinting(MINUTE)(request, exchange);
      },
      { peerOptions: { discover: false } },
    );
    for (const call of Object.values(WAYS)) await call(rig.client);
    await rig.client.callTool("touch");
    const fetched: string[] = [];
    for (const [name, call] of Object.entries(WAYS)) {
      if ((await costOf(rig, () => call(rig.client))) > 0) fetched.push(name);
    }
    expect(fetched).toEqual(evicted);
    const events = rig.events.filter((event) => event.type === "cache.evicted");
    expect(events.map((event) => [event.method, event.entries])).toEqual(evicted.map((name) => [name, 1]));
  });

  it.each([stdio, webSocket])(
    "CCH-01: so does a notification that belongs to no call ($name)",
    async ({ open }) => {
      let change: (() => void) | undefined;
      const seen: string[] = [];
      const rig = await open(
        (request, exchange) => {
          change = () => exchange.notify("notifications/tools/list_changed");
          hinting(MINUTE)(request, exchange);
        },
        { onNotification: ({ method }) => void seen.push(method) },
      );
      const list = () => rig.client.listTools();
      expect(await costOf(rig, list, list)).toBe(1);
      change!();
      await until(() => seen.length > 0, "the notification");
      expect(await costOf(rig, list, list)).toBe(1);
      expect(types(rig)).toContain("cache.evicted");
    },
  );

  it("CCH-01: a result that was sent for before the change is given, and not stored", async () => {
    const rig = await memory.open((request, exchange) => {
      if (rig.peer.requests.length === 1) exchange.notify("notifications/tools/list_changed");
      hinting(MINUTE)(request, exchange);
    });
    const list = () => rig.client.listTools();
    expect(await costOf(rig, list, list, list)).toBe(2);
  });

  it.each([httpSse, stdio])("CCH-01 SUB-01: so does what a subscription tells ($name)", async ({ open }) => {
    let change: (() => void) | undefined;
    const rig = await open((request, exchange) => {
      if (request.method !== "subscriptions/listen") return hinting(MINUTE)(request, exchange);
      const _meta = { [META.subscriptionId]: request.id };
      const { notifications } = request.params;
      exchange.notify("notifications/subscriptions/acknowledged", { _meta, notifications });
      change = () => exchange.notify("notifications/tools/list_changed", { _meta });
    });
    const list = () => rig.client.listTools();
    const subscription = rig.client.subscribe({ toolsListChanged: true });
    await subscription.acknowledged;
    expect(await costOf(rig, list, list)).toBe(1);
    change!();
    for await (const item of subscription) {
      expect(item).toMatchObject({ method: "notifications/tools/list_changed" });
      break;
    }
    expect(await costOf(rig, list, list)).toBe(1);
  });

  it("CCH-01 B067: a process that was started anew is asked anew", async () => {
    const rig = await stdio.open((request, exchange) => {
      if (request.method === "tools/call") exchange.crash();
      else hinting(MINUTE)(request, exchange);
    });
    const list = () => rig.client.listTools();
    expect(await costOf(rig, list, list)).toBe(1);
    await errorOf(rig.client.callTool("t", {}, { reissue: "never" }));
    expect(await costOf(rig, list, list)).toBe(1);
  });

  it("CCH-01: pages are cached one by one, and a refused cursor drops them all and begins again", async () => {
    const clock = manualClock();
    let generation = 1;
    const rig = await memory.open(
      ({ params }, exchange) => {
        const { cursor } = params;
        const tools = [{ name: `${generation}-${cursor ?? "first"}`, inputSchema: {} }];
        if (cursor === undefined) {
          return exchange.result({
            tools,
            nextCursor: `c${generation}`,
            ttlMs: 60_000,
            cacheScope: "public",
          });
        }
        if (cursor !== `c${generation}`) return exchange.error(-32602, "Invalid cursor");
        exchange.result({ tools, ttlMs: 1000, cacheScope: "public" });
      },
      { clock },
    );
    const names = async () => (await rig.client.listTools()).map(({ name }) => name);
    expect(await names()).toEqual(["1-first", "1-c1"]);
    expect(await costOf(rig, names)).toBe(0);
    await clock.advance(1000);
    // The page that expired is fetched with its cursor; the first is still fresh.
    expect(await costOf(rig, names)).toBe(1);
    await clock.advance(1000);
    generation = 2;
    expect(await names()).toEqual(["2-first", "2-c2"]);
    expect(rig.events).toContainEqual(
      expect.objectContaining({ type: "cache.evicted", method: "tools/list", entries: 1 }),
    );
  });

  it("CCH-01: a server that refuses its own cursor costs one error, and no second listing", async () => {
    const rig = await memory.open(({ params }, exchange) => {
      if (params.cursor === undefined) exchange.result({ tools: [], nextCursor: "c", ...MINUTE });
      else exchange.error(-32602, "Invalid cursor");
    });
    expect(await errorOf(rig.client.listTools())).toMatchObject({ rpcCode: -32602 });
    expect(rig.peer.requests).toHaveLength(2);
  });
});

describe("the discovery", () => {
  it.each([stdio, webSocket])(
    "VER-02 CCH-01: the probe of a link pays for client.discover() ($name)",
    async ({ open }) => {
      const discovery = { ...RESULTS["server/discover"], ...MINUTE };
      const rig = await open(hinting(MINUTE), { peerOptions: { discover: discovery } });
      await rig.client.listTools();
      const sent = rig.peer.received.length;
      expect(await rig.client.discover()).toEqual(discovery);
      expect(rig.peer.received).toHaveLength(sent);
    },
  );

  it("VER-02 CCH-01: a discovery without a ttl is asked for each time", async () => {
    const rig = await httpJson.open(hinting({}), { peerOptions: { discover: false } });
    expect(
      await costOf(
        rig,
        () => rig.client.discover(),
        () => rig.client.discover(),
      ),
    ).toBe(2);
  });
});

describe("the store", () => {
  it("CCH-01: a Map will do, and serves several clients of one server", async () => {
    const cache = new Map<string, CachedResult>();
    const peer = createScriptedPeer(hinting(MINUTE));
    const one = rigOver(peer, peer.memory(), { cache, peer: "notes" });
    const two = rigOver(peer, peer.memory(), { cache, peer: "notes" });
    const other = rigOver(peer, peer.memory(), { cache, peer: "other" });
    const list =
      ({ client }: Rig) =>
      () =>
        client.listTools();
    expect(await costOf(one, list(one), list(two))).toBe(1);
    expect(await costOf(one, list(other))).toBe(1);
    expect(cache.size).toBe(2);
  });

  it("CCH-01: what one client is told makes stale what another has sent for", async () => {
    const cache = memoryCache();
    const held: (() => void)[] = [];
    const peer = createScriptedPeer((request, exchange) => {
      if (request.method === "tools/call") {
        exchange.notify("notifications/tools/list_changed");
        exchange.result(complete("changed"));
      } else if (held.length === 0) held.push(() => hinting(MINUTE)(request, exchange));
      else hinting(MINUTE)(request, exchange);
    });
    const one = rigOver(peer, peer.memory(), { cache, peer: "notes" });
    const two = rigOver(peer, peer.memory(), { cache, peer: "notes" });
    const early = one.client.listTools();
    await peer.waitFor(1);
    await two.client.callTool("touch");
    held[0]!();
    await early;
    expect(await costOf(one, () => one.client.listTools())).toBe(1);
  });

  it("HDR-02 B164: a client that takes a list from a shared store mirrors by it", async () => {
    const cache = memoryCache();
    const peer = createScriptedPeer((request, exchange) => {
      if (request.method === "tools/call") exchange.result(complete("ok"));
      else exchange.result({ tools: [regionTool("deploy", "Region")], ...MINUTE });
    });
    const { url } = await peer.http();
    const one = rigOver(peer, httpTransport(url), { cache });
    const two = rigOver(peer, httpTransport(url), { cache });
    await one.client.listTools();
    expect(await costOf(two, () => two.client.listTools())).toBe(0);
    await two.client.callTool("deploy", { region: "eu" });
    expect(mirroredValue(peer.requests.at(-1)!, "Region")).toBe("eu");
    await one.client.close();
  });

  it.each(["get", "set"] as const)(
    "CCH-01: a store whose %s throws is an empty one, with an anomaly",
    async (method) => {
      const cache = Object.assign(memoryCache(), {
        [method]: () => {
          throw new Error("disk full");
        },
      });
      const rig = await memory.open(hinting(MINUTE), { cache });
      const list = () => rig.client.listTools();
      expect(await costOf(rig, list, list)).toBe(2);
      expect(rig.events).toContainEqual(
        expect.objectContaining({
          type: "wire.anomaly",
          kind: "host-callback",
          detail: { what: `cache.${method}`, message: "disk full" },
        }),
      );
    },
  );

  it("CCH-01: a store that cannot delete is used no more once something had to be evicted", async () => {
    const cache = Object.assign(new Map<string, CachedResult>(), {
      delete: () => {
        throw new Error("read only");
      },
    });
    const rig = await memory.open(
      (request, exchange) => {
        if (request.method === "tools/call") exchange.notify("notifications/tools/list_changed");
        hinting(MINUTE)(request, exchange);
      },
      { cache },
    );
    const list = () => rig.client.listTools();
    expect(await costOf(rig, list, list)).toBe(1);
    await rig.client.callTool("touch");
    expect(await costOf(rig, list, list)).toBe(2);
  });

  it.each<[string, unknown]>([
    ["a promise", Promise.resolve()],
    ["text", "x"],
    ["an entry without a result", { freshUntilMs: Number.POSITIVE_INFINITY }],
    ["an entry without a time", { result: { tools: [] } }],
  ])("CCH-01: a store that gives %s is an empty one", async (_what, entry) => {
    const cache = { ...emptyStore(), get: () => entry as CachedResult };
    const rig = await memory.open(hinting(MINUTE), { cache });
    expect(await rig.client.listTools()).toHaveLength(1);
  });

  it.each([7, {}, { get() {} }, null])("CCH-01: %j is no store", async (cache) => {
    const peer = createScriptedPeer(hinting(MINUTE));
    const options = {
      transport: peer.memory(),
      info: { name: "x", version: "1" },
      cache: cache as unknown as CacheStore,
    };
    expect(() => createClient(options)).toThrow(expect.objectContaining({ code: "usage", path: "cache" }));
  });

  function emptyStore(): CacheStore {
    return { get: () => undefined, set() {}, delete() {}, keys: () => [] };
  }

  const entry = (bytes: number): CachedResult => ({ result: {}, bytes, receivedAtMs: 0, freshUntilMs: 0 });

  it("LIM-01 CCH-01: the default store drops what was not used for the longest time", () => {
    const store = memoryCache({ entries: 2 });
    store.set("a", entry(1));
    store.set("b", entry(1));
    store.get("a");
    store.set("c", entry(1));
    expect([...store.keys()]).toEqual(["a", "c"]);
  });

  it("LIM-01 CCH-01: the default store is bounded in bytes, and takes nothing that would empty it", () => {
    const store = memoryCache({ bytes: 1000 });
    store.set("a", entry(400));
    store.set("b", entry(400));
    store.set("c", entry(400));
    expect([...store.keys()]).toEqual(["b", "c"]);
    store.set("d", entry(2000));
    expect([...store.keys()]).toEqual(["b", "c"]);
    store.set("c", entry(10));
    store.set("e", entry(400));
    expect([...store.keys()]).toEqual(["b", "c", "e"]);
  });

  it("LIM-01 CCH-01: a server that gives a new cursor each time does not fill the memory", async () => {
    let page = 0;
    const text = "x".repeat(100_000);
    const store = memoryCache({ bytes: 1_000_000 });
    const rig = await memory.open(
      (_request, exchange) =>
        exchange.result({
          resources: [{ uri: "a:", name: text }],
          ...(page < 50 && { nextCursor: String(page++) }),
          ...MINUTE,
        }),
      { cache: store },
    );
    await rig.client.listResources();
    expect([...store.keys()]).toHaveLength(4);
  });

  it("LIM-01 CCH-01: a result of a hundred thousand levels is stored without harm", async () => {
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    const rig = await memory.open(({ id }, exchange) =>
      exchange.raw(
        `{"jsonrpc":"2.0","id":${id},"result":{"tools":[],"ttlMs":60000,"cacheScope":"public","x":${deep}}}`,
      ),
    );
    const list = () => rig.client.listTools();
    expect(await costOf(rig, list, list)).toBe(1);
  });
});

describe("with the official server", () => {
  let server: StartedServer;
  beforeAll(async () => {
    server = await startOfficialHttp();
  });
  afterAll(() => server.close());

  it("CCH-01: a public note is read once, until a subscription tells of its update", async () => {
    const events: RallyEvent[] = [];
    await using client = createClient({
      transport: httpTransport(server.url),
      info: { name: "test-host", version: "1.0.0" },
      onEvent: (event) => events.push(event),
    });
    const reads = () =>
      events.filter((event) => event.type === "attempt.sent" && event.method === "resources/read");
    const read = async () => (await client.readResource("note://plain")).contents[0]!.text;
    expect(await read()).toBe("a plain note");
    expect(await read()).toBe("a plain note");
    expect(reads()).toHaveLength(1);
    const subscription = client.subscribe({ resourceSubscriptions: ["note://plain"] });
    await subscription.acknowledged;
    const touched = client.callTool("touch", { what: "resource", uri: "note://plain" });
    for await (const item of subscription) {
      expect(item).toMatchObject({ method: "notifications/resources/updated" });
      break;
    }
    expect(textOf(await touched)).toBe("touched resource");
    await read();
    expect(reads()).toHaveLength(2);
  });
});
