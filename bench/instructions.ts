/**
 * Instructions per call in the memory scenario, where the kernel lets `perf stat` count them. They vary far less than
 * times, also on a machine that has other things to do.
 */

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const FEW = 100_000;
const MANY = 300_000;

/** Instructions per call; undefined where they cannot be counted. */
export async function countInstructions(): Promise<{ engine: number; binding: number } | undefined> {
  if ((await count(["true"])) === undefined) return undefined;
  const engine = await perCall("engine");
  const binding = await perCall("binding");
  return engine === undefined || binding === undefined ? undefined : { engine, binding };
}

async function perCall(contender: string): Promise<number | undefined> {
  const script = fileURLToPath(new URL("instructions.mjs", import.meta.url));
  const file = new URL(`contenders/${contender}.mjs`, import.meta.url).href;
  // The difference of two runs leaves the start-up and the compilers out.
  const few = await count([process.execPath, script, file, String(FEW)]);
  const many = await count([process.execPath, script, file, String(MANY)]);
  return few === undefined || many === undefined ? undefined : (many - few) / (MANY - FEW);
}

async function count(command: readonly string[]): Promise<number | undefined> {
  try {
    const { stderr } = await run("perf", ["stat", "-x", ",", "-e", "instructions:u", "--", ...command]);
    const counted = /^(\d+),[^,]*,instructions/m.exec(stderr)?.[1];
    return counted === undefined ? undefined : Number(counted);
  } catch {
    return undefined;
  }
}
