/**
 * The official test server over WebSocket, on a free port of 127.0.0.1: subprotocol mcp, one message per text frame. The
 * package has no such binding of its own; its transport interface and its stdio entry, which serves any shared channel, are
 * enough. Prints {"url": …} and exits when its stdin ends.
 */

import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { WebSocketServer } from "ws";
import { buildServer } from "./official-server.mjs";

const server = new WebSocketServer({
  host: "127.0.0.1",
  port: 0,
  handleProtocols: (offered) => (offered.has("mcp") ? "mcp" : false),
});
server.on("listening", () => {
  console.log(JSON.stringify({ url: `ws://127.0.0.1:${server.address().port}/` }));
});
server.on("connection", (socket) => {
  serveStdio(() => buildServer(), { transport: webSocketTransport(socket) });
});

/** One WebSocket as the package's Transport. */
function webSocketTransport(socket) {
  const transport = {
    async start() {
      socket.on("message", (data, isBinary) => {
        if (isBinary) {
          socket.close(1003, "text frames only");
          return;
        }
        try {
          transport.onmessage?.(JSON.parse(String(data)));
        } catch (error) {
          transport.onerror?.(error);
        }
      });
      socket.on("error", (error) => transport.onerror?.(error));
      socket.on("close", () => transport.onclose?.());
    },
    send: (message) =>
      new Promise((resolve, reject) => {
        socket.send(JSON.stringify(message), (error) => (error ? reject(error) : resolve()));
      }),
    async close() {
      socket.close();
    },
  };
  return transport;
}

process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
