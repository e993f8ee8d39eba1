/** The same call with node:http alone, from the start of the process to its answer. */

import { Agent, request } from "node:http";
import { frameOf } from "../contenders/calls.mjs";
import { report } from "./report.mjs";

const agent = new Agent({ keepAlive: true });
const frame = await new Promise((resolve, reject) => {
  const headers = {
    Accept: "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "echo",
  };
  const sent = request(process.argv[2], { method: "POST", agent, headers }, (response) => {
    const chunks = [];
    response.on("data", (chunk) => chunks.push(chunk));
    response.on("end", () => resolve(JSON.parse(Buffer.concat(chunks))));
  });
  sent.on("error", reject);
  sent.end(frameOf(1, { tool: "echo" }));
});
if (frame.result.content[0].text !== "hello") throw new Error("another answer");
report();
agent.destroy();
