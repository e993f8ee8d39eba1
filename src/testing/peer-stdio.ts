/**
 * The stdio binding of a scripted peer. The child is a real process, small and dull: it connects its stdin and stdout to a
 * socket of this process, where the scripts run and can see the test's variables.
 */

import { randomUUID } from "node:crypto";
import { createServer, type Socket } from "node:net";
import { StringDecoder } from "node:string_decoder";
import { closeServer, listenOnLoopback, watchSockets } from "./leftovers.ts";
import { openPeerChannel } from "./peer-channel.ts";
import { type BoundServer, nextTurn, noHttp, type Outlet, type PeerCore } from "./peer-core.ts";
import type { PeerChannel } from "./peer-types.ts";

/** What the child runs. It tells who it is first, and leaves when the peer ends the socket. */
const CHILD_SOURCE = `
const [port, token] = process.argv.slice(1);
const socket = require("node:net").connect({ port: Number(port), host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
socket.write(token + " " + process.pid + "\\n");
process.stdin.pipe(socket);
socket.on("data", (bytes) => { if (!process.stdout.write(bytes)) { socket.pause(); process.stdout.once("drain", () => socket.resume()); } });
socket.on("end", () => process.stdout.write("", () => process.exit(0)));
socket.on("error", () => process.exit(1));
process.stdout.on("error", () => process.exit(1));
`;

/** Makes the command, and the server that its children call home to. */
export async function startPeerStdio(
  core: PeerCore,
): Promise<BoundServer & { command: string; args: string[] }> {
  const token = randomUUID();
  const pids = new Set<number>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    serveChild(core, socket, token, pids),
  );
  const sockets = watchSockets(server);
  const port = await listenOnLoopback(server);
  return {
    command: process.execPath,
    args: ["-e", CHILD_SOURCE, String(port), token],
    async close(graceMs) {
      const left = await sockets.drain(graceMs);
      await closeServer(server);
      if (left === 0) return [];
      const running = [...pids].filter(isRunning);
      return [`${left} child process(es) still running: ${running.join(", ") || "pid unknown"}`];
    },
  };
}

function serveChild(core: PeerCore, socket: Socket, token: string, pids: Set<number>): void {
  const decoder = new StringDecoder("utf8");
  let pending: string[] = [];
  let channel: PeerChannel | undefined;
  let pid = 0;

  function line(text: string): void {
    if (channel !== undefined) {
      channel.receive(text);
      return;
    }
    const [theirs, number] = text.split(" ");
    if (theirs !== token) {
      socket.destroy();
      return;
    }
    pid = Number(number);
    pids.add(pid);
    channel = openPeerChannel(core, { link: core.nextLink() }, stdioOutlet(socket, pid));
  }

  socket.on("data", (bytes) => {
    const parts = decoder.write(bytes).split("\n");
    const last = parts.pop() ?? "";
    for (const part of parts) {
      pending.push(part);
      const text = pending.join("");
      pending = [];
      line(text);
    }
    if (last !== "") pending.push(last);
  });
  // The child's stdin ended: a good server leaves.
  socket.on("end", () => socket.end());
  socket.on("error", () => socket.destroy());
  socket.on("close", () => {
    pids.delete(pid);
    channel?.gone("the process is gone");
  });
}

function stdioOutlet(socket: Socket, pid: number): Outlet {
  function write(data: Uint8Array | string): void {
    if (socket.writable) socket.write(data);
  }
  async function writeAlone(data: Uint8Array | string): Promise<void> {
    if (!socket.writable) return;
    await new Promise<void>((resolve) => {
      socket.write(data, () => resolve());
    });
    await nextTurn();
  }
  return {
    socket,
    frame: (text) => write(`${text}\n`),
    final: (text) => write(`${text}\n`),
    async pieces(parts) {
      for (const part of parts) await writeAlone(part);
      await writeAlone("\n");
    },
    bytes: writeAlone,
    drop: () => void socket.end(),
    crash() {
      if (isRunning(pid)) process.kill(pid, "SIGKILL");
    },
    http: noHttp,
  };
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
