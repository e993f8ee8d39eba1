/** Serves a scripted peer as lines over plain sockets: a path is a Unix domain socket, no path a TCP port of 127.0.0.1. */

import { createServer, type Socket } from "node:net";
import { closeServer, listenOnLoopback, watchSockets } from "../../src/testing/leftovers.ts";
import type { ScriptedPeer } from "../../src/testing/peer-types.ts";
import { LineReader } from "../../transports/lines.ts";

/** A scripted peer that listens for lines. */
export interface LinePeer {
  readonly address: number | string;
  /** Throws when a client left a socket open. */
  close(): Promise<void>;
}

/** See the head of this file. The socket file is gone after `close`. */
export async function serveLines(peer: ScriptedPeer, path?: string): Promise<LinePeer> {
  const server = createServer({ noDelay: true }, (socket) => serveSocket(peer, socket));
  const sockets = watchSockets(server);
  let address: number | string;
  if (path === undefined) address = await listenOnLoopback(server);
  else {
    address = path;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(path, resolve);
    });
  }
  return {
    address,
    async close() {
      const left = await sockets.drain(1000);
      await closeServer(server);
      if (left > 0) throw new Error(`the client left ${left} socket(s) to ${address} open`);
    },
  };
}

function serveSocket(peer: ScriptedPeer, socket: Socket): void {
  const channel = peer.channel({
    send: (text) => write(`${text}\n`),
    write,
    sendPieces: async (parts) => write(Buffer.concat([...parts, Buffer.from("\n")])),
    end: () => void socket.end(),
    crash: () => void socket.destroy(),
  });
  const lines = new LineReader({
    messageBytes: 1e9,
    onLine: (text) => channel.receive(text),
    onBadLine: () => {},
    onOversize: () => {},
  });
  function write(data: Uint8Array | string): void {
    if (socket.writable) socket.write(data);
  }
  socket.on("data", (bytes) => lines.push(bytes)).on("error", () => {});
  socket.on("close", () => channel.gone("the socket closed"));
}
