import { cp, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Transport } from "../../src/transport.ts";
import { type InstalledPackage, installPackage } from "./installed-package.ts";
import { SURFACE, words } from "./surface.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
  version: string;
  bin: Record<string, string>;
  exports: Record<string, { default: string } | string>;
};

/** What can be imported, without the data files: "mcp-rally", "mcp-rally/testing", … */
const entries = Object.entries(manifest.exports)
  .filter(([, target]) => typeof target === "object")
  .map(([subpath]) => subpath.replace(/^\./, "mcp-rally"));

vi.setConfig({ testTimeout: 60_000 }); // the compiler and npm take their time on a busy machine

let folder: string;
let installed: InstalledPackage;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rally-package-"));
  installed = await installPackage(folder);
}, 300_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

/** Runs a module of the project from its text; gives the JSON that it prints. */
async function evaluate(text: string): Promise<unknown> {
  const { code, stdout, stderr } = await installed.node(["--input-type=module", "--eval", text]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

describe("what the tarball holds", () => {
  it("is the build, the schemas, the docs and the four texts, and nothing else", () => {
    const places = new Set(installed.files.map((file) => file.split("/").slice(0, 2).join("/")));
    const tops = [...places].map((place) => (/^(docs|schemas)\//.test(place) ? place.split("/")[0] : place));
    expect([...new Set(tops)].sort()).toEqual([
      "CHANGELOG.md",
      "LICENSE",
      "README.md",
      "dist/chunks",
      "dist/src",
      "dist/transports",
      "docs",
      "package.json",
      "schemas",
    ]);
  });

  it("has in dist a module for each entry, declarations of what can be imported, a few chunks, and no map", async () => {
    const built = installed.files.filter((file) => file.startsWith("dist/"));
    const modules = built.filter((file) => file.endsWith(".js"));
    const chunks = modules.filter((file) => file.startsWith("dist/chunks/"));
    const targets = Object.values(manifest.exports).flatMap((target) =>
      typeof target === "object" ? [target.default] : [],
    );
    const files = targets.map((file) => file.replace(/^\.\//, ""));
    const programs = Object.values(manifest.bin);
    expect(modules.filter((file) => !chunks.includes(file))).toEqual([...files, ...programs].sort());
    expect(chunks.length).toBeLessThan(15);
    for (const file of modules) {
      expect(await readFile(join(installed.folder, file), "utf8")).not.toContain("sourceMappingURL");
    }
    const declared = built.filter((file) => !modules.includes(file));
    for (const file of declared) {
      const source = file.replace("dist/", "").replace(/\.d\.ts$/, ".ts");
      await expect(readFile(join(root, source)), `${file} has no source`).resolves.toBeDefined();
    }
    expect(declared.filter((file) => file.startsWith("dist/src/cli/"))).toEqual([]);
    for (const file of files) expect(declared).toContain(file.replace(/\.js$/, ".d.ts"));
  });

  it("is of a sensible size", () => {
    const { files, packedBytes, unpackedBytes } = installed;
    const kilobytes = (bytes: number) => `${Math.round(bytes / 1000)} kB`;
    console.info(
      `the package: ${kilobytes(packedBytes)}, ${kilobytes(unpackedBytes)} unpacked, ${files.length} files`,
    );
    expect(packedBytes).toBeLessThan(400_000);
    expect(unpackedBytes).toBeLessThan(1_500_000);
  });
});

describe("what can be imported", () => {
  it("every entry loads, and has the values of the public surface", async () => {
    const loaded = await evaluate(
      `const values = {};
       for (const entry of ${JSON.stringify(entries)}) values[entry] = Object.keys(await import(entry));
       console.log(JSON.stringify(values))`,
    );
    const pinned = Object.entries(SURFACE).map(([path, { values }]) => [
      path.replace(".", "mcp-rally"),
      words(values),
    ]);
    expect(loaded).toEqual(Object.fromEntries(pinned));
  });

  it.runIf("require_module" in process.features)(
    "B184: every entry can be required from CommonJS",
    async () => {
      const text = `for (const entry of ${JSON.stringify(entries)}) require(entry); console.log("all")`;
      const flags = ["--no-warnings", "--input-type=commonjs", "--eval"];
      expect(await installed.node([...flags, text])).toEqual({ code: 0, stdout: "all\n", stderr: "" });
    },
  );

  it("the schemas and package.json are data", async () => {
    const text = `import manifest from "mcp-rally/package.json" with { type: "json" };
      import schema from "mcp-rally/schemas/elicit-result.json" with { type: "json" };
      console.log(JSON.stringify([manifest.version, schema.$schema]));`;
    const { stdout } = await installed.node(["--no-warnings", "--input-type=module", "--eval", text]);
    expect(JSON.parse(stdout)).toEqual([manifest.version, "https://json-schema.org/draft/2020-12/schema"]);
  });
});

describe("programs that use it", () => {
  it("a call that is confirmed on the way, in memory and over stdio", async () => {
    const server = join(root, "test/servers/official-stdio.mjs");
    expect(await installed.node(["confirmed-call.mjs", server])).toEqual({
      code: 0,
      stdout: 'memory: {"sure":{"action":"accept","content":{"ok":true}}}\nstdio: deployed\n',
      stderr: "",
    });
  });

  it("the engine and the memory transport run without node: modules, process and Buffer", async () => {
    const flags = ["--no-warnings", "--experimental-vm-modules"];
    const { stdout, stderr } = await installed.node([...flags, "without-node.mjs"]);
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual({
      text: "Who? me",
      errors: ["input", true, "cancelled"],
      globals: ["undefined", "undefined", "undefined", "undefined"],
      modules: expect.any(Number),
    });
  });
});

/** What a program in the project printed, and the packages and the modules of Node that it loaded. */
async function loadedBy(args: readonly string[]) {
  const log = join(installed.project, "loaded.txt");
  await writeFile(log, "");
  const { code, stdout, stderr } = await installed.node(["--import", "./loaded-modules.mjs", ...args], {
    LOADED_MODULES: log,
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const urls = (await readFile(log, "utf8")).split("\n");
  const packages = new Set(urls.map((url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1]));
  expect(packages).toContain("mcp-rally"); // the log works
  const others = [...packages].filter((name) => name !== undefined && name !== "mcp-rally");
  const own = urls.filter((url) => url.includes("/mcp-rally/dist/"));
  return {
    stdout,
    packages: others.sort(),
    builtins: urls.filter((url) => url.startsWith("node:")),
    files: [...new Set(own.map((url) => url.replace(/.*\/dist\//, "")))].sort(),
  };
}

describe("what importing costs", () => {
  const loading = (...names: string[]) =>
    loadedBy(["--input-type=module", "--eval", names.map((name) => `import "mcp-rally${name}";`).join("\n")]);

  it("B185: the root entry and the memory transport load no other package, and nothing of Node", async () => {
    expect(await loading("", "/transports/memory")).toMatchObject({ packages: [], builtins: [] });
  });

  it("B185: stdio, WebSocket, channel and lines load no other package: ws comes with the first connection", async () => {
    const names = ["stdio", "websocket", "channel", "lines"].map((name) => `/transports/${name}`);
    expect((await loading(...names)).packages).toEqual([]);
  });

  it("B185: HTTP, and so a target, load only the parser of event streams: undici comes with the first request", async () => {
    const names = ["/transports/http", "/transports/target"];
    expect((await loading(...names)).packages).toEqual(["eventsource-parser"]);
  });

  it("the root entry and a transport are three or four files, and no module of Node", async () => {
    for (const name of ["stdio", "websocket", "http"]) {
      const { files, builtins } = await loading("", `/transports/${name}`);
      const common = name === "stdio" ? ["chunks/shared.js"] : ["chunks/shared.js", "chunks/web.js"];
      expect(files).toEqual([...common, "src/index.js", `transports/${name}.js`]);
      expect(builtins).toEqual([]);
      const sizes = await Promise.all(files.map((file) => stat(join(installed.folder, "dist", file))));
      expect(sizes.reduce((sum, { size }) => sum + size, 0)).toBeLessThan(240_000);
    }
  });

  it("what answers input requests, and what starts a server, comes with the first call that needs it", async () => {
    const server = join(root, "test/servers/official-stdio.mjs");
    const { files, packages } = await loadedBy(["confirmed-call.mjs", server]);
    const always = ["chunks/shared.js", "src/index.js", "transports/memory.js", "transports/stdio.js"];
    const whenNeeded = ["forms", "input-parts", "lines", "stdio-server"].map((name) => `chunks/${name}.js`);
    expect(files).toEqual([...always, ...whenNeeded].sort());
    expect(packages).toEqual([]);
  });

  it("B185: the command mcp-rally tells its version and its help without any other package", async () => {
    const bin = join(installed.project, "node_modules/.bin/mcp-rally");
    const version = await loadedBy([bin, "--version"]);
    expect(version).toMatchObject({ stdout: `${manifest.version}\n`, packages: [] });
    const help = await loadedBy([bin, "--help"]);
    expect(help.packages).toEqual([]);
    for (const command of ["call", "resume", "tools", "discover", "read", "listen", "bench"]) {
      expect(help.stdout).toMatch(new RegExp(`^ +${command} `, "m"));
    }
  });
});

describe("a package that was changed while its program ran", () => {
  /** A copy of the package without one of its chunks; gives a file of it as the text of a specifier. */
  async function without(chunk: string): Promise<(file: string) => string> {
    const copy = join(installed.project, `node_modules/rally-without-${chunk}`);
    await cp(installed.folder, copy, { recursive: true });
    await rm(join(copy, `dist/chunks/${chunk}.js`));
    return (file) => JSON.stringify(pathToFileURL(join(copy, "dist", file)).href);
  }

  it("fails the call that is asked with an InputError, and no other", async () => {
    const specifier = await without("input-parts");
    const ask = {
      method: "elicitation/create",
      params: { message: "?", requestedSchema: { type: "object", properties: {} } },
    };
    const text = `
      import { createClient } from ${specifier("src/index.js")};
      import { memoryTransport } from ${specifier("transports/memory.js")};
      const transport = memoryTransport(({ params }) =>
        params.name === "ask"
          ? { resultType: "input_required", inputRequests: { sure: ${JSON.stringify(ask)} } }
          : { resultType: "complete", content: [] });
      const inputs = { elicitForm: () => ({ action: "decline" }) };
      const client = createClient({ transport, info: { name: "host", version: "1.0.0" }, inputs });
      const told = [];
      for (const tool of ["ask", "plain", "ask"]) {
        await client.callTool(tool).then(
          () => told.push("complete"),
          ({ code, key, message, cause }) => told.push([code, key, message.includes("could not be loaded"), cause.code]),
        );
      }
      console.log(JSON.stringify(told));`;
    const failed = ["input", "sure", true, "ERR_MODULE_NOT_FOUND"];
    expect(await evaluate(text)).toEqual([failed, "complete", failed]);
  });

  it("fails a call over stdio with a ConnectError when what starts servers is not there, and closes", async () => {
    const specifier = await without("stdio-server");
    const text = `
      import { createClient } from ${specifier("src/index.js")};
      import { stdioTransport } from ${specifier("transports/stdio.js")};
      const transport = stdioTransport({ command: process.execPath });
      const client = createClient({ transport, info: { name: "host", version: "1.0.0" } });
      const error = await client.callTool("t").catch((error) => error);
      await client.close();
      console.log(JSON.stringify([error.code, error.delivery, error.cause.code]));`;
    expect(await evaluate(text)).toEqual(["connect", "not-sent", "ERR_MODULE_NOT_FOUND"]);
  });
});

describe("the types", () => {
  const base = { target: "ES2023", strict: true, noEmit: true, skipLibCheck: false, types: ["node"] };
  const bundler = { module: "ESNext", moduleResolution: "Bundler" };

  beforeAll(async () => {
    const names = entries.map((entry, index) => `import * as entry${index} from "${entry}";\n`);
    const uses = entries.map((_entry, index) => `entry${index}`);
    await writeFile(join(installed.project, "every-entry.ts"), `${names.join("")}export { ${uses} };\n`);
    await writeFile(
      join(installed.project, "root-entry.ts"),
      `import { createClient, RallyError, type Subscription } from "mcp-rally";
       import { memoryTransport } from "mcp-rally/transports/memory";
       export async function use(signal: AbortSignal): Promise<Subscription | string> {
         const transport = memoryTransport(() => ({ resultType: "complete", content: [] }));
         await using client = createClient({ transport, info: { name: "page", version: "1.0.0" } });
         const { content } = await client.callTool("now", {}, { signal }).catch((error: unknown) => {
           throw RallyError.is(error) ? error.code : error;
         });
         return content[0]?.text ?? client.subscribe({ toolsListChanged: true });
       }\n`,
    );
  });

  it.each([
    ["NodeNext with", { module: "NodeNext", exactOptionalPropertyTypes: true }],
    ["Bundler without", { ...bundler, exactOptionalPropertyTypes: false }],
  ])(
    "B184: of every entry compile without skipLibCheck, under %s exactOptionalPropertyTypes",
    async (_name, options) => {
      expect(await installed.compile({ ...base, ...options }, "every-entry.ts")).toBe("");
    },
  );

  it("of the root entry and the memory transport need no @types/node, nor a lib beside the browser's", async () => {
    const page = { ...base, ...bundler, lib: ["ES2022", "DOM"], types: [] };
    expect(await installed.compile(page, "root-entry.ts")).toBe("");
  });
});

describe("two copies of it side by side", () => {
  type Entry = typeof import("../../src/index.ts");
  type Memory = typeof import("../../transports/memory.ts");
  let one: Entry;
  let other: Entry;
  let otherMemory: Memory;

  beforeAll(async () => {
    const copy = join(installed.project, "node_modules/rally-copy");
    await cp(installed.folder, copy, { recursive: true });
    const load = (where: string, file: string) => import(pathToFileURL(join(where, "dist", file)).href);
    one = await load(installed.folder, "src/index.js");
    other = await load(copy, "src/index.js");
    otherMemory = await load(copy, "transports/memory.js");
  });

  it("B184: an error is told by RallyError.is, its code, its name and instanceof, whichever copy made it", () => {
    expect(other.TimeoutError).not.toBe(one.TimeoutError);
    const error = new other.ConnectError("refused");
    expect(one.RallyError.is(error)).toBe(true);
    expect([error.code, error.name]).toEqual(["connect", "ConnectError"]);
    expect(error instanceof one.ConnectError).toBe(true);
    expect(error instanceof one.TransportError).toBe(true);
    expect(error instanceof one.RallyError).toBe(true);
    expect(error instanceof one.FrameError).toBe(false);
    expect(error instanceof one.RpcError).toBe(false);
    expect(new Error("x") instanceof one.RallyError).toBe(false);
  });

  it("B184: an RpcError that a peer of the other copy throws keeps its code and data", async () => {
    const transport = otherMemory.memoryTransport(() => {
      throw new one.RpcError("no such thing", -32002, { uri: "x:" });
    });
    const client = one.createClient({ transport, info: { name: "host", version: "1.0.0" } });
    const failed = await client.readResource("x:").catch((error: unknown) => error);
    expect(failed).toMatchObject({ name: "RpcError", rpcCode: -32002, data: { uri: "x:" } });
    await client.close();
  });

  it("B184: what a transport made with the other copy tells of a failure is understood", async () => {
    const failures = [
      new other.ConnectionLostError("lost", "unknown"),
      new other.ConnectError("no such command", { permanent: true }),
    ];
    const transport: Transport = {
      name: "own",
      peer: "own",
      attach() {},
      exchange(_request, sink) {
        const error = failures.shift() ?? new other.ClosedError("one attempt too many");
        queueMicrotask(() => sink.failure({ delivery: error.delivery, error }));
        return { cancel() {} };
      },
      close: async () => {},
    };
    const info = { name: "host", version: "1.0.0" };
    const client = one.createClient({ transport, info, reissue: { max: 5, backoffMs: 1 } });
    const failed = await client.callTool("pay").catch((error: unknown) => error);
    // The second attempt cannot have run, and is the last; the first may have, which is what counts for the call.
    expect(failed).toMatchObject({ code: "connect", delivery: "unknown", notReissued: expect.any(String) });
    expect(failures).toEqual([]);
    await client.close();
  });
});
