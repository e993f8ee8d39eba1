import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { SURFACE, words } from "./surface.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** The names that a module exports, in lists and where they are declared. What is built is checked beside the tarball. */
function exportsOf(text: string): { values: string[]; types: string[] } {
  const values: string[] = [];
  const types: string[] = [];
  for (const [, kind, name] of text.matchAll(/^export (?:abstract |async )?(\w+) (\w+)/gm)) {
    const isType = kind === "interface" || kind === "type";
    (isType ? types : values).push(name!);
  }
  for (const [, all, list] of text.matchAll(/^export (type )?\{([^}]*)\}/gm)) {
    for (const [, own, name] of list!.matchAll(/(type )?(\w+)/g)) {
      ((all ?? own) === undefined ? values : types).push(name!);
    }
  }
  return { values: values.sort(), types: types.sort() };
}

describe("the public surface", () => {
  it("has the entry points that are pinned", async () => {
    const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
    const code = Object.entries<{ default: string } | string>(manifest.exports).flatMap(([path, target]) =>
      typeof target === "string" ? [] : [[path, target.default]],
    );
    expect(code).toEqual(
      Object.entries(SURFACE).map(([path, { source }]) => [path, `./dist/${source.replace(/\.ts$/, ".js")}`]),
    );
    expect(Object.keys(manifest.exports).slice(code.length)).toEqual(["./schemas/*", "./package.json"]);
  });

  it.each(Object.entries(SURFACE))(
    "%s exports the values and types that are pinned",
    async (_path, pinned) => {
      const { source, values, types } = pinned;
      const text = await readFile(join(root, source), "utf8");
      expect(exportsOf(text)).toEqual({ values: words(values), types: words(types) });
      expect(text).not.toMatch(/^export (\*|default)/m);
    },
  );
});
