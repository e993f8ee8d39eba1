/** `npm run demo`: the scenes over stdio, HTTP and WebSocket, with the package as a user has it. */

import { bindings, runDemo } from "./run-demo.ts";
import { scenes } from "./scenes.ts";

process.exitCode = await runDemo(Object.keys(bindings), scenes);
