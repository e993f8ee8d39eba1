import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** What `transports/` may take from `src/`: the contract, the wire, the errors, the clock and the constants. */
const CONTRACT = ["transport", "wire", "errors", "clock", "protocol"].map((name) => `src/${name}.ts`);

/** The two places that put engine and transports together. */
const ROOTS = ["src/cli/", "src/testing/"];

async function sources(folder: string): Promise<string[]> {
  const entries = await readdir(join(root, folder), { recursive: true });
  return entries.filter((name) => name.endsWith(".ts")).map((name) => join(folder, name));
}

/** Every module that a file imports, static or dynamic: a path from the project's root, or a package's name. */
async function importsOf(file: string): Promise<string[]> {
  const text = await readFile(join(root, file), "utf8");
  const code = text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
  const found = code.matchAll(/(?:\bfrom\s*|\bimport\s*\(?\s*)"([^"]+)"/g);
  return [...found].map(([, name]) =>
    name!.startsWith(".") ? relative(root, join(root, file, "..", name!)) : name!,
  );
}

async function offenders(files: string[], isAllowed: (imported: string) => boolean): Promise<string[]> {
  const found: string[] = [];
  for (const file of files) {
    for (const imported of await importsOf(file))
      if (!isAllowed(imported)) found.push(`${file} -> ${imported}`);
  }
  return found;
}

describe("the layers", () => {
  it("src/ imports no node: module and nothing of transports/, so the engine runs anywhere", async () => {
    const engine = (await sources("src")).filter((file) => !ROOTS.some((folder) => file.startsWith(folder)));
    expect(engine.length).toBeGreaterThan(20);
    const isEngine = (name: string) =>
      name.startsWith("src/") && !ROOTS.some((folder) => name.startsWith(folder));
    const lazy = ["ajv", "ajv-formats", "re2js"];
    expect(
      await offenders(
        engine,
        (name) => isEngine(name) || lazy.some((each) => name === each || name.startsWith(`${each}/`)),
      ),
    ).toEqual([]);
  });

  it("only the validator's own module names ajv and its kin, so that they load when a schema has to be checked", async () => {
    const engine = (await sources("src")).filter((file) => !ROOTS.some((folder) => file.startsWith(folder)));
    const naming: string[] = [];
    for (const file of engine) {
      const text = await readFile(join(root, file), "utf8");
      const statics = [...text.matchAll(/^import (?!type)[^;]*? from "(ajv|re2js)[^"]*"/gm)];
      if (statics.length > 0) naming.push(file);
    }
    expect(naming.filter((file) => !["src/ajv-kit.ts", "src/patterns.ts"].includes(file))).toEqual([]);
  });

  it("transports/ imports only the contract, the wire, the errors, the clock and the constants of src/", async () => {
    const files = await sources("transports");
    expect(files.length).toBeGreaterThan(10);
    expect(await offenders(files, (name) => !name.startsWith("src/") || CONTRACT.includes(name))).toEqual([]);
  });

  it("docs/architecture.md names every file of the engine, and no other", async () => {
    const page = await readFile(join(root, "docs/architecture.md"), "utf8");
    const start = page.indexOf("## The engine, file by file");
    const table = page.slice(start, page.indexOf("## The transport contract"));
    const named = [...table.matchAll(/`([a-z-]+\.ts)`/g)].map(([, name]) => name!);
    const files = (await readdir(join(root, "src"))).filter((name) => name.endsWith(".ts"));
    expect(named.sort()).toEqual(files.sort());
  });

  it("the top level holds what the owner fixed, and no other source folder", async () => {
    const entries = await readdir(root, { withFileTypes: true });
    const ignored = ["node_modules", "dist", ".git", ".ci"];
    const folders = entries.filter((entry) => entry.isDirectory() && !ignored.includes(entry.name));
    expect(folders.map(({ name }) => name).sort()).toEqual([
      "bench",
      "docs",
      "schemas",
      "src",
      "test",
      "transports",
    ]);
  });
});
