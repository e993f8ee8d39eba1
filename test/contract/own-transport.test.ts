import { rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, it } from "vitest";
import { ConnectionLostError } from "../../src/errors.ts";
import { transportContract } from "../../src/testing/contract.ts";
import type { ScriptedPeer } from "../../src/testing/peer-types.ts";
import type { Transport } from "../../src/transport.ts";
import { LineReader } from "../../transports/lines.ts";
import { linkTransport } from "../../transports/link.ts";

// A transport that someone else would write: lines over a Unix domain socket, served by peer.channel().

let cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups) await cleanup();
  cleanups = [];
});

function unixSocketTransport(path: string): Transport {
  return linkTransport({
    name: "unix",
    peer: path,
    open(link) {
      const socket = connect(path);
      const lines = new LineReader({
        messageBytes: link.limits.messageBytes,
        onLine: (text) => link.receive(text),
        onBadLine: (fault, bytes) => link.receiveBad(fault, bytes),
        onOversize: (error) => link.down({ error: () => error }),
      });
      const port = {
        send: (text: string) => void socket.write(`${text}\n`),
        get buffered() {
          return socket.writableLength;
        },
      };
      socket.on("connect", () => link.up(port));
      socket.on("data", (bytes) => lines.push(bytes));
      socket.on("drain", () => link.drained());
      socket.on("error", () => {});
      const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
      socket.on("close", () =>
        link.down({ error: (how) => new ConnectionLostError("the socket closed", how) }),
      );
      return {
        close() {
          socket.destroySoon();
          return closed;
        },
      };
    },
  });
}

let made = 0;
async function serve(peer: ScriptedPeer): Promise<string> {
  const path = join(tmpdir(), `mcp-rally-${process.pid}-${++made}.sock`);
  const server = createServer((socket) => {
    const channel = peer.channel({
      send: (text) => void socket.write(`${text}\n`),
      sendPieces: async (parts) => void socket.write(Buffer.concat([...parts, Buffer.from("\n")])),
      end: () => void socket.end(),
      crash: () => void socket.destroy(),
    });
    const lines = new LineReader({
      messageBytes: 1e9,
      onLine: (text) => channel.receive(text),
      onBadLine: () => {},
      onOversize: () => {},
    });
    socket.on("data", (bytes) => lines.push(bytes)).on("error", () => {});
    socket.on("close", () => channel.gone("the socket closed"));
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  // Resolves only when no socket is open: a leak would be a timeout here.
  cleanups.push(
    () => new Promise((resolve) => server.close(resolve)),
    async () => rmSync(path, { force: true }),
  );
  return path;
}

transportContract("own transport", async (peer) => unixSocketTransport(await serve(peer)), {
  runner: { describe, it },
});
