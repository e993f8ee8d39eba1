/**
 * The bench server over HTTP and WebSocket, in a process of its own. POST /json answers with JSON where one frame is all,
 * POST /sse with an event stream. Writes `{"port":N}` on stdout when it listens; ends with its stdin.
 */

import { createServer } from "node:http";
import { WebSocketServer } from "ws";
import { answer } from "./answers.mjs";

const DAY_MS = 86_400_000;

const server = createServer({ keepAliveTimeout: DAY_MS, noDelay: true }, (request, response) => {
  if (request.method !== "POST") {
    response.writeHead(405).end();
    return;
  }
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const frame = JSON.parse(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
    const wantsStream = request.url === "/sse";
    const send = (text, isLast) => {
      if (isLast && !wantsStream && !response.headersSent) {
        const body = Buffer.from(text);
        response.writeHead(200, { "content-type": "application/json", "content-length": body.length });
        response.end(body);
        return;
      }
      if (!response.headersSent) response.writeHead(200, { "content-type": "text/event-stream" });
      const event = `event: message\ndata: ${text}\n\n`;
      if (isLast) response.end(event);
      else response.write(event);
    };
    if (!answer(frame, send)) response.writeHead(202).end();
  });
});
server.requestTimeout = 0;
server.headersTimeout = 0;
server.timeout = 0;

const sockets = new WebSocketServer({ server, handleProtocols: (offered) => offered.values().next().value });
sockets.on("connection", (socket) => {
  socket._socket.setNoDelay(true);
  socket.on("message", (data) => answer(JSON.parse(data.toString()), (text) => socket.send(text)));
});

server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${JSON.stringify({ port: server.address().port })}\n`);
});
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
