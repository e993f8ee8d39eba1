/** One call over HTTP, from the start of the process to its answer. */

import { createClient } from "mcp-rally";
import { httpTransport } from "mcp-rally/transports/http";
import { report } from "./report.mjs";

const client = createClient({
  transport: httpTransport(process.argv[2]),
  info: { name: "bench", version: "1.0.0" },
});
await client.callTool("echo", { text: "hello" });
report();
await client.close();
