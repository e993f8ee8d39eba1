/** Whose code a profile's samples were in. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** A profile of V8, as far as it is used: samples name nodes, and each has the time since the one before. */
export interface CpuProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: CallFrame }[];
  readonly samples: readonly number[];
  /** Microseconds. */
  readonly timeDeltas: readonly number[];
}

interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  /** From 0. */
  readonly lineNumber: number;
}

/** In the order in which reports show them. */
export const OWNERS = [
  "engine",
  "binding",
  "packages",
  "compiling",
  "Node.js",
  "collector",
  "native",
] as const;

/**
 * - engine, binding: what was built from `src/`, and from `transports/`. V8 counts the parsing and the writing of JSON with
 *   whoever asks for it, and that is mostly `src/wire.ts` and `src/request.ts`.
 * - packages: undici, ws and the rest of node_modules.
 * - compiling: reading modules' source into code.
 * - Node.js: its own JavaScript.
 * - collector: the garbage collector, as far as it holds the program up.
 * - native: system calls, above all, and whatever else is not JavaScript.
 */
export type Owner = (typeof OWNERS)[number];

/** Milliseconds by owner. */
export type Owned = Readonly<Record<Owner, number>>;

/** Sums a profile up. What the bench itself does and idle time are left out. */
export function sumUp({ nodes, samples, timeDeltas }: CpuProfile): Owned {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const sums = Object.fromEntries(OWNERS.map((owner) => [owner, 0])) as Record<Owner, number>;
  for (const [index, sample] of samples.entries()) {
    const owner = ownerOf(frames.get(sample)!);
    if (owner !== undefined) sums[owner] += timeDeltas[index]! / 1000;
  }
  return sums;
}

/** What is no function of a program; `dispatch` is the profiler's own. */
const OUTSIDE: ReadonlyMap<string, Owner | undefined> = new Map([
  ["(idle)", undefined],
  ["(root)", undefined],
  ["dispatch", undefined],
  ["(garbage collector)", "collector"],
]);

const COMPILING = new Set(["compileSourceTextModule", "wrapSafe", "compileFunction"]);

function ownerOf({ functionName, url, lineNumber }: CallFrame): Owner | undefined {
  if (COMPILING.has(functionName)) return "compiling";
  if (url === "") return OUTSIDE.has(functionName) ? OUTSIDE.get(functionName) : "native";
  if (url.startsWith("node:")) return "Node.js";
  // undici's parser of HTTP is WebAssembly.
  if (url.includes("/node_modules/") || url.startsWith("wasm:")) return "packages";
  if (url.includes("/bench/")) return undefined;
  return sourceAt(url, lineNumber).startsWith("transports/") ? "binding" : "engine";
}

const regions = new Map<string, readonly string[]>();

/** The source file that a line of a built file comes from: the bundler says so above each. */
function sourceAt(url: string, lineNumber: number): string {
  let lines = regions.get(url);
  if (lines === undefined) {
    let source = "";
    lines = readFileSync(fileURLToPath(url), "utf8")
      .split("\n")
      .map((line) => {
        source = /^\/\/ ((?:src|transports)\/\S+\.ts)$/.exec(line)?.[1] ?? source;
        return source;
      });
    regions.set(url, lines);
  }
  return lines[lineNumber] ?? "";
}
