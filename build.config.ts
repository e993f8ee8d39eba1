/**
 * Builds the package, for `npm run build`: one file for each entry, the code that entries share in a few chunks, and what is
 * loaded when first needed in chunks of its own. Each file costs a process that imports it up to a millisecond, so seventy
 * modules are not shipped as seventy files. The declarations are the compiler's (`tsconfig.build.json`).
 */

import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Plugin } from "rolldown";

const root = fileURLToPath(new URL(".", import.meta.url));
const manifest = JSON.parse(readFileSync(`${root}package.json`, "utf8")) as {
  bin: Record<string, string>;
  exports: Record<string, string | { default: string }>;
};

/** The entries by name, as package.json has them: "src/index" is built from src/index.ts. */
const targets = Object.values(manifest.exports).flatMap((target) =>
  typeof target === "string" ? [] : [target.default],
);
const names = [...targets, ...Object.values(manifest.bin)].map(
  (file) => /^(?:\.\/)?dist\/(.+)\.js$/.exec(file)![1]!,
);

/** Entries that most programs load: nothing of theirs moves to a chunk, and others that use them import their file. */
const WHOLE = ["src/index", "transports/http", "transports/stdio", "transports/websocket"];

/** What most entries have in common, in one chunk: errors, frames, the protocol's names, channels that come and go. */
const SHARED = [
  "src/clock",
  "src/continuation",
  "src/errors",
  "src/events",
  "src/input-required",
  "src/problems",
  "src/protocol",
  "src/show",
  "src/wire",
  "transports/link",
  "transports/node",
  "transports/partition",
];

/** What the transports over HTTP and WebSocket have in common. */
const WEB = ["transports/auth-challenge", "transports/http-token", "transports/retry-after"];

/** What the checks of answers, those of schemas, and the prompts of the command line have in common. */
const FORMS = ["src/elicit-url", "src/form"];

/** The name of a source file: "src/index" is src/index.ts. */
function nameOf(id: string): string {
  return relative(root, id).replaceAll("\\", "/").replace(/\.ts$/, "");
}

/** One chunk of some files; what they import comes along. */
function chunk(name: string, files: readonly string[], priority: number) {
  return { name, test: (id: string) => files.includes(nameOf(id)), priority };
}

const keepEntriesWhole: Plugin = {
  name: "keep-entries-whole",
  async resolveId(source, importer, options) {
    if (importer === undefined) return null;
    const resolved = await this.resolve(source, importer, options);
    if (resolved === null || !WHOLE.includes(nameOf(resolved.id))) return resolved;
    return { id: resolved.id.replace(/\.ts$/, ".js"), external: "relative" };
  },
};

/** A single character beyond Latin-1 would make V8 keep the whole file in two bytes a character. */
const asciiOnly: Plugin = {
  name: "ascii-only",
  renderChunk: (code) =>
    code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
};

await build({
  input: Object.fromEntries(names.map((name) => [name, `${root}${name}.ts`])),
  platform: "node",
  external: (id) => !/^[./\\]|^[a-z]:\\/i.test(id),
  transform: { target: "node20.18" },
  plugins: [keepEntriesWhole, asciiOnly],
  output: {
    dir: `${root}dist`,
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name].js",
    minifyInternalExports: false,
    comments: { jsdoc: false, legal: true, annotation: true },
    codeSplitting: { groups: [chunk("shared", SHARED, 2), chunk("web", WEB, 1), chunk("forms", FORMS, 1)] },
  },
});
