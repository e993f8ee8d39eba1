/** The official client of the second generation, at revision 2026-07-28. */

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { ANSWER, asks, INFO, VERSION } from "../contenders/calls.mjs";
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
  const client = new Client(INFO, {
    capabilities: isAsked ? { elicitation: { form: {} } } : {},
    versionNegotiation: { mode: { pin: VERSION } },
  });
  if (isAsked) client.setRequestHandler("elicitation/create", () => ANSWER);
  await client.connect(transportTo(scenario, target));
  return {
    call: callOf(scenario, (params, options) => client.callTool(params, options)),
    close: () => client.close(),
  };
}
