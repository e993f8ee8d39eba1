/** Runs one script of the bench in a fresh Node process, and reads the JSON that it prints. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** Gives what the script printed. Throws when it fails. */
export async function runScript<T>(
  script: string,
  args: readonly string[] = [],
  nodeFlags: readonly string[] = [],
): Promise<T> {
  const file = fileURLToPath(new URL(script, import.meta.url));
  const child = spawn(process.execPath, [...nodeFlags, file, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NODE_OPTIONS: "" },
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${script} failed`);
  return JSON.parse(output) as T;
}
