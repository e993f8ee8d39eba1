/** The MCP client of the AI SDK. It speaks the older revisions only, and calls tools as model tools. */

import { createMCPClient, ElicitationRequestSchema } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioMCPTransport } from "@ai-sdk/mcp/mcp-stdio";
import { ANSWER, argumentsOf, asks, check, INFO } from "../contenders/calls.mjs";
import { PlainMemoryTransport, PlainWebSocketTransport } from "./plain-transports.mjs";

function transportTo({ transport }, target) {
  switch (transport) {
    case "memory":
      return new PlainMemoryTransport();
    case "stdio":
      return new StdioMCPTransport(target.command);
    case "websocket":
      return new PlainWebSocketTransport(target.url);
    default:
      return { type: "http", url: target.url };
  }
}

export async function open(scenario, target) {
  const isAsked = asks(scenario.tool);
  const client = await createMCPClient({
    name: INFO.name,
    version: INFO.version,
    transport: transportTo(scenario, target),
    ...(isAsked && { capabilities: { elicitation: {} } }),
  });
  if (isAsked) client.onElicitationRequest(ElicitationRequestSchema, () => ANSWER);
  const tool = (await client.tools())[scenario.tool];
  const args = argumentsOf(scenario);
  const options = { messages: [], toolCallId: "bench" };
  return {
    call: async () => check(scenario, await tool.execute(args, options)),
    close: () => client.close(),
  };
}
