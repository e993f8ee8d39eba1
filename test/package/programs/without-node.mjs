/**
 * Runs the engine where only what browsers have too exists: `node --experimental-vm-modules without-node.mjs`. Its modules
 * are loaded one by one into a realm that has no `process`, no `Buffer` and no module of Node's.
 */

import { readFile } from "node:fs/promises";
import vm from "node:vm";

const platform = ["AbortController", "AbortSignal", "TextDecoder", "TextEncoder", "URL", "clearTimeout"];
platform.push("crypto", "performance", "queueMicrotask", "setTimeout", "structuredClone");
const realm = vm.createContext(Object.fromEntries(platform.map((name) => [name, globalThis[name]])));

const modules = new Map();

async function load(url) {
  if (!url.startsWith("file:")) throw new Error(`the engine imports ${url}`);
  const source = await readFile(new URL(url), "utf8");
  return new vm.SourceTextModule(source, { context: realm, identifier: url, importModuleDynamically });
}

async function importModuleDynamically(specifier, importer) {
  const module = await link(specifier, importer);
  if (module.status === "unlinked") await module.link(link);
  await module.evaluate();
  return module;
}

function link(specifier, { identifier }) {
  const url = specifier.startsWith(".") ? new URL(specifier, identifier).href : specifier;
  if (!modules.has(url)) modules.set(url, load(url));
  return modules.get(url);
}

const program = new vm.SourceTextModule(
  `import { createClient, RallyError } from "${import.meta.resolve("mcp-rally")}";
   import { memoryTransport } from "${import.meta.resolve("mcp-rally/transports/memory")}";

   const properties = { name: { type: "string", minLength: 2 } };
   const form = { message: "Who?", requestedSchema: { type: "object", properties } };
   const ask = { method: "elicitation/create", params: form };
   const client = createClient({
     transport: memoryTransport(({ params }) =>
       params.inputResponses === undefined
         ? { resultType: "input_required", inputRequests: { who: ask } }
         : { resultType: "complete", content: [{ type: "text", text: params.inputResponses.who.content.name }] },
     ),
     info: { name: "realm", version: "1.0.0" },
     inputs: { elicitForm: ({ message }) => ({ action: "accept", content: { name: message + " me" } }) },
   });
   const seen = [];
   export const result = await client.callTool("greet");
   await client.callTool("greet", {}, { inputs: { elicitForm: () => ({ action: "accept", content: { name: "x" } }) } })
     .catch((error) => seen.push(error.code, RallyError.is(error)));
   await client.callTool("greet", {}, { signal: AbortSignal.abort() }).catch((error) => seen.push(error.code));
   await client.close();
   export const errors = seen;
   export const globals = [typeof process, typeof Buffer, typeof require, typeof setImmediate];`,
  { context: realm, identifier: import.meta.url },
);
await program.link(link);
await program.evaluate();
const { result, errors, globals } = program.namespace;
console.log(JSON.stringify({ text: result.content[0].text, errors, globals, modules: modules.size }));
