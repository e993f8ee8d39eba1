/**
 * The official test server over Streamable HTTP, on a free port of 127.0.0.1. Prints {"url": …} and exits when its stdin ends.
 * Environment: RESPONSE_MODE = auto (default), json or sse.
 */

import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { buildServer } from "./official-server.mjs";

const handler = createMcpHandler(() => buildServer({ notify: handler.notify }), {
  responseMode: process.env.RESPONSE_MODE ?? "auto",
});
const server = createServer(toNodeHandler(handler));
server.listen(0, "127.0.0.1", () => {
  console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}/mcp` }));
});

process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
