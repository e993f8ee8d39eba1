/** The WebSocket binding of a scripted peer: subprotocol `mcp`, one message per text frame (WS-01). */

import { createServer, type IncomingMessage } from "node:http";
import { type WebSocket, WebSocketServer } from "ws";
import { closeServer, listenOnLoopback, watchSockets } from "./leftovers.ts";
import { openPeerChannel } from "./peer-channel.ts";
import { type BoundServer, nextTurn, noHttp, type Outlet, type PeerCore } from "./peer-core.ts";

/** Starts the server. */
export async function startPeerWebSocket(core: PeerCore): Promise<BoundServer & { url: string }> {
  const server = createServer();
  const sockets = watchSockets(server);
  const webSockets = new WebSocketServer({
    server,
    path: "/mcp",
    perMessageDeflate: false,
    maxPayload: 256 * 1024 * 1024,
    handleProtocols: (offered) => (offered.has("mcp") ? "mcp" : false),
  });
  webSockets.on("connection", (socket, request) => serveSocket(core, socket, request));
  const port = await listenOnLoopback(server);
  return {
    url: `ws://127.0.0.1:${port}/mcp`,
    async close(graceMs) {
      const left = await sockets.drain(graceMs);
      webSockets.close();
      await closeServer(server);
      return left === 0 ? [] : [`${left} WebSocket(s) to 127.0.0.1:${port} still open`];
    },
  };
}

function serveSocket(core: PeerCore, socket: WebSocket, request: IncomingMessage): void {
  const origin = { link: core.nextLink(), headers: request.headers };
  const channel = openPeerChannel(core, origin, webSocketOutlet(socket, request));
  socket.on("message", (data, isBinary) => {
    if (isBinary) socket.close(1003, "MCP messages are text frames");
    else channel.receive(String(data));
  });
  socket.on("error", () => socket.terminate());
  socket.on("close", () => channel.gone("the WebSocket is closed"));
}

function webSocketOutlet(socket: WebSocket, { socket: tcp }: IncomingMessage): Outlet {
  function send(text: string): void {
    if (socket.readyState === socket.OPEN) socket.send(text);
  }
  return {
    socket: tcp,
    frame: send,
    final: send,
    async pieces(parts) {
      for (const [at, part] of parts.entries()) {
        if (socket.readyState !== socket.OPEN) return;
        const fin = at === parts.length - 1;
        await new Promise<void>((resolve) => {
          socket.send(part, { binary: false, fin }, () => resolve());
        });
        await nextTurn();
      }
    },
    async bytes(data) {
      if (!tcp.writable) return;
      await new Promise<void>((resolve) => {
        tcp.write(data, () => resolve());
      });
      await nextTurn();
    },
    drop: (closeCode) => socket.close(closeCode),
    crash: () => void tcp.resetAndDestroy(),
    http: noHttp,
  };
}
