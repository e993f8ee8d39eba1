/** The bench's server over stdio, which also writes what it reads into a file: `node recorded-stdio.mjs FILE`. */

import "../../bench/servers/stdio.mjs";
import { appendFileSync } from "node:fs";

process.stdin.on("data", (chunk) => appendFileSync(process.argv[2], chunk));
