#!/usr/bin/env node
/** The executable. All it does is in `app.ts`. */

import { main } from "./app.ts";
import { processIo } from "./io.ts";

// A reader that has seen enough, such as `head`, closes the pipe: that is no error, and no reason to go on.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(process.exitCode ?? 0);
});

// The process ends by itself: everything that `main` opened is closed, and what it wrote is on its way out.
process.exitCode = await main(process.argv.slice(2), processIo());
