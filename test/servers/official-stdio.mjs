/** The official test server over stdio. */

import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { buildServer } from "./official-server.mjs";

serveStdio(() => buildServer());
