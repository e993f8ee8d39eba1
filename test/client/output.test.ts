/** The check of what tools give: by the tool's own schema, and by one of the host's (SCH-01). */

import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from "vitest";
import { createClient } from "../../src/client.ts";
import type { ToolCallOptions } from "../../src/client-options.ts";
import { SchemaError } from "../../src/errors.ts";
import type { CallToolResult, Tool } from "../../src/mcp-types.ts";
import type { StandardSchema } from "../../src/standard-schema.ts";
import { complete, elicitForm, inputRequired } from "../../src/testing/replies.ts";
import { createValidator, type SchemaValidator } from "../../src/validate.ts";
import type { JsonObject } from "../../src/wire.ts";
import { httpTransport } from "../../transports/http.ts";
import { BINDINGS, memory, type Rig, type RigOptions } from "../support/bindings.ts";
import { errorOf } from "../support/outcomes.ts";
import { type StartedServer, startOfficialHttp } from "../support/servers.ts";

const NUMBER_A = { type: "object", properties: { a: { type: "number" } }, required: ["a"] };

function tool(name: string, outputSchema: unknown): Tool {
  return { name, inputSchema: { type: "object" }, outputSchema } as Tool;
}

/** Stands for a schema so deep that it can't be written from an object. */
const DEEP = "@deep";

/** A client that has listed `tools`, to a server that answers every call with `result`. */
async function listed(tools: readonly Tool[], result: JsonObject, options: RigOptions = {}): Promise<Rig> {
  const rig = await memory.open((request, exchange) => {
    const answer = request.method === "tools/list" ? { tools } : result;
    const frame = JSON.stringify({ jsonrpc: "2.0", id: request.id, result: answer });
    exchange.raw(
      frame.replace(`"${DEEP}"`, () => ['{"allOf":['.repeat(5000), "{}", "]}".repeat(5000)].join("")),
    );
  }, options);
  await rig.client.listTools();
  return rig;
}

const GOOD = complete("ok", { structuredContent: { a: 1 } });
const WRONG = complete("ok", { structuredContent: { a: "one" } });

describe("by the tool's outputSchema", () => {
  it.each(BINDINGS)(
    "SCH-01: what fits is given as it came, what does not fails ($name)",
    async ({ open }) => {
      const answers = [GOOD, WRONG];
      const rig = await open((request, exchange) => {
        exchange.result(request.method === "tools/list" ? { tools: [tool("t", NUMBER_A)] } : answers.shift());
      });
      await rig.client.listTools();
      expect(await rig.client.callTool("t")).toEqual(GOOD);
      const error = await errorOf<SchemaError>(rig.client.callTool("t"));
      expect(error).toBeInstanceOf(SchemaError);
      expect(error).toMatchObject({
        code: "schema",
        tool: "t",
        path: "structuredContent.a",
        message: expect.stringContaining('The tool "t" gave output that does not satisfy its outputSchema'),
        operation: { method: "tools/call", round: 1, attempt: 1 },
      });
    },
  );

  it("SCH-01: the call has run, so the error carries its result, where no log prints it", async () => {
    const { client } = await listed([tool("t", NUMBER_A)], complete("secret text", WRONG));
    const error = await errorOf<SchemaError>(client.callTool("t"));
    expect(error.result).toEqual(complete("secret text", WRONG));
    expect(Object.keys(error)).not.toContain("result");
    expect(JSON.stringify(error) + error.message).not.toContain("secret text");
  });

  it.each([
    ["request", (rig: Rig) => rig.client.request("tools/call", { name: "t" })],
    ["begin", (rig: Rig) => rig.client.begin("tools/call", { name: "t" })],
  ])("SCH-01: %s checks as callTool does", async (_what, call) => {
    const error = await errorOf(call(await listed([tool("t", NUMBER_A)], WRONG)));
    expect(error).toMatchObject({ code: "schema", tool: "t", path: "structuredContent.a" });
  });

  it("SCH-01: resume checks the result that ends the round trip", async () => {
    const answers = [inputRequired({ inputRequests: { sure: elicitForm("Sure?") } }), WRONG];
    const rig = await memory.open((_request, exchange) => exchange.result(answers.shift()), {
      inputs: { elicitForm: "suspend" },
    });
    const outcome = await rig.client.begin("tools/call", { name: "t" });
    if (outcome.status !== "input_required") throw new Error("the server should have asked");
    const given = { sure: { action: "decline" } };
    const error = await errorOf(
      rig.client.resume(outcome.continuation, given, { tool: tool("t", NUMBER_A) }),
    );
    expect(error).toMatchObject({ code: "schema", tool: "t" });
  });

  it("SCH-01 B152: a tool that failed is not checked, and its message reaches the caller", async () => {
    const failed = complete("boom", { isError: true, structuredContent: { error: "x" } });
    const { client } = await listed([tool("t", NUMBER_A)], failed);
    expect(await client.callTool("t")).toEqual(failed);
  });

  it("SCH-01: a result without structuredContent breaks the server's own promise", async () => {
    const { client } = await listed([tool("t", NUMBER_A)], complete("ok"));
    const error = await errorOf<SchemaError>(client.callTool("t"));
    expect(error).toMatchObject({ code: "schema", tool: "t", path: "structuredContent" });
    expect(error.message).toContain("has no structuredContent");
    expect(error.result).toEqual(complete("ok"));
  });

  it.each([
    ["an array", [], { type: "array" }],
    ["a string", "x", { type: "string" }],
    ["zero", 0, { type: "integer" }],
    ["false", false, { type: "boolean" }],
    ["null", null, { type: "null" }],
  ])("SCH-01 B157: %s is a value like any other", async (_what, structuredContent, schema) => {
    const result = complete("ok", { structuredContent });
    const fits = await listed([tool("t", schema)], result);
    expect(await fits.client.callTool("t")).toEqual(result);
    const misfits = await listed([tool("t", { type: "object" })], result);
    expect(await errorOf(misfits.client.callTool("t"))).toMatchObject({ path: "structuredContent" });
  });

  it("SCH-01 B154: a tool that is not known is not checked; a definition given with the call is enough", async () => {
    const rig = await memory.open(WRONG);
    expect(await rig.client.callTool("t")).toEqual(WRONG);
    const error = await errorOf(rig.client.callTool("t", {}, { tool: tool("t", NUMBER_A) }));
    expect(error).toMatchObject({ code: "schema", tool: "t" });
  });

  it.each([
    ["2020-12, not named", undefined],
    ["2020-12", "https://json-schema.org/draft/2020-12/schema"],
    ["2020-12 with a #", "https://json-schema.org/draft/2020-12/schema#"],
    ["2020-12 over http", "http://json-schema.org/draft/2020-12/schema"],
  ])("SCH-01 B151: %s: prefixItems is enforced", async (_what, $schema) => {
    const schema = { ...($schema && { $schema }), prefixItems: [{ type: "string" }], items: false };
    const ok = complete("ok", { structuredContent: ["a"] });
    expect(await (await listed([tool("t", schema)], ok)).client.callTool("t")).toEqual(ok);
    const wrong = complete("ok", { structuredContent: [1] });
    const error = await errorOf((await listed([tool("t", schema)], wrong)).client.callTool("t"));
    expect(error).toMatchObject({ path: "structuredContent[0]" });
  });

  it("SCH-01: a tool without an outputSchema, or with a null one, asks the validator nothing", async () => {
    const validator: SchemaValidator = {
      compile: () => {
        throw new Error("it was asked");
      },
    };
    const tools = [tool("none", undefined), tool("null", null)];
    const { client } = await listed(tools, WRONG, { validator });
    expect(await client.callTool("none")).toEqual(WRONG);
    expect(await client.callTool("null")).toEqual(WRONG);
  });
});

const UNUSABLE: readonly [string, unknown][] = [
  ["B148 a reference that leads nowhere", { $ref: "#/$defs/Missing" }],
  ["B149 a reference to the network", { $ref: "http://169.254.169.254/x" }],
  ["B149 allOf, 5000 deep", DEEP],
  ["B155 a schema of a megabyte", { const: "x".repeat(1024 * 1024) }],
  ["a dialect that is not spoken", { $schema: "http://json-schema.org/draft-04/schema#" }],
  ["a schema that is no schema", { type: "text" }],
  ["a schema that is a string", "object"],
];

describe("a schema that cannot be used", () => {
  it.each(UNUSABLE)("SCH-01 B148: %s: fails its own tool's calls alone", async (_what, schema) => {
    const rig = await listed([tool("bad", schema), tool("good", NUMBER_A)], GOOD);
    expect(await rig.client.listTools()).toHaveLength(2);
    const error = await errorOf<SchemaError>(rig.client.callTool("bad"));
    expect(error).toMatchObject({
      code: "schema",
      tool: "bad",
      path: expect.stringMatching(/^outputSchema/),
      message: expect.stringContaining("its outputSchema cannot be used"),
      cause: expect.objectContaining({ code: "schema" }),
    });
    expect(error.result).toEqual(GOOD);
    expect(await rig.client.callTool("good")).toEqual(GOOD);
    expect(await errorOf(rig.client.callTool("bad"))).toMatchObject({ code: "schema", tool: "bad" });
  });

  it.each(UNUSABLE)("SCH-01 B148: %s: unchecked when the host says so", async (_what, schema) => {
    const rig = await listed([tool("bad", schema)], WRONG, { uncheckedOutput: "allow" });
    expect(await rig.client.callTool("bad")).toEqual(WRONG);
    expect(rig.events.filter(({ type }) => type === "output.unchecked")).toEqual([
      expect.objectContaining({ tool: "bad", reason: expect.stringContaining("cannot be used") }),
    ]);
    const strict = rig.client.callTool("bad", {}, { uncheckedOutput: "fail" });
    expect(await errorOf(strict)).toMatchObject({ code: "schema" });
  });

  it("SCH-01: allowing it does not allow output that was checked and does not fit", async () => {
    const { client } = await listed([tool("t", NUMBER_A)], WRONG, { uncheckedOutput: "allow" });
    expect(await errorOf(client.callTool("t"))).toMatchObject({
      code: "schema",
      path: "structuredContent.a",
    });
  });

  it("SCH-01 B155: a catastrophic pattern holds the event loop for less than 100 ms", async () => {
    const result = complete("ok", { structuredContent: `${"a".repeat(30)}!` });
    const { client } = await listed([tool("t", { type: "string", pattern: "^(a+)+$" })], result);
    // The first call loads the validator; what a check costs is told by the second.
    expect(await errorOf(client.callTool("t"))).toMatchObject({ code: "schema" });
    const startedAt = performance.now();
    expect(await errorOf(client.callTool("t"))).toMatchObject({ path: "structuredContent" });
    expect(performance.now() - startedAt).toBeLessThan(100);
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("no code generation here");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no code generation here"))],
    [
      "gives a check that throws",
      () => () => {
        throw new Error("no code generation here");
      },
    ],
  ])(
    "SCH-01: a validator of the host's own that %s fails the call, and nothing else",
    async (_what, compile) => {
      const { client } = await listed([tool("t", NUMBER_A)], GOOD, { validator: { compile } });
      const error = await errorOf<SchemaError>(client.callTool("t"));
      expect(error).toMatchObject({
        code: "schema",
        tool: "t",
        cause: { message: "no code generation here" },
      });
      expect(error.result).toEqual(GOOD);
    },
  );

  it("SCH-01: the schema is given to the host's validator, once per call and as the same object", async () => {
    const seen: unknown[] = [];
    const real = createValidator();
    const validator: SchemaValidator = {
      compile(schema) {
        seen.push(schema);
        return real.compile(schema);
      },
    };
    const { client } = await listed([tool("t", NUMBER_A)], GOOD, { validator });
    await client.callTool("t");
    await client.callTool("t");
    expect(seen).toEqual([NUMBER_A, NUMBER_A]);
    expect(seen[0]).toBe(seen[1]);
  });

  it("SCH-01: uncheckedOutput takes two words, of the client and of a call", async () => {
    const options = { transport: httpTransport("http://localhost/"), info: { name: "x", version: "1" } };
    const refused = expect.objectContaining({ code: "usage", path: "uncheckedOutput" });
    const uncheckedOutput = "ignore" as "allow";
    expect(() => createClient({ ...options, uncheckedOutput })).toThrow(refused);
    const client = createClient(options);
    await expect(client.callTool("t", {}, { uncheckedOutput })).rejects.toEqual(refused);
    await client.close();
  });
});

/** A Standard Schema by hand: `{ celsius }` as a number, given as a number or as text. */
function celsius(isAsync = false): StandardSchema<{ celsius: number }> {
  function validate(value: unknown) {
    const given = (value as { celsius?: unknown } | undefined)?.celsius;
    const number = Number(given);
    if (given === undefined || Number.isNaN(number)) {
      const issue = { message: "expected a temperature", path: [{ key: "celsius" }] };
      return { issues: [issue, { message: "and another thing" }] };
    }
    return { value: { celsius: number } };
  }
  return {
    "~standard": {
      version: 1,
      vendor: "by hand",
      validate: isAsync ? async (value: unknown) => validate(value) : validate,
    },
  };
}

describe("typed calls", () => {
  it.each([
    ["at once", false],
    ["by a promise", true],
  ])(
    "SCH-01: a Standard Schema that answers %s checks, converts and types the content",
    async (_what, isAsync) => {
      const rig = await memory.open(complete("ok", { structuredContent: { celsius: "21.5" } }));
      const result = await rig.client.callTool("weather", {}, { output: celsius(isAsync) });
      expectTypeOf(result).toEqualTypeOf<CallToolResult<{ celsius: number }>>();
      expect(result.structuredContent?.celsius).toBe(21.5);
      expect(result.content).toEqual([{ type: "text", text: "ok" }]);
    },
  );

  it("SCH-01: what it refuses is a SchemaError with tool, path and result", async () => {
    const rig = await memory.open(WRONG);
    const error = await errorOf<SchemaError>(rig.client.callTool("weather", {}, { output: celsius() }));
    expect(error).toMatchObject({ code: "schema", tool: "weather", path: "structuredContent.celsius" });
    expect(error.message).toContain("structuredContent.celsius: expected a temperature (and 1 more)");
    expect(error.result).toEqual(WRONG);
  });

  it("SCH-01: it judges a result without structuredContent, too", async () => {
    const rig = await memory.open(complete("ok"));
    expect(await errorOf(rig.client.callTool("weather", {}, { output: celsius() }))).toMatchObject({
      code: "schema",
    });
  });

  it("SCH-01 B152: it is not asked when the tool failed", async () => {
    const failed = complete("boom", { isError: true });
    const rig = await memory.open(failed);
    expect(await rig.client.callTool("weather", {}, { output: celsius() })).toEqual(failed);
  });

  it("SCH-01: one that throws is a SchemaError with its cause", async () => {
    const rig = await memory.open(GOOD);
    const output: StandardSchema = {
      "~standard": {
        version: 1,
        vendor: "x",
        validate: () => {
          throw new Error("broken");
        },
      },
    };
    const error = await errorOf<SchemaError>(rig.client.callTool("weather", {}, { output }));
    expect(error).toMatchObject({ code: "schema", cause: { message: "broken" } });
    expect(error.result).toEqual(GOOD);
  });

  it("SCH-01: something else in its place is refused before anything is sent", async () => {
    const rig = await memory.open(GOOD);
    const options = { output: NUMBER_A } as unknown as ToolCallOptions;
    expect(await errorOf(rig.client.callTool("weather", {}, options))).toMatchObject({
      code: "usage",
      path: "output",
    });
    expect(rig.peer.requests).toHaveLength(0);
  });

  it("a type alone types the content and checks nothing", async () => {
    const rig = await memory.open(GOOD);
    const result = await rig.client.callTool<{ a: number }>("t");
    expectTypeOf(result.structuredContent).toEqualTypeOf<{ a: number } | undefined>();
    expect(result.structuredContent?.a).toBe(1);
    expectTypeOf(await rig.client.callTool("t")).toEqualTypeOf<CallToolResult<unknown>>();
  });

  it("SAF-02: a call that close() ends before its caller looks is no unhandled rejection", async () => {
    const rig = await memory.open(() => {});
    const call = rig.client.callTool("weather", {}, { output: celsius() });
    await rig.client.close();
    await new Promise((resolve) => setImmediate(resolve));
    expect(await errorOf(call)).toMatchObject({ code: "closed" });
  });
});

describe("with the official server", () => {
  let server: StartedServer;
  beforeAll(async () => {
    server = await startOfficialHttp();
  });
  afterAll(() => server.close());

  it("SCH-01: its structured output is checked and typed", async () => {
    await using client = createClient({
      transport: httpTransport(server.url),
      info: { name: "test-host", version: "1.0.0" },
    });
    await client.listTools();
    const result = await client.callTool("weather", { city: "Brno" }, { output: celsius() });
    expect(result.structuredContent).toEqual({ celsius: 21.5 });
  });
});
