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

/** What these have in common, in one chunk: errors, frames, the protocol's names, channels that come and go. */
const SHARED = [
  [
    "src",
    ["clock", "continuation", "errors", "events", "input-required", "problems", "protocol", "show", "wire"],
  ],
  ["transports", ["link", "node", "partition"]],
] as const;

/** What the transports over HTTP and WebSocket have in common. */
const WEB = [["transports", ["auth-challenge", "http-token", "retry-after"]]] as const;

/** What the checks of answers, those of schemas, and the prompts of the command line have in common. */
const FORMS = [["src", ["elicit-url", "form"]]] as const;

/** Matches the files of a chunk; what they import comes along. */
function filesOf(chunk: readonly (readonly [string, readonly string[]])[]): RegExp {
  const folders = chunk.map(([folder, names]) => `${folder}[\\\\/](?:${names.join("|")})`);
  return new RegExp(`[\\\\/](?:${folders.join("|")})\\.ts$`);
}

const keepEntriesWhole: Plugin = {
  name: "keep-entries-whole",
  async resolveId(source, importer, options) {
    if (importer === undefined) return null;
    const resolved = await this.resolve(source, importer, options);
    const name = resolved && relative(root, resolved.id).replaceAll("\\", "/").replace(/\.ts$/, "");
    if (!name || !WHOLE.includes(name)) return resolved;
    return { id: `${root}${name}.js`, external: "relative" };
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
    codeSplitting: {
      groups: [
        { name: "shared", test: filesOf(SHARED), priority: 2 },
        { name: "web", test: filesOf(WEB), priority: 1 },
        { name: "forms", test: filesOf(FORMS), priority: 1 },
      ],
    },
  },
});
