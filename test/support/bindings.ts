/**
 * The five bindings behind one helper: a script and client options in, a client and the peer that plays the script out.
 * What a test opened is closed after it, and the peer's own close fails when a socket or a process is left: so every test
 * that uses this is also a test for leaks.
 */

import { afterEach } from "vitest";
import { type Client, createClient } from "../../src/client.ts";
import type { ClientOptions } from "../../src/client-options.ts";
import type { RallyEvent } from "../../src/events.ts";
import type { ScriptedPeer, ScriptedPeerOptions, Step } from "../../src/testing/peer-types.ts";
import { createScriptedPeer } from "../../src/testing/scripted-peer.ts";
import type { Transport } from "../../src/transport.ts";
import { type HttpTransportOptions, httpTransport } from "../../transports/http.ts";
import { stdioTransport } from "../../transports/stdio.ts";
import { webSocketTransport } from "../../transports/websocket.ts";
import { fastClock } from "./clocks.ts";

/** What a test may set: the client's options, the peer's, and those of the HTTP transport. */
export interface RigOptions extends Partial<Omit<ClientOptions, "transport">> {
  readonly peerOptions?: ScriptedPeerOptions;
  readonly http?: HttpTransportOptions;
}

/** A client and the scripted peer at its other end. */
export interface Rig {
  readonly client: Client;
  readonly peer: ScriptedPeer;
  /** Every event so far. */
  readonly events: RallyEvent[];
  /** Closes both; rejects when the client left something open. */
  close(): Promise<void>;
}

/** One of the five ways to reach a peer. */
export interface Binding {
  readonly name: string;
  /** All exchanges share one channel: the link is probed first, and a cancel is a notification. */
  readonly shared: boolean;
  readonly open: (script: Step | readonly Step[], options?: RigOptions) => Promise<Rig>;
}

const QUICK = { initialMs: 1 };
/** On the fast clock, as long as a test may take at all. */
const PATIENT_MS = 1_000_000;

export const memory = binding("memory", false, async (peer) => peer.memory());
export const httpJson = binding("HTTP JSON", false, async (peer, { http }) =>
  httpTransport((await peer.http()).url, http),
);
export const httpSse = binding("HTTP SSE", false, async (peer, { http }) =>
  httpTransport((await peer.http({ answer: "sse" })).url, http),
);
export const stdio = binding("stdio", true, async (peer) => {
  const { command, args } = await peer.stdio();
  return stdioTransport({ command, args, restart: QUICK });
});
export const webSocket = binding("WebSocket", true, async (peer) =>
  webSocketTransport((await peer.websocket()).url, { reconnect: QUICK }),
);

/** All five. */
export const BINDINGS: readonly Binding[] = [memory, httpJson, httpSse, stdio, webSocket];
/** The two that every requirement is tried on where it applies. */
export const HTTP_AND_STDIO: readonly Binding[] = [httpJson, stdio];

const open = new Set<Rig>();

afterEach(async () => {
  const rigs = [...open];
  open.clear();
  const ends = await Promise.allSettled(rigs.map((rig) => rig.close()));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
});

function binding(
  name: string,
  shared: boolean,
  connect: (peer: ScriptedPeer, options: RigOptions) => Promise<Transport>,
): Binding {
  async function openRig(script: Step | readonly Step[], options: RigOptions = {}): Promise<Rig> {
    const { peerOptions, http, ...clientOptions } = options;
    const peer = createScriptedPeer(script, peerOptions);
    const transport = await connect(peer, options);
    const rig = rigOf(peer, transport, clientOptions);
    open.add(rig);
    return rig;
  }
  return { name, shared, open: openRig };
}

/** A client over any transport to a scripted peer, closed after the test like those of the bindings. */
export function rigOver(
  peer: ScriptedPeer,
  transport: Transport,
  options: Omit<RigOptions, "peerOptions" | "http"> = {},
): Rig {
  const rig = rigOf(peer, transport, options);
  open.add(rig);
  return rig;
}

function rigOf(peer: ScriptedPeer, transport: Transport, options: RigOptions): Rig {
  const events: RallyEvent[] = [];
  const { onEvent } = options;
  const client = createClient({
    clock: fastClock(),
    info: { name: "test-host", version: "1.0.0" },
    probeMs: PATIENT_MS,
    ...options,
    timeouts: { attemptMs: PATIENT_MS, attemptMaxMs: PATIENT_MS, ...options.timeouts },
    transport,
    onEvent(event) {
      events.push(event);
      return onEvent?.(event);
    },
  });
  let closing: Promise<void> | undefined;
  async function closeBoth(): Promise<void> {
    await client.close();
    await peer.close();
  }
  const rig: Rig = {
    client,
    peer,
    events,
    close() {
      open.delete(rig);
      closing ??= closeBoth();
      return closing;
    },
  };
  return rig;
}
