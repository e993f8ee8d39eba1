/** The package as users get it: packed by npm from the sources, and installed by npm into an empty project. */

import { execFile } from "node:child_process";
import { cp, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));

/** What `npm pack` needs to see. Packing a copy leaves the project's own `dist` alone, which other tests are using. */
const SOURCES = [
  "src",
  "transports",
  "schemas",
  "docs",
  "test/package",
  ".ci",
  "package.json",
  "LICENSE",
].concat([
  "README.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "tsconfig.json",
  "tsconfig.build.json",
  "build.config.ts",
  "biome.json",
]);

/** How a child process ended. */
export interface ChildEnd {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** An empty project with the package in it. */
export interface InstalledPackage {
  /** The project's folder. */
  readonly project: string;
  /** The package's folder inside it. */
  readonly folder: string;
  /** Every file of the package, as a path from its folder, with `/`. */
  readonly files: readonly string[];
  readonly packedBytes: number;
  readonly unpackedBytes: number;
  /** Runs Node in the project. */
  node(args: readonly string[], env?: Record<string, string>): Promise<ChildEnd>;
  /** Runs the compiler in the project; the result is what it complains of. */
  compile(options: Record<string, unknown>, file: string): Promise<string>;
}

/** Packs and installs, below an empty folder. Nothing is downloaded: the dependencies are copies of the project's own. */
export async function installPackage(base: string): Promise<InstalledPackage> {
  const stage = join(base, "stage");
  const project = join(base, "project");
  for (const name of SOURCES) await cp(join(root, name), join(stage, name), { recursive: true });
  await symlink(join(root, "node_modules"), join(stage, "node_modules"));
  await npm(["pack", "--pack-destination", base], stage);
  const tarball = (await readdir(base)).find((name) => name.endsWith(".tgz"))!;

  await mkdir(project);
  await writeFile(join(project, "package.json"), '{ "private": true, "type": "module" }');
  await copyModules(await dependencies(), project);
  await npm(
    ["install", "--offline", "--no-package-lock", "--no-audit", "--no-fund", `../${tarball}`],
    project,
  );
  await copyModules(["node_modules/@types/node", "node_modules/undici-types"], project); // npm removes what no one asks for
  await cp(join(root, "test/package/programs"), project, { recursive: true });

  const folder = join(project, "node_modules/mcp-rally");
  const files = await filesOf(folder);
  const sizes = await Promise.all(files.map(async (file) => (await stat(join(folder, file))).size));
  const node = (args: readonly string[], env: Record<string, string> = {}) =>
    end(process.execPath, args, project, env);
  return {
    project,
    folder,
    files,
    packedBytes: (await stat(join(base, tarball))).size,
    unpackedBytes: sizes.reduce((sum, size) => sum + size, 0),
    node,
    async compile(compilerOptions, file) {
      const config = join(project, "tsconfig.json");
      await writeFile(config, JSON.stringify({ compilerOptions, files: [file] }));
      const { stdout, stderr } = await node([join(root, "node_modules/typescript/bin/tsc"), "-p", config]);
      return stdout + stderr;
    },
  };
}

/** Where the package's dependencies are, and theirs: paths from the project's root. */
async function dependencies(): Promise<string[]> {
  const lock = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, { dev?: boolean }>;
  };
  const needed = Object.entries(lock.packages).filter(([path, { dev }]) => path !== "" && dev !== true);
  return needed.map(([path]) => path);
}

/** Copies instead of links: what a linked package's types import would be found beside the link's target. */
async function copyModules(paths: readonly string[], project: string): Promise<void> {
  for (const path of paths) await cp(join(root, path), join(project, path), { recursive: true });
}

async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files
    .map(({ parentPath, name }) =>
      join(parentPath, name)
        .slice(folder.length + 1)
        .replaceAll("\\", "/"),
    )
    .sort();
}

async function npm(args: readonly string[], cwd: string): Promise<void> {
  const shell = process.platform === "win32"; // npm is a .cmd there
  await run("npm", [...args], { cwd, shell, env: plainEnvironment() });
}

/** Without what `npm test` puts into it, which would configure the npm inside. */
function plainEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^npm_|^NODE_OPTIONS$|^VITEST/i.test(name));
  return Object.fromEntries(kept);
}

function end(
  command: string,
  args: readonly string[],
  cwd: string,
  env: Record<string, string>,
): Promise<ChildEnd> {
  return new Promise((resolve) => {
    execFile(command, [...args], { cwd, env: { ...plainEnvironment(), ...env } }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}
