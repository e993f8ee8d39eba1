/** The engine, as a host uses it. `RALLY_DIR` measures the build in another directory. */

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { ANSWER, argumentsOf, asks, check, checkProgress, INFO } from "./calls.mjs";
import { memoryHandler } from "./memory-handler.mjs";

export async function load(entry) {
  const { RALLY_DIR } = process.env;
  if (RALLY_DIR === undefined) return import(entry);
  return import(pathToFileURL(createRequire(`${RALLY_DIR}/package.json`).resolve(entry)).href);
}

/** A transport of the package to the target. */
export async function transportTo({ transport }, target) {
  switch (transport) {
    case "memory":
      return (await load("mcp-rally/transports/memory")).memoryTransport(memoryHandler());
    case "http-json":
    case "http-sse":
      return (await load("mcp-rally/transports/http")).httpTransport(target.url);
    case "stdio":
      return (await load("mcp-rally/transports/stdio")).stdioTransport(target.command);
    case "websocket":
      return (await load("mcp-rally/transports/websocket")).webSocketTransport(target.url);
  }
}

export async function open(scenario, target) {
  const { createClient } = await load("mcp-rally");
  const { tool, megabytes } = scenario;
  const client = createClient({
    transport: await transportTo(scenario, target),
    info: INFO,
    inputs: asks(tool) ? { elicitForm: () => ANSWER } : {},
    limits: megabytes > 10 ? { messageBytes: 256 * 1024 * 1024 } : {},
  });
  const args = argumentsOf(scenario);
  return { call: callOf(client, scenario, args), close: () => client.close() };
}

function callOf(client, scenario, args) {
  const { tool } = scenario;
  switch (tool) {
    case "progress":
      return async () => {
        let progressed = 0;
        const onProgress = () => progressed++;
        check(scenario, await client.callTool(tool, args, { onProgress }));
        checkProgress(progressed);
      };
    case "hang":
      return async () => {
        const controller = new AbortController();
        const onProgress = () => controller.abort();
        await client.callTool(tool, args, { onProgress, signal: controller.signal }).then(
          () => {
            throw new Error("a cancelled call was answered");
          },
          (error) => {
            if (error.code !== "cancelled") throw error;
          },
        );
      };
    default:
      return async () => check(scenario, await client.callTool(tool, args));
  }
}
