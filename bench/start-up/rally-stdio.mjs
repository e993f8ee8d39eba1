/** The root entry and the stdio transport, with a client made. Nothing is started before the first call. */

import { createClient } from "mcp-rally";
import { stdioTransport } from "mcp-rally/transports/stdio";
import { report } from "./report.mjs";

createClient({
  transport: stdioTransport({ command: process.execPath }),
  info: { name: "bench", version: "1.0.0" },
});
report();
