/** The official SDK of the first generation. It speaks the older revisions only. */

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { ANSWER, asks, INFO } from "../contenders/calls.mjs";
import { callOf } from "./client-calls.mjs";
import { PlainMemoryTransport, PlainWebSocketTransport } from "./plain-transports.mjs";

function transportTo({ transport }, target) {
  switch (transport) {
    case "memory":
      return new PlainMemoryTransport();
    case "stdio":
      return new StdioClientTransport({ ...target.command, maxBufferSize: 256 * 1024 * 1024 });
    case "websocket":
      return new PlainWebSocketTransport(target.url);
    default:
      return new StreamableHTTPClientTransport(new URL(target.url));
  }
}

export async function open(scenario, target) {
  const isAsked = asks(scenario.tool);
  const client = new Client(INFO, { capabilities: isAsked ? { elicitation: {} } : {} });
  if (isAsked) client.setRequestHandler(ElicitRequestSchema, () => ANSWER);
  await client.connect(transportTo(scenario, target));
  return {
    call: callOf(scenario, (params, options) => client.callTool(params, undefined, options)),
    close: () => client.close(),
  };
}
