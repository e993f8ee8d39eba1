import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SchemaError } from "../../src/errors.ts";
import type { Problem } from "../../src/problems.ts";
import { createValidator } from "../../src/validate.ts";

const validator = createValidator();
const check = async (schema: unknown, value: unknown): Promise<Problem | undefined> =>
  (await validator.compile(schema))(value);

/** The SchemaError that a schema, or a value under it, comes to. */
async function fault(schema: unknown, value?: unknown): Promise<SchemaError> {
  try {
    await check(schema, value);
  } catch (error) {
    if (error instanceof SchemaError) return error;
    throw error;
  }
  throw new Error("the schema was accepted and the value checked");
}

/** Processor time of this process in milliseconds, from now on: what a busy machine does beside does not count. */
function cpuTime(): () => number {
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
}

beforeAll(async () => {
  // Loads ajv and the linear-time engine, so that the times below are those of the work itself.
  await check({ pattern: "^(a+)+$" }, "a");
});

describe("checking a value", () => {
  it.each<[string, unknown, unknown, Problem | undefined]>([
    ["a value that fits", { type: "object" }, {}, undefined],
    [
      "a wrong type",
      { properties: { a: { properties: { b: { type: "number" } } } } },
      { a: { b: "1" } },
      { path: "a.b", message: "must be number" },
    ],
    [
      "a missing property",
      { required: ["first name"] },
      {},
      { path: '["first name"]', message: "is required and missing" },
    ],
    [
      "a missing property that every object inherits",
      { required: ["toString"] },
      {},
      { path: "toString", message: "is required and missing" },
    ],
    [
      "a property too many",
      { properties: {}, additionalProperties: false },
      { "a/b": 1 },
      { path: '["a/b"]', message: "is not allowed" },
    ],
    ["an item", { items: { enum: ["a", 1] } }, ["a", "b"], { path: "[1]", message: 'must be one of "a", 1' }],
    [
      "a key that looks like an index",
      { additionalProperties: { const: 1 } },
      { 0: 2 },
      { path: '["0"]', message: "must be 1" },
    ],
    ["a bound", { minimum: 3 }, 2, { path: "", message: "must be >= 3" }],
    ["a length", { maxLength: 1 }, "ab", { path: "", message: "must have at most 1 characters" }],
    ["a format", { format: "email" }, "x", { path: "", message: 'must be of the format "email"' }],
    ["a pattern", { pattern: "^a$" }, "b", { path: "", message: 'must match the pattern "^a$"' }],
    [
      "a choice",
      { anyOf: [{ type: "string" }, { type: "null" }] },
      1,
      { path: "", message: 'must satisfy "anyOf"' },
    ],
    [
      "equal items",
      { uniqueItems: true },
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      { path: "", message: "must not hold the same item twice" },
    ],
    [
      "items of different types",
      { uniqueItems: true },
      [1, "1", true, "true", null, "null", [], {}],
      undefined,
    ],
    ["an unknown format", { format: "nobody-knows" }, "x", undefined],
    ["schema true", true, 1, undefined],
    ["schema false", false, 1, { path: "", message: "is not allowed" }],
    [
      "a reference to itself",
      { properties: { a: { $ref: "#" } }, additionalProperties: false },
      { a: { a: { b: 1 } } },
      { path: "a.a.b", message: "is not allowed" },
    ],
    ["ajv's own $async", { $async: true, type: "string" }, 1, { path: "", message: "must be string" }],
  ])("SCH-01: %s", async (_title, schema, value, problem) => {
    expect(await check(schema, value)).toEqual(problem);
  });

  it.each([[[]], ["x"], [0], [false], [null]])("SCH-01 B157: %j is a value like any other", async (value) => {
    const types = ["array", "string", "number", "boolean", "null"];
    expect(await check({ type: types }, value)).toBeUndefined();
    expect(await check({ type: "object" }, value)).toMatchObject({ message: "must be object" });
  });

  it("SAF-01: no problem shows the value that was refused", async () => {
    const secret = "hunter2";
    for (const schema of [
      { type: "number" },
      { enum: ["a"] },
      { const: 1 },
      { pattern: "^x" },
      { format: "date" },
      { maxLength: 1 },
    ]) {
      expect(JSON.stringify(await check(schema, secret))).not.toContain(secret);
    }
  });
});

describe("dialects", () => {
  const tuple = (rest: object) => ({ prefixItems: [{ type: "string" }], ...rest });

  it.each([
    [undefined],
    ["https://json-schema.org/draft/2020-12/schema"],
    ["https://json-schema.org/draft/2020-12/schema#"],
    ["http://json-schema.org/draft/2020-12/schema"],
  ])("SCH-01 B151: $schema %s is 2020-12, where prefixItems and dependentRequired count", async ($schema) => {
    const named = $schema === undefined ? {} : { $schema };
    expect(await check(tuple(named), [1])).toMatchObject({ path: "[0]" });
    expect(await check({ dependentRequired: { a: ["b"] }, ...named }, { a: 1 })).toBeDefined();
    expect(
      await check({ properties: { a: true }, unevaluatedProperties: false, ...named }, { b: 1 }),
    ).toEqual({
      path: "b",
      message: "is not allowed",
    });
  });

  it.each([
    ["http://json-schema.org/draft-07/schema#"],
    ["http://json-schema.org/draft-07/schema"],
    ["https://json-schema.org/draft-07/schema"],
  ])("SCH-01 B151: $schema %s is draft-07, where items may be a tuple", async ($schema) => {
    expect(await check({ $schema, items: [{ type: "string" }] }, [1])).toMatchObject({ path: "[0]" });
    expect(await check(tuple({ $schema }), [1])).toBeUndefined();
  });

  it.each([
    ["http://json-schema.org/draft-04/schema#"],
    ["https://json-schema.org/draft/2019-09/schema"],
    [7],
  ])("SCH-01: $schema %j is an error that says what is supported", async ($schema) => {
    const error = await fault({ $schema });
    expect(error.message).toContain(String($schema));
    expect(error.message).toContain("2020-12");
    expect(error.message).toContain("draft-07");
  });
});

describe("schemas that cannot be used", () => {
  it.each<[string, unknown, RegExp]>([
    ["a dangling reference", { $ref: "#/$defs/Missing" }, /#\/\$defs\/Missing.*not in it/],
    ["a dangling anchor", { properties: { a: { $ref: "#gone" } } }, /#gone/],
    ["a reference to another schema's id", { $ref: "urn:example:other" }, /never fetched/],
    [
      "a malformed keyword",
      { properties: { a: { minLength: "3" } } },
      /no valid JSON Schema 2020-12 at properties\.a\.minLength/,
    ],
    ["an unknown type", { type: "strin" }, /no valid JSON Schema/],
    ["a property that is no schema", { properties: { a: 5 } }, /properties\.a/],
    ["a pattern that is none", { pattern: "(" }, /"\(".*no regular expression/],
    ["a pattern without a linear form", { pattern: "^(a)\\1$" }, /"\^\(a\)\\\\1\$".*backreference/],
    ["a pattern of property names", { patternProperties: { "(a)\\1": {} } }, /backreference/],
    ["a schema that is text", "object", /not string/],
    ["a schema that is null", null, /not null/],
    ["a schema with a BigInt", { const: 1n }, /no JSON/],
  ])("SCH-01 B148: %s is a SchemaError that names it", async (_title, schema, message) => {
    expect((await fault(schema)).message).toMatch(message);
  });

  it("SCH-01 B148: one bad schema harms no other, and stays bad with an error of its own each time", async () => {
    const bad = { $ref: "#/$defs/Missing" };
    const first = await fault(bad);
    expect(await check({ type: "string" }, "x")).toBeUndefined();
    expect(await fault(bad)).not.toBe(first);
  });

  it("SCH-01: what one schema names by $id cannot be seen from another", async () => {
    const named = {
      $defs: { a: { $id: "https://a.example/shared", type: "string" } },
      $ref: "https://a.example/shared",
    };
    expect(await check(named, "x")).toBeUndefined();
    expect((await fault({ $ref: "https://a.example/shared" })).message).toMatch(/never fetched/);
    expect(await check({ ...named, title: "again" }, "x")).toBeUndefined();
  });

  describe("with a server that a reference points to", () => {
    let hits = 0;
    const server = createServer((_request, response) => {
      hits++;
      response.end("{}");
    });
    beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
    afterAll(() => new Promise((resolve) => server.close(resolve)));

    it.each([["$ref"], ["$dynamicRef"]])(
      "SCH-01 B149: a %s to the network is refused by name and never fetched",
      async (keyword) => {
        const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/schema`;
        expect((await fault({ [keyword]: url })).message).toMatch(keyword === "$ref" ? url : keyword);
        expect((await fault({ $id: url, allOf: [{ $ref: "other.json" }] })).message).toMatch(/other\.json/);
        expect(hits).toBe(0);
      },
    );
  });
});

describe("schemas made to do harm", () => {
  const nested = (depth: number) => {
    let schema: object = { type: "string" };
    for (let level = 0; level < depth; level++) schema = { allOf: [schema] };
    return schema;
  };
  const doubled = (levels: number) => {
    let schema: object = { type: "string" };
    for (let level = 0; level < levels; level++) schema = { anyOf: [schema, structuredClone(schema)] };
    return schema;
  };
  const cyclic: Record<string, unknown> = { type: "object" };
  cyclic.not = cyclic;
  const shared = (levels: number) => {
    let schema: object = {};
    for (let level = 0; level < levels; level++) schema = { anyOf: [schema, schema] };
    return schema;
  };

  it.each<[string, unknown, string]>([
    ["5,000 levels of allOf", nested(5_000), "depth"],
    ["a cycle", cyclic, "depth"],
    ["2^12 subschemas", doubled(12), "subschemas"],
    ["2^40 subschemas that are one object", shared(40), "subschemas"],
    ["1 MiB of text", { description: "x".repeat(2 ** 20) }, "bytes"],
    ["100,000 choices", { enum: Array.from({ length: 100_000 }, (_, index) => index + 1e9) }, "bytes"],
    [
      "text that is small in characters and large in bytes",
      { description: "\u4e00".repeat(100_000) },
      "bytes",
    ],
    [
      "10,000 keywords",
      { properties: Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`p${index}`, true])) },
      "keywords",
    ],
  ])("SCH-01 B149 B155: %s passes the bound that the error names, at once", async (_title, schema, bound) => {
    const spent = cpuTime();
    expect((await fault(schema)).message).toContain(`bound "${bound}"`);
    expect(spent()).toBeLessThan(100);
  });

  it("SCH-01: the bounds are the host's to set", async () => {
    const strict = createValidator({ bounds: { depth: 2 } });
    expect(() => strict.compile({ allOf: [{}] })).toThrow(/bound "depth"/);
    const wide = createValidator({ bounds: { subschemas: 5_000 } });
    expect((await wide.compile(doubled(9)))(1)).toBeDefined();
  });

  it.each<[string, unknown, unknown]>([
    [
      "a $dynamicRef that runs in circles",
      { $defs: { a: { $dynamicRef: "#/$defs/a" } }, $dynamicRef: "#/$defs/a" },
      {},
    ],
    ["a $ref to the whole", { allOf: [{ $ref: "#" }] }, {}],
  ])("SCH-01 B149: %s is a SchemaError, not a blown stack", async (_title, schema, value) => {
    expect((await fault(schema, value)).message).toMatch(/without end/);
  });

  const fan = (levels: number) => {
    const $defs: Record<string, unknown> = { [`d${levels}`]: { type: "string" } };
    for (let level = 0; level < levels; level++) {
      $defs[`d${level}`] = { anyOf: [{ $ref: `#/$defs/d${level + 1}` }, { $ref: `#/$defs/d${level + 1}` }] };
    }
    return { $defs, $ref: "#/$defs/d0" };
  };
  let deep: unknown = 1;
  for (let level = 0; level < 60; level++) deep = { a: deep };

  it.each<[string, unknown, unknown]>([
    ["references that fan out 2^40 times", fan(40), 1],
    [
      "a recursive choice on a deep value",
      { properties: { a: { anyOf: [{ $ref: "#" }, { $ref: "#" }] } }, type: "object" },
      deep,
    ],
    [
      "one length asked 400 times of a long text",
      { allOf: Array.from({ length: 400 }, () => ({ minLength: 1 })) },
      "x".repeat(2 ** 22),
    ],
    [
      "200 walks of a long array",
      { allOf: Array.from({ length: 200 }, () => ({ items: { type: "integer" } })) },
      Array.from({ length: 500_000 }, () => 1),
    ],
    [
      "a long enum for each item",
      { items: { enum: Array.from({ length: 5_000 }, (_, index) => `v${index}`) } },
      Array.from({ length: 200_000 }, () => "v4999"),
    ],
  ])("SCH-01 B155: %s are given up after checkMs", async (_title, schema, value) => {
    const compiled = await validator.compile(schema);
    const spent = cpuTime();
    expect(() => compiled(value)).toThrow(/longer than 100 ms/);
    expect(spent()).toBeLessThan(400);
  });

  it("SCH-01 B155: ^(a+)+$ on 31 characters, and on many, is decided without a stall", async () => {
    const compiled = await validator.compile({ type: "string", pattern: "^(a+)+$" });
    const spent = cpuTime();
    expect(compiled(`${"a".repeat(30)}!`)).toMatchObject({ message: expect.stringContaining("pattern") });
    expect(compiled(`${"a".repeat(20_000)}!`)).toBeDefined();
    expect(compiled("a".repeat(20_000))).toBeUndefined();
    expect(spent()).toBeLessThan(100);
  });

  it("SCH-01 B155: a text too long for a pattern to be bounded is a SchemaError that names the pattern", async () => {
    expect((await fault({ pattern: "(a|b)*a(a|b){200}$" }, "ab".repeat(100_000))).message).toMatch(
      /200000 characters.*\(a\|b\)/,
    );
  });

  it.each([
    "email",
    "url",
    "hostname",
    "uri",
    "uri-reference",
    "uri-template",
    "ipv6",
    "date-time",
    "duration",
    "json-pointer",
    "iso-date-time",
    "uuid",
  ])("SCH-01 B155: the format %s stalls on no text", async (format) => {
    const compiled = await validator.compile({ format });
    const bombs = [
      "a".repeat(1e6),
      "a-".repeat(1e5),
      `http://${"a".repeat(2_000)}!`,
      `a@${"a-".repeat(1_000)}!`,
      `${"1".repeat(2_000)}!`,
      "a.".repeat(1_000),
      ":".repeat(2_000),
      `/${"~0".repeat(1e5)}~`,
    ];
    const spent = cpuTime();
    for (const bomb of bombs) compiled(bomb);
    expect(spent()).toBeLessThan(200);
  });

  it("SCH-01: 50,000 distinct items are found unique without comparing each with each", async () => {
    const compiled = await createValidator({ checkMs: 2_000 }).compile({ uniqueItems: true });
    const items = Array.from({ length: 50_000 }, (_, index) => ({ index }));
    expect(compiled(items)).toBeUndefined();
    expect(compiled([...items, { index: 7 }])).toBeDefined();
  });
});

describe("what is remembered", () => {
  it("SCH-01: a schema is compiled once, by object and by text, and given back without a promise", async () => {
    const fresh = createValidator();
    const schema = { type: "string", minLength: 2 };
    const first = await fresh.compile(schema);
    expect(fresh.compile(schema)).toBe(first);
    expect(fresh.compile(structuredClone(schema))).toBe(first);
  });

  it("SCH-01: at most cacheSize texts are kept, the least recently used going first", async () => {
    const small = createValidator({ cacheSize: 2 });
    const [a, b, c] = [{ const: "a" }, { const: "b" }, { const: "c" }];
    const first = await small.compile(a);
    await small.compile(b);
    expect(small.compile({ ...a })).toBe(first);
    await small.compile(c);
    expect(small.compile({ ...a })).toBe(first);
    expect(small.compile({ ...b })).toBeInstanceOf(Promise);
  });

  it("SCH-01: schemas that are compiled at the same time come out right", async () => {
    const fresh = createValidator();
    const schemas = Array.from({ length: 20 }, (_, index) => ({ const: index % 5, pattern: "^(x+)+$" }));
    const checks = await Promise.all(schemas.map((schema) => fresh.compile(schema)));
    expect(checks.map((compiled, index) => compiled(index % 5))).toEqual(schemas.map(() => undefined));
  });
});
