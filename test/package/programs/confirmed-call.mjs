/** One call that its server wants confirmed, in this process and over stdio: `node confirmed-call.mjs SERVER`. */

import { createClient } from "mcp-rally";
import { memoryTransport } from "mcp-rally/transports/memory";
import { stdioTransport } from "mcp-rally/transports/stdio";

const ask = {
  method: "elicitation/create",
  params: {
    message: "Sure?",
    requestedSchema: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] },
  },
};
const transports = [
  memoryTransport(({ params }) =>
    params.inputResponses === undefined
      ? { resultType: "input_required", inputRequests: { sure: ask }, requestState: "s1" }
      : { resultType: "complete", content: [{ type: "text", text: JSON.stringify(params.inputResponses) }] },
  ),
  stdioTransport({ command: process.execPath, args: [process.argv[2]] }),
];
for (const transport of transports) {
  const client = createClient({
    transport,
    info: { name: "program", version: "1.0.0" },
    inputs: { elicitForm: () => ({ action: "accept", content: { ok: true } }) },
  });
  const { content } = await client.callTool("deploy", { env: "staging" });
  console.log(`${transport.name}: ${content[0].text}`);
  await client.close();
}
