/** `x-mcp-header` as plain values: which annotations a tool may have, and what one call mirrors (HDR-02). */

import { describe, expect, it } from "vitest";
import { mirrorParams, planMirroring } from "../../src/mirroring.ts";

const STRING = { type: "string", "x-mcp-header": "Region" };

function schema(properties: unknown, more: object = {}): object {
  return { type: "object", properties, ...more };
}

describe("annotations that hold", () => {
  it.each([
    ["a string", schema({ region: STRING }), [{ name: "Region", path: ["region"] }]],
    ["an integer", schema({ n: { type: "integer", "x-mcp-header": "N" } }), [{ name: "N", path: ["n"] }]],
    ["a boolean", schema({ b: { type: "boolean", "x-mcp-header": "B" } }), [{ name: "B", path: ["b"] }]],
    [
      "a nested property",
      schema({ a: schema({ b: schema({ c: STRING }) }) }),
      [{ name: "Region", path: ["a", "b", "c"] }],
    ],
    [
      "every character of a token",
      schema({ x: { type: "string", "x-mcp-header": "a!#$%&'*+-.^_`|~Z9" } }),
      [{ name: "a!#$%&'*+-.^_`|~Z9", path: ["x"] }],
    ],
    ["no annotation", schema({ a: { type: "number" } }), []],
    ["no schema", undefined, []],
    ["a schema that is no object", 7, []],
    ["a property that is named like the annotation", schema({ "x-mcp-header": { type: "object" } }), []],
    ["a definition that is named like it", schema({}, { $defs: { "x-mcp-header": { type: "object" } } }), []],
    ["data that looks like one", schema({ a: { type: "object", default: { "x-mcp-header": "no" } } }), []],
    ["an example that looks like one", schema({ a: { examples: [{ "x-mcp-header": 1 }] } }), []],
  ])("HDR-02: %s", (_what, inputSchema, rules) => {
    expect(planMirroring(inputSchema)).toEqual({ rules });
  });

  it("HDR-02: a property named __proto__ is a property like any other", () => {
    const inputSchema = JSON.parse(
      '{"properties":{"__proto__":{"properties":{"r":{"type":"string","x-mcp-header":"R"}}}}}',
    );
    const plan = planMirroring(inputSchema);
    expect(plan).toEqual({ rules: [{ name: "R", path: ["__proto__", "r"] }] });
    const params = '"name":"t","arguments":{"__proto__":{"r":"eu"}}';
    expect(mirrorParams([{ name: "R", path: ["__proto__", "r"] }], params)).toEqual([
      { name: "R", value: "eu" },
    ]);
  });
});

describe("annotations that make the definition invalid", () => {
  const annotated = (more: object) => schema({ p: { ...STRING, ...more } });
  it.each([
    ["B058 an empty name", annotated({ "x-mcp-header": "" }), "is empty"],
    ["B058 a space", annotated({ "x-mcp-header": "My Region" }), "no header name"],
    ["B058 CR and LF", annotated({ "x-mcp-header": "R\r\nX-Evil: 1" }), "no header name"],
    ["B058 a trailing LF", annotated({ "x-mcp-header": "Region\n" }), "no header name"],
    ["a colon", annotated({ "x-mcp-header": "R:" }), "no header name"],
    ["non-ASCII", annotated({ "x-mcp-header": "Région" }), "no header name"],
    ["a name that no server could take", annotated({ "x-mcp-header": "x".repeat(201) }), "no header name"],
    ["a name that is no string", annotated({ "x-mcp-header": 1 }), "must be a string, not number"],
    [
      "B058 a number",
      annotated({ type: "number" }),
      'must be "string", "integer" or "boolean", not "number"',
    ],
    ["an object", annotated({ type: "object" }), 'not "object"'],
    ["an array", annotated({ type: "array" }), 'not "array"'],
    ["several types", annotated({ type: ["string", "null"] }), 'not ["string","null"]'],
    ["no type", schema({ p: { "x-mcp-header": "P" } }), "not none"],
    [
      "B058 names that differ by case",
      schema({ a: STRING, b: { ...STRING, "x-mcp-header": "rEGION" } }),
      "repeats",
    ],
    ["the root", { ...STRING }, "the schema itself"],
    ["B058 items", schema({ a: { type: "array", items: STRING } }), 'under "items"'],
    ["prefixItems", schema({ a: { prefixItems: [STRING] } }), 'under "prefixItems"'],
    ["B058 oneOf", schema({ a: { oneOf: [{ type: "null" }, STRING] } }), 'under "oneOf"'],
    ["anyOf", schema({}, { anyOf: [schema({ a: STRING })] }), 'under "anyOf"'],
    ["allOf", schema({}, { allOf: [schema({ a: STRING })] }), 'under "allOf"'],
    ["not", schema({ a: { not: STRING } }), 'under "not"'],
    ["if", schema({}, { if: schema({ a: STRING }) }), 'under "if"'],
    ["then", JSON.parse(`{"then":${JSON.stringify(schema({ a: STRING }))}}`), 'under "then"'],
    ["else", schema({}, { else: schema({ a: STRING }) }), 'under "else"'],
    ["B058 $defs", schema({ a: { $ref: "#/$defs/R" } }, { $defs: { R: STRING } }), 'under "$defs"'],
    ["definitions", schema({}, { definitions: { R: STRING } }), 'under "definitions"'],
    ["additionalProperties", schema({}, { additionalProperties: STRING }), 'under "additionalProperties"'],
    ["patternProperties", schema({}, { patternProperties: { "^r": STRING } }), 'under "patternProperties"'],
    ["dependentSchemas", schema({}, { dependentSchemas: { a: schema({ b: STRING }) } }), "dependentSchemas"],
    ["a keyword that nobody knows", schema({}, { "x-shared": { R: STRING } }), 'under "x-shared"'],
  ])("HDR-02: %s", (_what, inputSchema, fault) => {
    expect(planMirroring(inputSchema)).toEqual({ fault: expect.stringContaining(fault) });
  });

  it("HDR-02: a schema of a hundred thousand levels is read without harm, and its annotation refused", () => {
    let deep: unknown = STRING;
    for (let level = 0; level < 100_000; level++) deep = { properties: { a: deep } };
    expect(planMirroring(deep)).toEqual({ fault: expect.stringContaining("levels deep") });
  });

  it("HDR-02: more annotations than a request could carry are refused", () => {
    const many = Object.fromEntries(
      Array.from({ length: 101 }, (_, n) => [`p${n}`, { type: "string", "x-mcp-header": `H${n}` }]),
    );
    expect(planMirroring(schema(many))).toEqual({ fault: expect.stringContaining("more than 100") });
  });
});

describe("what a call mirrors", () => {
  const rules = [{ name: "P", path: ["p"] }];
  const fieldsOf = (p: string) => mirrorParams(rules, `"name":"t","arguments":{"p":${p}}`);
  it.each([
    ["a string as it is", '"us-west1"', "us-west1"],
    ["B059 CR and LF", '"a\\r\\nX-Evil: 1"', "a\r\nX-Evil: 1"],
    ["B059 outer spaces", '" pad "', " pad "],
    ["B059 an empty string", '""', ""],
    ["B059 emoji", '"🏓"', "🏓"],
    ["B059 an integer", "42", "42"],
    ["an integer that was written with a fraction", "42.0", "42"],
    ["a negative integer", "-7", "-7"],
    ["the largest integer", "9007199254740991", "9007199254740991"],
    ["the smallest integer", "-9007199254740991", "-9007199254740991"],
    ["B059 true", "true", "true"],
    ["false", "false", "false"],
    ["a fraction, which the server's own check will refuse", "1.5", "1.5"],
  ])("HDR-02: %s", (_what, json, value) => {
    expect(fieldsOf(json)).toEqual([{ name: "P", value }]);
  });

  it.each([
    ["B059 null", "null"],
    ["an object", '{"a":1}'],
    ["an array", "[1]"],
  ])("HDR-02: %s leaves the field out", (_what, json) => {
    expect(fieldsOf(json)).toEqual([]);
  });

  it.each([
    ["no arguments", '"name":"t"'],
    ["arguments without it, whatever objects inherit,", '"name":"t","arguments":{}'],
    ["arguments that are an array", '"name":"t","arguments":["x"]'],
  ])("HDR-02: %s leave the field out", (_what, params) => {
    const inherited = [
      ...rules,
      { name: "C", path: ["constructor", "name"] },
      { name: "L", path: ["length"] },
    ];
    expect(mirrorParams(inherited, params)).toEqual([]);
  });

  it.each([
    ["2^53", "9007199254740992"],
    ["-2^53", "-9007199254740992"],
    ["1e300", "1e300"],
  ])(
    "HDR-02 B059: %s is refused before anything is sent, without its value in the message",
    (_what, json) => {
      expect(() => fieldsOf(json)).toThrow(
        expect.objectContaining({
          code: "usage",
          path: "arguments.p",
          message: expect.not.stringContaining(json),
        }),
      );
    },
  );
});
