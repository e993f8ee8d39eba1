/**
 * The client that the official conformance suite runs, once for each scenario: `everything-client.mjs <server-url>`, with
 * the scenario's name in MCP_CONFORMANCE_SCENARIO and what it needs to know as JSON in MCP_CONFORMANCE_CONTEXT. It uses
 * the public API of the built package, and nothing else, as a host does.
 *
 * The last line on stdout is the outcome as JSON: {"done":true}, or {"done":false} with the error on stderr. A run
 * without that line hung or crashed.
 */

import { createClient } from "mcp-rally";
import { httpTransport } from "mcp-rally/transports/http";

const REVISION = "2026-07-28";

/**
 * A scenario takes a second of its own, but the suite runs all at once, and on a busy machine each takes as long as all
 * of them. What takes this long hangs.
 */
const DEADLINE_MS = 240_000;

/** @typedef {import("mcp-rally").Client} Client */
/** @typedef {{ options?: object, run: (client: Client, context: any) => Promise<void> }} Scenario */

/** Every kind of input, so that every capability is declared. */
const inputs = {
  elicitForm: async () => ({ action: "accept", content: { confirmed: true } }),
  elicitUrl: async () => ({ action: "cancel" }),
  sample: async () => ({ role: "assistant", content: { type: "text", text: "sampled" }, model: "none" }),
  listRoots: async () => ({ roots: [] }),
};

/** @type {Record<string, Scenario>} */
const scenarios = {
  tools_call: {
    async run(client) {
      const [tool] = await client.listTools();
      const { content } = await client.callTool(tool.name, { a: 2, b: 3 });
      expect(content[0]?.text === "The sum of 2 and 3 is 5", "the sum came back");
    },
  },

  // The scenario refuses whatever version comes first and offers 2026-07-28. A server that refuses the only version it
  // offers is refused in turn (VER-01), so the version that comes first is one of which there is no server yet.
  "request-metadata": {
    options: { inputs, protocolVersions: ["2099-01-01", REVISION] },
    async run(client) {
      await client.listTools();
      await client.callTool("any");
      const { supportedVersions } = await client.discover();
      expect(supportedVersions.includes(REVISION), "the server was discovered");
    },
  },

  "sep-2322-client-request-state": {
    async run(client) {
      await client.listTools();
      // Another operation runs from end to end while this one's round is open: nothing of the round may reach it.
      await client.callTool("test_mrtr_echo_state", {}, { inputs: { elicitForm: answerDuring(client) } });
      await client.callTool("test_mrtr_no_state", {}, { inputs });
      const { content } = await client.callTool("test_mrtr_no_result_type", {}, { inputs });
      expect(content[0]?.text === "no-result-type-test-ok", "a result without resultType is complete");
    },
  },

  "http-standard-headers": {
    async run(client) {
      for (const { name } of await client.listTools()) await client.callTool(name);
      for (const { uri } of await client.listResources()) await client.readResource(uri);
      for (const { name } of await client.listPrompts()) await client.getPrompt(name);
    },
  },

  "http-custom-headers": {
    async run(client, { toolCalls }) {
      await client.listTools();
      for (const call of toolCalls) await client.callTool(call.name, call.arguments);
    },
  },

  "http-invalid-tool-headers": {
    async run(client) {
      const tools = await client.listTools();
      expect(tools.length === 1, `only the valid tool is listed, not ${tools.map(({ name }) => name)}`);
      for (const { name } of tools) await client.callTool(name, { region: "us-west1" });
    },
  },

  "json-schema-ref-no-deref": {
    async run(client) {
      const [tool] = await client.listTools();
      expect(
        tool?.inputSchema.properties?.profile?.$ref?.startsWith("http"),
        "the reference is kept as it is",
      );
    },
  },

  "json-schema-2020-12-preservation": {
    async run(client) {
      const tools = await client.listTools();
      const schema = tools.find(({ name }) => name === "json_schema_2020_12_tool")?.inputSchema;
      await client.callTool("json_schema_echo", { schema });
    },
  },
};

/** Scenarios of authorization: the engine has no OAuth of its own, so what they protect stays out of reach. */
const protectedServer = {
  async run(client) {
    await client.listTools();
    await client.callTool("test-tool");
  },
};

/** Answers a form after a call of another tool is through. @param {Client} client */
function answerDuring(client) {
  return async () => {
    await client.callTool("test_mrtr_unrelated");
    return { action: "accept", content: { confirmed: true } };
  };
}

/** @param {unknown} condition @param {string} what */
function expect(condition, what) {
  if (!condition) throw new Error(`expected that ${what}`);
}

const name = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
const scenario = name.startsWith("auth/") ? protectedServer : scenarios[name];
const url = process.argv.at(-1);

setTimeout(() => {
  console.error(`${name} was not done within ${DEADLINE_MS} ms`);
  process.exit(2);
}, DEADLINE_MS).unref();

let client;
let done = false;
try {
  if (scenario === undefined) throw new Error(`no scenario is called ${JSON.stringify(name)}`);
  const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
  client = createClient({
    transport: httpTransport(url),
    info: { name: "mcp-rally-conformance", version: "1.0.0" },
    timeouts: { attemptMs: DEADLINE_MS },
    ...scenario.options,
  });
  await scenario.run(client, context);
  done = true;
} catch (error) {
  console.error(error);
} finally {
  await client?.close();
}
console.log(JSON.stringify({ done }));
process.exitCode = done ? 0 : 1;
