import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));

interface Example {
  readonly file: string;
  readonly line: number;
  readonly runs: boolean;
  readonly text: string;
}

/** The fences marked `ts` or `ts run` of one page. */
async function examplesOf(file: string): Promise<Example[]> {
  const text = await readFile(join(root, file), "utf8");
  const found: Example[] = [];
  for (const match of text.matchAll(/^```ts( run)?\n(.*?)^```$/gms)) {
    const line = text.slice(0, match.index).split("\n").length;
    found.push({ file, line, runs: match[1] !== undefined, text: match[2]! });
  }
  return found;
}

const pages = [
  "README.md",
  ...(await readdir(join(root, "docs"))).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`),
];
const examples = (await Promise.all(pages.map(examplesOf))).flat();

describe("the examples of README and docs", () => {
  let project: string;
  let diagnostics: string;

  // An empty project beside the built package, as a user has it.
  beforeAll(async () => {
    project = await mkdtemp(join(tmpdir(), "rally-docs-"));
    await mkdir(join(project, "node_modules", "@types"), { recursive: true });
    await symlink(root, join(project, "node_modules", "mcp-rally"));
    await symlink(join(root, "node_modules/@types/node"), join(project, "node_modules/@types/node"));
    await writeFile(join(project, "package.json"), JSON.stringify({ type: "module" }));
    const compilerOptions = {
      target: "ES2023",
      module: "NodeNext",
      strict: true,
      types: ["node"],
    };
    await writeFile(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
    for (const [index, { text }] of examples.entries()) {
      await writeFile(join(project, `example-${index}.ts`), `${text}\nexport {};\n`);
    }
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const done = await run(process.execPath, [tsc, "-p", project]).catch((error) => error);
    diagnostics = String(done.stdout).replace(/example-(\d+)\.ts/g, (_all, index) => {
      const { file, line } = examples[Number(index)]!;
      return `${file}:${line}`;
    });
  }, 60_000);

  afterAll(() => rm(project, { recursive: true, force: true }));

  it("compile as they stand, in a project of their own", () => {
    expect(examples.length).toBeGreaterThanOrEqual(5);
    expect(diagnostics).toBe("");
  });

  it("run where they say so, beside a real server", async () => {
    const server = `import ${JSON.stringify(join(root, "test/servers/official-stdio.mjs"))};\n`;
    await writeFile(join(project, "server.mjs"), server);
    const runnable = examples.flatMap(({ runs }, index) => (runs ? [index] : []));
    expect(runnable.length).toBeGreaterThan(0);
    for (const index of runnable) {
      const { stdout, stderr } = await run(process.execPath, [`example-${index}.js`], { cwd: project });
      expect(stderr).toBe("");
      expect(stdout).toContain("asks: Deploy to staging?");
      expect(stdout).toContain("deployed");
    }
  }, 60_000);
});
