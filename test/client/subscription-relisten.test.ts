import { describe, expect, it } from "vitest";
import type { RallyEvent } from "../../src/events.ts";
import type { PeerExchange, PeerRequest, Script } from "../../src/testing/peer-types.ts";
import { createScriptedPeer } from "../../src/testing/scripted-peer.ts";
import { httpTransport } from "../../transports/http.ts";
import { stdioTransport } from "../../transports/stdio.ts";
import { officialStdio } from "../support/servers.ts";
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
  STDIO,
  TOOLS,
  watched,
} from "./subscription-rig.ts";

/** The pauses that `lost` events told of. */
function pauses(events: readonly RallyEvent[]): number[] {
  return events.flatMap((event) =>
    event.type === "subscription.changed" && event.state === "lost" ? [event.delayMs ?? -1] : [],
  );
}

/** The n-th listen request gets the n-th script; later ones the last. */
function inTurn(...scripts: Script[]): Script {
  let listens = 0;
  return (request, exchange) => {
    if (request.method !== "subscriptions/listen") return exchange.result({ resultType: "complete" });
    return scripts[Math.min(listens++, scripts.length - 1)]?.(request, exchange);
  };
}

const losses: [string, (exchange: PeerExchange) => void][] = [
  ["ends in good order without a response", (exchange) => exchange.drop()],
  ["breaks", (exchange) => exchange.crash()],
];

describe.each(BINDINGS)("over $name", (binding) => {
  it.each(losses)("SUB-01 B064 B067: a stream that %s is listened to again", async (_title, lose) => {
    const { client, peer, states } = await rig(
      binding,
      inTurn(
        acknowledging((request, exchange) => {
          change(request, exchange);
          // After the reader has it, so that nothing is lost on the way.
          void read.then(() => lose(exchange));
        }),
        acknowledging((request, exchange) => {
          change(request, exchange);
          endGracefully(request, exchange);
        }),
      ),
    );
    let reading = () => {};
    const read = new Promise<void>((resolve) => {
      reading = resolve;
    });
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten: QUICK });
    expect(nameOf(await next(subscription))).toBe(TOOLS);
    reading();
    // The same handle: a gap first, then what comes on the new stream.
    expect(await readAll(subscription)).toEqual(["gap relistened", TOOLS]);
    expect(await subscription.closed).toEqual({ reason: "graceful" });
    expect(states()).toEqual(["opening", "open", "lost", "opening", "open", "closed"]);
    const [first, second] = peer.requests as [PeerRequest, PeerRequest];
    expect(peer.requests).toHaveLength(2);
    expect(second.id).not.toBe(first.id);
    expect(second.params.notifications).toEqual(first.params.notifications);
  });

  it("SUB-01 B068: a server that ends every stream is asked less and less, and in the end no more", async () => {
    const { client, peer, events } = await rig(
      binding,
      acknowledging((_request, exchange) => exchange.drop()),
    );
    const subscription = client.subscribe(
      { toolsListChanged: true },
      { relisten: { backoffMs: 8, maxMs: 30, max: 5 } },
    );
    const end = await subscription.closed;
    expect(end).toMatchObject({ reason: "failed", error: { code: "connection-lost" } });
    expect(peer.requests).toHaveLength(6);
    const waited = pauses(events);
    expect(waited).toHaveLength(5);
    for (const [n, full] of [8, 16, 30, 30, 30].entries()) {
      expect(waited[n]).toBeGreaterThanOrEqual(full / 2);
      expect(waited[n]).toBeLessThanOrEqual(full);
    }
    expect(events.at(-1)).toMatchObject({ state: "closed", reason: "failed", code: "connection-lost" });
    // Gaps that nobody reads are one.
    expect(await readAll(subscription)).toEqual(["gap relistened"]);
  });

  it("SUB-01 B068: a stream that stood for long enough begins the count anew", async () => {
    let streams = 0;
    let stood = () => {};
    const { client, events, clock } = await rig(
      binding,
      acknowledging((request, exchange) => {
        streams++;
        stood = () => (streams === 5 ? endGracefully(request, exchange) : exchange.drop());
      }),
      {
        onEvent: (event) => {
          if (event.type !== "subscription.changed" || event.state !== "open") return;
          clock.aheadMs += 10_000;
          stood();
        },
      },
    );
    const relisten = { ...QUICK, stableMs: 10_000, max: 1 };
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten });
    expect(await subscription.closed).toEqual({ reason: "graceful" });
    expect(pauses(events)).toHaveLength(4);
    for (const pause of pauses(events)) expect(pause).toBeLessThanOrEqual(QUICK.backoffMs);
  });

  it("SUB-01 B067 CCH-01: a change, a loss and a new stream each evict what is cached", async () => {
    let lose = () => {};
    let touch = () => {};
    let lists = 0;
    const { client } = await rig(binding, (request, exchange) => {
      if (request.method === "tools/list") {
        lists++;
        exchange.result({ resultType: "complete", tools: [], ttlMs: 600_000, cacheScope: "public" });
        return;
      }
      lose = () => exchange.drop();
      touch = () => change(request, exchange);
      acknowledge(request, exchange);
    });
    const asked = async () => {
      await client.listTools();
      return lists;
    };
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten: QUICK });
    await subscription.acknowledged;
    expect([await asked(), await asked()]).toEqual([1, 1]);
    touch();
    expect(nameOf(await next(subscription))).toBe(TOOLS);
    expect([await asked(), await asked()]).toEqual([2, 2]);
    lose();
    expect(nameOf(await next(subscription))).toBe("gap relistened");
    expect([await asked(), await asked()]).toEqual([3, 3]);
  });

  it("SUB-01: closing while it is lost ends it, and no listen request follows", async () => {
    const { client, peer, events } = await rig(
      binding,
      acknowledging((_request, exchange) => exchange.drop()),
      {
        onEvent: (event) => {
          if (event.type === "subscription.changed" && event.state === "lost") void subscription.close();
        },
      },
    );
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten: { backoffMs: 60_000 } });
    expect(await subscription.closed).toEqual({ reason: "closed-by-host" });
    expect(peer.requests).toHaveLength(1);
    expect(events.filter(({ type }) => type === "subscription.changed").at(-1)).toMatchObject({
      state: "closed",
    });
  });
});

describe("processes", () => {
  it("SUB-01 B067: every subscription of a killed process is sent again, once, on the next one", async () => {
    let kill = () => {};
    const { client, peer } = await rig(
      STDIO,
      inTurn(
        acknowledging(),
        acknowledging((_request, exchange) => {
          kill = () => exchange.crash();
        }),
        acknowledging((request, exchange) => change(request, exchange)),
      ),
    );
    const first = client.subscribe({ toolsListChanged: true }, { relisten: QUICK });
    await first.acknowledged;
    const second = client.subscribe({ toolsListChanged: true }, { relisten: QUICK });
    await second.acknowledged;
    kill();
    for (const subscription of [first, second]) {
      expect(nameOf(await next(subscription))).toBe("gap relistened");
      expect(nameOf(await next(subscription))).toBe(TOOLS);
    }
    expect(peer.requests.map(({ link }) => link)).toEqual([0, 0, 1, 1]);
    expect(new Set(peer.requests.map(({ id }) => id)).size).toBe(4);
  });

  it("SUB-01 B067: the official server's process, killed, comes back with its subscription", async () => {
    const { client, states } = watched({ transport: stdioTransport(officialStdio()) });
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten: QUICK });
    await subscription.acknowledged;
    const { content } = await client.callTool("inspect");
    const [{ text }] = content as unknown as [{ text: string }];
    process.kill((JSON.parse(text) as { pid: number }).pid, "SIGKILL");
    expect(nameOf(await next(subscription))).toBe("gap relistened");
    await client.callTool("touch", { what: "tools" });
    expect(nameOf(await next(subscription))).toBe(TOOLS);
    expect(states()).toEqual(["opening", "open", "lost", "opening", "open"]);
  });

  it("SUB-01: a command that does not exist fails soon, as a call does", async () => {
    const { client, events } = watched({ transport: stdioTransport({ command: "no-such-command-here" }) });
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten: QUICK });
    await expect(subscription.acknowledged).rejects.toMatchObject({ code: "connect" });
    expect(await subscription.closed).toMatchObject({ reason: "failed", error: { code: "connect" } });
    expect(pauses(events)).toHaveLength(2);
  });
});

describe("over HTTP", () => {
  it("SUB-01: a server that comes late, or is away for a while, is found", async () => {
    const { client, peer } = await rig(
      HTTP,
      inTurn(
        (_request, exchange) => exchange.http({ status: 502, body: "bad gateway" }),
        (_request, exchange) => exchange.http({ status: 503, headers: { "retry-after": "0" } }),
        acknowledging((_request, exchange) => exchange.drop()),
        (_request, exchange) => exchange.http({ status: 503 }),
        (_request, exchange) => exchange.http({ status: 429 }),
        acknowledging((request, exchange) => endGracefully(request, exchange)),
      ),
    );
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten: QUICK });
    expect(await readAll(subscription)).toEqual(["gap relistened"]);
    expect(await subscription.closed).toEqual({ reason: "graceful" });
    expect(peer.requests).toHaveLength(6);
  });

  it("SUB-01: Retry-After is a floor under the pause", async () => {
    const { client, events } = await rig(HTTP, (_request, exchange) =>
      exchange.http({ status: 503, headers: { "retry-after": "7" } }),
    );
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten: QUICK });
    await waitForState(events, "lost");
    expect(pauses(events)[0]).toBeGreaterThan(6000);
    await subscription.close();
  });

  const refusals: [string, Script, object][] = [
    [
      "404 without a frame",
      (_r, exchange) => exchange.http({ status: 404 }),
      { code: "http-status", status: 404 },
    ],
    ["403", (_r, exchange) => exchange.http({ status: 403 }), { code: "http-status", status: 403 }],
    [
      "an answer that is no frame",
      (_r, exchange) => exchange.http({ headers: { "content-type": "text/html" }, body: "<h1>Sign in</h1>" }),
      { code: "frame" },
    ],
  ];
  it.each(refusals)("SUB-01 B062: %s, from a modern server, is final", async (_title, refuse, error) => {
    const { client, peer } = await rig(
      HTTP,
      inTurn(
        acknowledging((_r, exchange) => exchange.drop()),
        refuse,
      ),
    );
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten: QUICK });
    expect(await subscription.closed).toMatchObject({ reason: "failed", error });
    expect(peer.requests).toHaveLength(2);
  });

  it("SUB-01: garbage in a stream that stood is a loss", async () => {
    const { client } = await rig(
      HTTP,
      inTurn(
        acknowledging((_request, exchange) => exchange.frame('{"jsonrpc":"1.0"}')),
        acknowledging((request, exchange) => endGracefully(request, exchange)),
      ),
    );
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten: QUICK });
    expect(await readAll(subscription)).toEqual(["gap relistened"]);
  });

  const challenge = { status: 401, headers: { "www-authenticate": 'Bearer error="invalid_token"' } } as const;
  const wider = {
    status: 403,
    headers: { "www-authenticate": 'Bearer error="insufficient_scope", scope="watch"' },
  } as const;

  it("SUB-01 MRTR-19: a challenge is answered once for each listen request, at once", async () => {
    const tokens: string[] = [];
    const peer = createScriptedPeer(
      inTurn(
        (_request, exchange) => exchange.http(challenge),
        (_request, exchange) => exchange.http(wider),
        acknowledging((_request, exchange) => exchange.drop()),
        (_request, exchange) => exchange.http(challenge),
        acknowledging((request, exchange) => endGracefully(request, exchange)),
      ),
    );
    const { url } = await peer.http({ answer: "sse" });
    const token = ({ challenge: asked }: { challenge?: { status: number } }) => {
      tokens.push(asked === undefined ? "plain" : `for ${asked.status}`);
      return "secret";
    };
    const { client, states } = watched({ transport: httpTransport(url, { token }) });
    closeAfter(() => peer.close());
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten: QUICK });
    expect(await subscription.closed).toEqual({ reason: "graceful" });
    expect(tokens).toEqual(["plain", "for 401", "for 403", "plain", "for 401"]);
    expect(states().filter((state) => state === "lost")).toHaveLength(1);
  });

  it("SUB-01 MRTR-19: a challenge that the token does not satisfy is final", async () => {
    const peer = createScriptedPeer((_request, exchange) => exchange.http(challenge));
    const { url } = await peer.http();
    const { client } = watched({ transport: httpTransport(url, { token: () => "secret" }) });
    closeAfter(() => peer.close());
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten: QUICK });
    expect(await subscription.closed).toMatchObject({
      reason: "failed",
      error: { code: "http-status", status: 401 },
    });
    expect(peer.requests).toHaveLength(2);
  });

  it("SUB-01 VER-01: a version that the server does not speak is changed once", async () => {
    const { client, peer } = await rig(
      HTTP,
      inTurn(
        (_request, exchange) =>
          exchange.error(-32022, "Unsupported protocol version", {
            supported: ["2026-07-28"],
            requested: "2099-01-01",
          }),
        acknowledging(),
      ),
      { protocolVersions: ["2099-01-01", "2026-07-28"] },
    );
    const subscription = client.subscribe({ toolsListChanged: true });
    await subscription.acknowledged;
    expect(peer.requests.map(({ meta }) => meta["io.modelcontextprotocol/protocolVersion"])).toEqual([
      "2099-01-01",
      "2026-07-28",
    ]);
  });

  it("SUB-01 VER-01: no common version is final", async () => {
    const { client, peer } = await rig(HTTP, (_request, exchange) =>
      exchange.error(-32022, "Unsupported protocol version", { supported: ["2031-01-01"] }),
    );
    const subscription = client.subscribe({ toolsListChanged: true }, { relisten: QUICK });
    await expect(subscription.acknowledged).rejects.toMatchObject({ code: "unsupported-version" });
    expect(peer.requests).toHaveLength(1);
  });

  it("SUB-01 REQ-01: every listen request has metadata of its own, and declares what the handlers allow", async () => {
    let made = 0;
    const { client, peer } = await rig(
      HTTP,
      inTurn(
        acknowledging((_request, exchange) => exchange.drop()),
        (request, exchange) => acknowledge(request, exchange),
      ),
      { inputs: { listRoots: async () => ({ roots: [] }) } },
    );
    const subscription = client.subscribe(
      { toolsListChanged: true },
      { relisten: QUICK, meta: () => ({ traceparent: `t${++made}` }), inputs: { elicitForm: "suspend" } },
    );
    expect(nameOf(await next(subscription))).toBe("gap relistened");
    expect(peer.requests.map(({ meta }) => meta.traceparent)).toEqual(["t1", "t2"]);
    for (const { meta } of peer.requests) {
      expect(meta["io.modelcontextprotocol/clientCapabilities"]).toEqual({
        elicitation: { form: {} },
        roots: {},
      });
    }
  });
});

/** Resolves when a subscription of the client has come to `state`. */
async function waitForState(events: readonly RallyEvent[], state: string): Promise<void> {
  await expect
    .poll(() => events.some((event) => event.type === "subscription.changed" && event.state === state), {
      interval: 2,
      timeout: 5000,
    })
    .toBe(true);
}
