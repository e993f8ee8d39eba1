/** Starts the bench's HTTP and WebSocket server in a process of its own. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Targets } from "./run-scenario.ts";

const fileOf = (name: string) => fileURLToPath(new URL(`servers/${name}`, import.meta.url));

export async function startServer(): Promise<{ targets: Targets; stop: () => Promise<void> }> {
  const child = spawn(process.execPath, [fileOf("net.mjs")], { stdio: ["pipe", "pipe", "inherit"] });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const { port } = JSON.parse(line.toString()) as { port: number };
  return {
    targets: {
      httpUrl: `http://127.0.0.1:${port}`,
      stdioCommand: { command: process.execPath, args: [fileOf("stdio.mjs")] },
    },
    stop: async () => {
      const exited = once(child, "exit");
      child.stdin.end();
      await exited;
    },
  };
}
