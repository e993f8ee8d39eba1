import { describe, expect, it } from "vitest";
import { LegacyPeerError, ProtocolViolationError } from "../../src/errors.ts";
import type { Script } from "../../src/testing/peer-types.ts";
import { httpTransport } from "../../transports/http.ts";
import { stdioTransport } from "../../transports/stdio.ts";
import { webSocketTransport } from "../../transports/websocket.ts";
import {
  legacyStdio,
  officialStdio,
  startLegacyHttp,
  startOfficialHttp,
  startOfficialWebSocket,
} from "../support/servers.ts";
import {
  acknowledge,
  acknowledging,
  BINDINGS,
  change,
  closeAfter,
  endGracefully,
  HTTP,
  nameOf,
  next,
  QUICK,
  readAll,
  rig,
  TOOLS,
  UPDATED,
  watched,
} from "./subscription-rig.ts";

const PROMPTS = "notifications/prompts/list_changed";
const SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId";

describe("a server that errs", () => {
  const errs: [string, Script, string[], string[]][] = [
    [
      "a missing subscription id is accepted",
      (_request, exchange) => exchange.notify(TOOLS),
      ["subscription-id"],
      [TOOLS],
    ],
    [
      "another subscription id is dropped",
      (_request, exchange) => exchange.notify(TOOLS, { _meta: { [SUBSCRIPTION_ID]: 4711 } }),
      ["subscription-id"],
      [],
    ],
    [
      "a subscription id of another type is dropped",
      (request, exchange) => exchange.notify(TOOLS, { _meta: { [SUBSCRIPTION_ID]: String(request.id) } }),
      ["subscription-id"],
      [],
    ],
    [
      "a change that was not asked for is dropped",
      (request, exchange) => change(request, exchange, PROMPTS),
      ["unexpected-notification"],
      [],
    ],
    [
      "a second acknowledgment counts for nothing",
      (request, exchange) => acknowledge(request, exchange, {}),
      ["unexpected-notification"],
      [],
    ],
    [
      "an update without a URI is dropped",
      (request, exchange) => change(request, exchange, UPDATED),
      ["bad-frame"],
      [],
    ],
    [
      "progress and log entries do not belong here",
      (request, exchange) => {
        change(request, exchange, "notifications/message", { level: "info", data: "x" });
        change(request, exchange, "notifications/message", { level: "info", data: "y" });
      },
      ["unexpected-notification"],
      [],
    ],
    [
      "a cancel of another request ends nothing",
      (_request, exchange) => exchange.notify("notifications/cancelled", { requestId: 4711 }),
      ["unexpected-cancel"],
      [],
    ],
  ];
  it.each(errs)("SUB-01 over HTTP: %s, and told once", async (_title, err, kinds, items) => {
    const { client, anomalies } = await rig(
      HTTP,
      acknowledging(async (request, exchange) => {
        await err(request, exchange);
        await err(request, exchange);
        endGracefully(request, exchange);
      }),
    );
    const subscription = client.subscribe({ toolsListChanged: true, resourceSubscriptions: ["note://1"] });
    expect(await readAll(subscription)).toEqual([...items, ...items]);
    expect(await subscription.closed).toEqual({ reason: "graceful" });
    expect(subscription.refused).toEqual([]);
    expect(anomalies()).toEqual(kinds);
  });

  it.each(BINDINGS)("SUB-01 over $name: a change before the acknowledgment is tolerated", async (binding) => {
    const { client, anomalies } = await rig(binding, (request, exchange) => {
      change(request, exchange);
      acknowledge(request, exchange);
    });
    const subscription = client.subscribe({ toolsListChanged: true });
    expect(nameOf(await next(subscription))).toBe(TOOLS);
    await subscription.acknowledged;
    expect(anomalies()).toEqual(["unexpected-notification"]);
  });

  it("SUB-01: an acknowledgment without a filter honours nothing", async () => {
    const { client, anomalies } = await rig(HTTP, (request, exchange) =>
      acknowledge(request, exchange, "everything"),
    );
    const subscription = client.subscribe({ toolsListChanged: true });
    expect(await subscription.acknowledged).toEqual({});
    expect(subscription.refused).toEqual(["toolsListChanged"]);
    expect(anomalies()).toEqual(["bad-frame"]);
  });

  it("SUB-01: an end before the acknowledgment rejects `acknowledged` and says why", async () => {
    const { client } = await rig(HTTP, endGracefully);
    const subscription = client.subscribe({ toolsListChanged: true });
    await expect(subscription.acknowledged).rejects.toBeInstanceOf(ProtocolViolationError);
    expect(await subscription.closed).toEqual({ reason: "graceful" });
  });
});

describe("old servers", () => {
  it("SUB-01 VER-02: over HTTP an old server is a LegacyPeerError, not listened to again", async () => {
    const server = await startLegacyHttp();
    closeAfter(() => server.close());
    const { client, states } = watched({ transport: httpTransport(server.url) });
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten: QUICK });
    await expect(subscription.acknowledged).rejects.toBeInstanceOf(LegacyPeerError);
    expect(states()).toEqual(["opening", "closed"]);
  });

  it("SUB-01 VER-02: over stdio an old server is a LegacyPeerError, not listened to again", async () => {
    const { client, states } = watched({ transport: stdioTransport(legacyStdio()) });
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten: QUICK });
    await expect(subscription.acknowledged).rejects.toBeInstanceOf(LegacyPeerError);
    expect(states()).toEqual(["opening", "closed"]);
  });
});

describe("the official server", () => {
  const servers = [
    {
      name: "HTTP",
      start: async () => {
        const server = await startOfficialHttp();
        return { transport: httpTransport(server.url), close: () => server.close() };
      },
    },
    {
      name: "stdio",
      start: async () => ({ transport: stdioTransport(officialStdio()), close: async () => {} }),
    },
    {
      name: "WebSocket",
      start: async () => {
        const server = await startOfficialWebSocket();
        return { transport: webSocketTransport(server.url), close: () => server.close() };
      },
    },
  ];
  it.each(servers)(
    "SUB-01 over $name: two subscriptions get the changes that each asked for",
    async ({ start }) => {
      const { transport, close } = await start();
      const { client, anomalies } = watched({ transport });
      closeAfter(close);
      const lists = client.subscribe({ toolsListChanged: true, promptsListChanged: true });
      const notes = client.subscribe({ resourceSubscriptions: ["note://plain"] });
      expect(await lists.acknowledged).toEqual({ toolsListChanged: true, promptsListChanged: true });
      expect(await notes.acknowledged).toEqual({ resourceSubscriptions: ["note://plain"] });

      for (const what of ["tools", "resource", "resources", "prompts"]) {
        await client.callTool("touch", { what });
      }
      expect(nameOf(await next(lists))).toBe(TOOLS);
      expect(nameOf(await next(lists))).toBe(PROMPTS);
      expect(await next(notes)).toMatchObject({ method: UPDATED, params: { uri: "note://plain" } });

      await lists.close();
      await client.callTool("touch", { what: "resource" });
      expect(await next(notes)).toMatchObject({ method: UPDATED });
      expect(anomalies()).toEqual([]);
    },
  );
});
