import { afterEach, describe, expect, it } from "vitest";
import { createClient } from "../../src/client.ts";
import type { RallyEvent } from "../../src/events.ts";
import type { ScriptedPeer } from "../../src/testing/peer-types.ts";
import { complete, elicitForm, inputRequired } from "../../src/testing/replies.ts";
import { createScriptedPeer } from "../../src/testing/scripted-peer.ts";
import type { Transport } from "../../src/transport.ts";
import { httpTransport } from "../../transports/http.ts";
import { stdioTransport } from "../../transports/stdio.ts";
import { webSocketTransport } from "../../transports/websocket.ts";
import { serveLines } from "../support/line-peer.ts";
import { BRIDGE } from "./cutting-lanes.ts";
import { type Relay, type RelayRule, type RelayUnit, startRelay } from "./relay.ts";
import { faultsOf, type Observed, runThreeRounds, threeRounds } from "./three-rounds.ts";

type Binding = "HTTP answering JSON" | "HTTP answering SSE" | "stdio" | "WebSocket";
type Rules = { readonly unit?: RelayUnit; readonly up?: RelayRule; readonly down?: RelayRule };

const BINDINGS: readonly Binding[] = ["HTTP answering JSON", "HTTP answering SSE", "stdio", "WebSocket"];

/** Long enough for a loaded machine to answer over a stalled wire's healthy side, and short to wait for. */
const ATTEMPT_MS = 500;

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** Puts a relay between `peer` and the client. Whatever is left open makes the end of the test fail. */
async function through(
  peer: ScriptedPeer,
  binding: Binding,
  rules: Rules = {},
  pings: { pingMs?: number; pongMs?: number } = {},
): Promise<{ relay: Relay; transport: Transport }> {
  async function relayTo(port: number): Promise<Relay> {
    const relay = await startRelay(port, rules);
    closers.push(relay.close, peer.close);
    return relay;
  }
  switch (binding) {
    case "HTTP answering JSON":
    case "HTTP answering SSE": {
      const { url } = await peer.http({ answer: binding === "HTTP answering SSE" ? "sse" : "json" });
      const relay = await relayTo(Number(new URL(url).port));
      return { relay, transport: httpTransport(`http://127.0.0.1:${relay.port}/mcp`) };
    }
    case "WebSocket": {
      const relay = await relayTo(Number(new URL((await peer.websocket()).url).port));
      return {
        relay,
        transport: webSocketTransport(`ws://127.0.0.1:${relay.port}/mcp`, { closeMs: 100, ...pings }),
      };
    }
    case "stdio": {
      const lines = await serveLines(peer);
      const relay = await relayTo(lines.address as number);
      closers.push(lines.close);
      const args = [BRIDGE, String(relay.port)];
      return { relay, transport: stdioTransport({ command: process.execPath, args }) };
    }
  }
}

function onceOnly(action: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    action();
  };
}

function anomalies({ events }: { events: readonly RallyEvent[] }): string[] {
  return events.flatMap((event) => (event.type === "wire.anomaly" ? [event.kind] : []));
}

function attempts({ events }: Observed): string[] {
  return events.flatMap((event) =>
    event.type === "attempt.ended" && event.method === "tools/call"
      ? [`${event.round} ${event.outcome}`]
      : [],
  );
}

describe.each(BINDINGS)("half-open: a wire that carries nothing more and stays open, over %s", (binding) => {
  it.each(["up", "down"] as const)(
    "TIM-01: %s, the operation ends with the attempt's timeout",
    async (side) => {
      const rounds = threeRounds();
      const peer = createScriptedPeer(rounds.script);
      const { relay, transport } = await through(peer, binding);
      const stall = () => relay.stall(side);
      const observed = await runThreeRounds(
        transport,
        "m",
        { timeouts: { attemptMs: ATTEMPT_MS } },
        { onAsked: stall, warm: true },
      );
      expect(observed.error).toMatchObject({ code: "timeout", scope: "attempt", operation: { round: 2 } });
      expect(attempts(observed)).toEqual(["1 input_required", "2 timeout"]);
      expect(observed.pendingAfterwards).toBe(0);
      expect(rounds.ran("m").length).toBe(side === "up" ? 1 : 2);
    },
  );
});

it.each(["HTTP answering JSON", "HTTP answering SSE"] as const)(
  "half-open over %s: with reissue.timeouts the round trip starts over on a new connection",
  async (binding) => {
    const rounds = threeRounds();
    const { relay, transport } = await through(createScriptedPeer(rounds.script), binding);
    const observed = await runThreeRounds(
      transport,
      "m",
      {
        timeouts: { attemptMs: ATTEMPT_MS },
        // A pooled connection that idles while the wire goes dead is found out by the attempt that takes it.
        reissue: { policy: "always", max: 3, backoffMs: 0, timeouts: true },
        onEvent: (event) => event.type === "attempt.ended" && event.outcome === "timeout" && relay.heal(),
      },
      { onAsked: onceOnly(() => relay.stall("down")), warm: true },
    );
    expect(faultsOf(observed, rounds.ran("m"), "always")).toEqual([]);
    expect(attempts(observed).slice(0, 2)).toEqual(["1 input_required", "2 timeout"]);
    expect(attempts(observed).slice(-3)).toEqual(["1 input_required", "2 input_required", "3 complete"]);
  },
);

describe("half-open WebSocket with pings", () => {
  const pings = { pingMs: 30, pongMs: 500 };

  it("WS-02 MRTR-18: the watchdog ends it, and the round trip starts over on a new one", async () => {
    const rounds = threeRounds();
    const { relay, transport } = await through(createScriptedPeer(rounds.script), "WebSocket", {}, pings);
    const reissue = { policy: "always", max: 1, backoffMs: 0 } as const;
    const onEvent = (event: RallyEvent) =>
      event.type === "link.changed" && event.state === "down" && relay.heal();
    const stall = onceOnly(() => relay.stall("down"));
    const observed = await runThreeRounds(transport, "m", { reissue, onEvent }, { onAsked: stall });
    expect(faultsOf(observed, rounds.ran("m"), "always")).toEqual([]);
    expect(attempts(observed).slice(0, 3)).toEqual(["1 input_required", "2 failure", "1 input_required"]);
  });

  it("WS-02: under never the error says that the outcome is unknown", async () => {
    const rounds = threeRounds();
    const { relay, transport } = await through(createScriptedPeer(rounds.script), "WebSocket", {}, pings);
    const stall = () => relay.stall("down");
    const observed = await runThreeRounds(transport, "m", { reissue: "never" }, { onAsked: stall });
    expect(observed.error).toMatchObject({ code: "connection-lost", delivery: "unknown" });
    expect(faultsOf(observed, rounds.ran("m"), "never")).toEqual([]);
  });
});

it.each(BINDINGS)("a wire that is slow both ways, over %s, changes nothing but the time", async (binding) => {
  const rounds = threeRounds();
  const slow: RelayRule = (unit, pass) => void setTimeout(pass, 20, unit);
  const { transport } = await through(createScriptedPeer(rounds.script), binding, { up: slow, down: slow });
  const observed = await runThreeRounds(transport, "m", {});
  expect(faultsOf(observed, rounds.ran("m"), "always")).toEqual([]);
  expect(attempts(observed)).toEqual(["1 input_required", "2 input_required", "3 complete"]);
});

describe("a response that comes twice", () => {
  const twice: RelayRule = (unit, pass) => {
    pass(unit);
    pass(unit);
  };

  it.each([
    ["stdio", "line"],
    ["WebSocket", "frame"],
  ] as const)("REQ-02 over %s: the second is an anomaly and nothing else", async (binding, unit) => {
    const rounds = threeRounds();
    const { transport } = await through(createScriptedPeer(rounds.script), binding, { unit, down: twice });
    const observed = await runThreeRounds(transport, "m", {});
    expect(faultsOf(observed, rounds.ran("m"), "always")).toEqual([]);
    expect(attempts(observed)).toEqual(["1 input_required", "2 input_required", "3 complete"]);
    // The probe's and each round's; the last may come when the client has closed.
    expect(anomalies(observed).slice(0, 3)).toEqual(["late-response", "late-response", "late-response"]);
  });

  it("REQ-02 over HTTP answering SSE: the second is an anomaly and nothing else", async () => {
    const rounds = threeRounds((exchange, id, result) => {
      const text = JSON.stringify({ jsonrpc: "2.0", id, result });
      exchange.frame(text);
      exchange.raw(text);
    });
    const { transport } = await through(createScriptedPeer(rounds.script), "HTTP answering SSE");
    const observed = await runThreeRounds(transport, "m", {});
    expect(faultsOf(observed, rounds.ran("m"), "always")).toEqual([]);
    expect(anomalies(observed).slice(0, 2)).toEqual(["late-response", "late-response"]);
  });
});

describe("responses that overtake each other on a shared channel", () => {
  const OPERATIONS = 6;

  it.each([
    ["stdio", "line"],
    ["WebSocket", "frame"],
  ] as const)(
    "MRTR-10 REQ-02 over %s: each reaches its own operation in every round",
    async (binding, unit) => {
      const peer = createScriptedPeer(({ params }, exchange) => {
        const { n } = params.arguments as { n: number };
        const state = params.requestState;
        const inputs = params.inputResponses as Record<string, { content: { value: string } }> | undefined;
        // Every operation asks the same key, so that nothing but its own round trip tells its answers apart.
        const requests = { which: elicitForm(`${n}`, VALUE) };
        if (state === undefined)
          exchange.result(inputRequired({ inputRequests: requests, requestState: `${n} a` }));
        else if (state === `${n} a` && inputs?.which?.content.value === `for ${n}`) {
          exchange.result(inputRequired({ inputRequests: requests, requestState: `${n} b` }));
        } else if (state === `${n} b` && inputs?.which?.content.value === `for ${n}`) {
          exchange.result(complete(`${n} is done`));
        } else exchange.result(complete(`mixed up: ${n} came with ${String(state)}`, { isError: true }));
      });
      let held: Buffer[] = [];
      let reversals = 0;
      const reverse: RelayRule = (bytes, pass) => {
        // The probe has nothing to be reversed with, and neither has a WebSocket's close frame.
        if (bytes.includes("supportedVersions") || !bytes.includes("resultType")) return pass(bytes);
        held.push(bytes);
        if (held.length < OPERATIONS) return;
        reversals++;
        for (const response of held.reverse()) pass(response);
        held = [];
      };
      const { transport } = await through(peer, binding, { unit, down: reverse });
      const client = createClient({
        transport,
        info: { name: "fault-test", version: "1.0.0" },
        inputs: {
          elicitForm: ({ message }) => ({ action: "accept", content: { value: `for ${message}` } }),
        },
      });
      const calls = Array.from({ length: OPERATIONS }, (_, n) => client.callTool("mix", { n }));
      const texts = (await Promise.all(calls)).map(({ content }) => (content[0] as { text: string }).text);
      expect(texts).toEqual(Array.from({ length: OPERATIONS }, (_, n) => `${n} is done`));
      expect(reversals).toBe(3);
      const closing = client.close();
      // The WebSocket's close frame is the sixth of nothing: it is held, and the client does not wait for it for ever.
      await closing;
    },
  );
});

const VALUE = { type: "object", properties: { value: { type: "string" } }, required: ["value"] };
