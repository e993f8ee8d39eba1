/** What the tests of subscriptions share: one client and one scripted peer per binding, and a check that nothing is left. */

import { afterEach, expect } from "vitest";
import { type Client, createClient } from "../../src/client.ts";
import type { ClientOptions } from "../../src/client-options.ts";
import { type Clock, systemClock } from "../../src/clock.ts";
import type { RallyEvent } from "../../src/events.ts";
import { META } from "../../src/protocol.ts";
import type { Subscription } from "../../src/subscription.ts";
import type { SubscriptionItem } from "../../src/subscription-queue.ts";
import type { PeerExchange, PeerRequest, Script, ScriptedPeer, Step } from "../../src/testing/peer-types.ts";
import { createScriptedPeer } from "../../src/testing/scripted-peer.ts";
import type { Transport } from "../../src/transport.ts";
import { httpTransport } from "../../transports/http.ts";
import { stdioTransport } from "../../transports/stdio.ts";
import { webSocketTransport } from "../../transports/websocket.ts";

export interface Binding {
  readonly name: string;
  readonly shared: boolean;
  connect(peer: ScriptedPeer): Promise<Transport>;
}

/** The links' own pauses are not what is tested here. */
const LINK_BACKOFF = { initialMs: 1, maxMs: 1 };

export const HTTP: Binding = {
  name: "HTTP",
  shared: false,
  connect: async (peer) => httpTransport((await peer.http({ answer: "sse" })).url),
};
export const STDIO: Binding = {
  name: "stdio",
  shared: true,
  connect: async (peer) => stdioTransport({ ...(await peer.stdio()), restart: LINK_BACKOFF }),
};
export const WEBSOCKET: Binding = {
  name: "WebSocket",
  shared: true,
  connect: async (peer) => webSocketTransport((await peer.websocket()).url, { reconnect: LINK_BACKOFF }),
};
export const BINDINGS: readonly Binding[] = [HTTP, STDIO, WEBSOCKET];

export interface Rig {
  readonly peer: ScriptedPeer;
  readonly client: Client;
  readonly events: RallyEvent[];
  readonly clock: TestClock;
  /** The states that `subscription.changed` told of, in order. */
  states(): string[];
  anomalies(): string[];
}

const closers: (() => Promise<void>)[] = [];

/** The real clock, which can be put forward, and knows which of its timers are still to fire. */
class TestClock implements Clock {
  readonly timers = new Map<unknown, { readonly ms: number; fire(): void }>();
  /** How far `now` is put forward. */
  aheadMs = 0;
  wallNow = systemClock.wallNow;

  now(): number {
    return systemClock.now() + this.aheadMs;
  }

  setTimer(callback: () => void, ms: number): unknown {
    const fire = () => {
      this.clearTimer(handle);
      callback();
    };
    const handle = systemClock.setTimer(fire, ms);
    this.timers.set(handle, { ms, fire });
    return handle;
  }

  /** Fires the timers that were set for `ms`. Gives how many there were. */
  fire(ms: number): number {
    const due = [...this.timers.values()].filter((timer) => timer.ms === ms);
    for (const timer of due) timer.fire();
    return due.length;
  }

  clearTimer(handle: unknown): void {
    this.timers.delete(handle);
    systemClock.clearTimer(handle);
  }
}

/** Makes a peer and a client. Both are closed after the test, which fails when a timer, socket or process is left. */
export async function rig(
  binding: Binding,
  script: Step | readonly Step[],
  options: Partial<ClientOptions> = {},
): Promise<Rig> {
  const peer = createScriptedPeer(script);
  const transport = await binding.connect(peer);
  const client = watched({ transport, ...options });
  closers.push(() => peer.close());
  return { peer, ...client };
}

/** A client for a transport that leads elsewhere, with the same checks. */
export function watched(
  options: Partial<ClientOptions> & Pick<ClientOptions, "transport">,
): Omit<Rig, "peer"> {
  const clock = new TestClock();
  const events: RallyEvent[] = [];
  const client = createClient({
    info: { name: "test-host", version: "1.0.0" },
    clock,
    ...options,
    onEvent: (event) => {
      events.push(event);
      options.onEvent?.(event);
    },
  });
  closers.push(async () => {
    await client.close();
    expect(clock.timers.size, "timers left").toBe(0);
  });
  return {
    client,
    events,
    clock,
    states: () => events.flatMap((event) => (event.type === "subscription.changed" ? [event.state] : [])),
    anomalies: () => events.flatMap((event) => (event.type === "wire.anomaly" ? [event.kind] : [])),
  };
}

/** Something else to close after the test, before clients and peers. */
export function closeAfter(close: () => Promise<void>): void {
  closers.push(close);
}

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** Pauses that a test does not notice. */
export const QUICK = { backoffMs: 5, maxMs: 20 } as const;

export const TOOLS = "notifications/tools/list_changed";
export const UPDATED = "notifications/resources/updated";

/** Tells the client of a change, with the subscription id that the request gave. */
export function change(
  request: PeerRequest,
  exchange: PeerExchange,
  method: string = TOOLS,
  params: object = {},
): void {
  exchange.notify(method, { ...params, _meta: { [META.subscriptionId]: request.id } });
}

/** Acknowledges a listen request: all of it, or `notifications`. */
export function acknowledge(
  request: PeerRequest,
  exchange: PeerExchange,
  notifications: unknown = request.params.notifications,
): void {
  change(request, exchange, "notifications/subscriptions/acknowledged", { notifications });
}

/** A graceful end. */
export function endGracefully(request: PeerRequest, exchange: PeerExchange): void {
  exchange.result({ resultType: "complete", _meta: { [META.subscriptionId]: request.id } });
}

/** The server cancels the listen request. */
export function cancelListen(request: PeerRequest, exchange: PeerExchange): void {
  exchange.notify("notifications/cancelled", { requestId: request.id, reason: "shutting down" });
}

/** A server that acknowledges, and then does `more`. */
export function acknowledging(more: Script = () => {}): Script {
  return (request, exchange) => {
    acknowledge(request, exchange);
    return more(request, exchange);
  };
}

/** The next item. */
export async function next(subscription: Subscription): Promise<SubscriptionItem | undefined> {
  const { value } = await subscription[Symbol.asyncIterator]().next();
  return value;
}

/** Everything from now on to the end, each as its method, or as "gap" with its reason. */
export async function readAll(subscription: Subscription): Promise<string[]> {
  const items: string[] = [];
  for await (const item of subscription) items.push(nameOf(item));
  return items;
}

export function nameOf(item: SubscriptionItem | undefined): string {
  if (item === undefined) return "end";
  return item.type === "gap" ? `gap ${item.reason}` : item.method;
}
