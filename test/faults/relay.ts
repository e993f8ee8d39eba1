/** A relay between a client and a peer that holds, delays, doubles or mixes what passes. */

import { connect, createServer, type Socket } from "node:net";
import { closeServer, listenOnLoopback, watchSockets } from "../../src/testing/leftovers.ts";

/** What a rule is given one by one: whatever a read gave, or the lines or WebSocket frames in it. */
export type RelayUnit = "chunk" | "line" | "frame";

type Emit = (unit: Buffer) => void;

/** Passes a unit on, or not, now or later, as often as it likes. */
export type RelayRule = (unit: Buffer, pass: Emit) => void;

/** See {@link startRelay}. */
export interface Relay {
  readonly port: number;
  /** From now on nothing passes in that direction, over any connection; all of them stay open. */
  stall(direction: "up" | "down"): void;
  /** Connections that are made from now on are not stalled; those that are stay so. */
  heal(): void;
  /** Throws when a client left a socket open. */
  close(): Promise<void>;
}

/** Starts a relay to a port of 127.0.0.1. The rules default to passing everything on. */
export async function startRelay(
  target: number,
  options: { readonly unit?: RelayUnit; readonly up?: RelayRule; readonly down?: RelayRule } = {},
): Promise<Relay> {
  const server = createServer({ noDelay: true }, (client) => {
    const peer = connect({ port: target, host: "127.0.0.1", noDelay: true });
    const stalled = state;
    join("up", client, peer, stalled);
    join("down", peer, client, stalled);
  });
  const sockets = watchSockets(server);
  /** What is stalled: each connection keeps the object that was current when it was made. */
  let state = { up: false, down: false };

  function join(direction: "up" | "down", from: Socket, to: Socket, stalled: typeof state): void {
    const rule = options[direction] ?? ((unit, pass) => pass(unit));
    const pass = (unit: Buffer) => void (to.writable && to.write(unit));
    const take = splitter(options.unit ?? "chunk", pass, (unit) => rule(unit, pass));
    from.on("data", (bytes: Buffer) => {
      if (!stalled[direction]) take(bytes);
    });
    from.on("error", () => {});
    from.on("close", () => to.end());
  }

  return {
    port: await listenOnLoopback(server),
    stall(direction) {
      state[direction] = true;
    },
    heal() {
      state = { up: false, down: false };
    },
    async close() {
      const left = await sockets.drain(1000);
      await closeServer(server);
      if (left > 0) throw new Error(`the client left ${left} socket(s) to the relay open`);
    },
  };
}

/** Cuts a stream into units. What comes before the first frame is the handshake: it is HTTP's, and no rule is about it. */
function splitter(unit: RelayUnit, pass: Emit, emit: Emit): Emit {
  if (unit === "chunk") return emit;
  let held: Buffer = Buffer.alloc(0);
  let inHandshake = unit === "frame";
  return (bytes) => {
    held = Buffer.concat([held, bytes]);
    for (;;) {
      const length = inHandshake
        ? lengthUpTo(held, "\r\n\r\n")
        : unit === "line"
          ? lengthUpTo(held, "\n")
          : frameLength(held);
      if (length === 0 || length > held.length) return;
      const whole = held.subarray(0, length);
      held = held.subarray(length);
      if (inHandshake) pass(whole);
      else emit(whole);
      inHandshake = false;
    }
  };
}

/** Up to and with the end mark; 0 when it has not come yet. */
function lengthUpTo(bytes: Buffer, mark: string): number {
  const at = bytes.indexOf(mark);
  return at === -1 ? 0 : at + mark.length;
}

/** The length of the WebSocket frame that begins here; 0 when its header has not come yet. */
function frameLength(bytes: Buffer): number {
  if (bytes.length < 2) return 0;
  const short = bytes[1]! & 0x7f;
  const mask = (bytes[1]! & 0x80) === 0 ? 0 : 4;
  if (short < 126) return 2 + mask + short;
  if (short === 126) return bytes.length < 4 ? 0 : 4 + mask + bytes.readUInt16BE(2);
  return bytes.length < 10 ? 0 : 10 + mask + Number(bytes.readBigUInt64BE(2));
}
