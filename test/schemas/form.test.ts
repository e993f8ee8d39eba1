import { Ajv2020 } from "ajv/dist/2020.js";
import { fullFormats } from "ajv-formats/dist/formats.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkField, checkForm, formDefaults, readForm } from "../../src/form.ts";
import { isDate, isDateTime, isEmail, isUri } from "../../src/formats.ts";
import type { JsonObject } from "../../src/wire.ts";

const formOf = (properties: JsonObject, rest: JsonObject = {}) =>
  readForm({ type: "object", properties, ...rest });
const problemOf = (field: JsonObject, value: unknown) =>
  checkForm(formOf({ f: field }), { f: value })?.message;

describe("readForm", () => {
  it("MRTR-15: gives every field of the specification's subset to a user interface", () => {
    const form = formOf(
      {
        name: {
          type: "string",
          title: "Name",
          description: "Yours",
          minLength: 1,
          maxLength: 50,
          default: "Ann",
        },
        mail: { type: "string", format: "email" },
        age: { type: "integer", minimum: 0, maximum: 150, default: 7 },
        rate: { type: "number" },
        ok: { type: "boolean", default: false },
        color: { type: "string", enum: ["r", "g"], enumNames: ["Red"] },
        size: { type: "string", oneOf: [{ const: "s", title: "Small" }], default: "s" },
        tags: {
          type: "array",
          items: { type: "string", enum: ["a", "b"] },
          minItems: 1,
          maxItems: 2,
          default: ["a"],
        },
        toys: { type: "array", items: { anyOf: [{ const: "x", title: "Xylophone" }] } },
      },
      { required: ["name", "elsewhere"] },
    );
    expect(form).toEqual({
      exact: true,
      closed: false,
      alsoRequired: ["elsewhere"],
      fields: [
        {
          kind: "text",
          name: "name",
          required: true,
          title: "Name",
          description: "Yours",
          minLength: 1,
          maxLength: 50,
          default: "Ann",
        },
        { kind: "text", name: "mail", required: false, format: "email" },
        { kind: "number", name: "age", required: false, integer: true, minimum: 0, maximum: 150, default: 7 },
        { kind: "number", name: "rate", required: false, integer: false },
        { kind: "boolean", name: "ok", required: false, default: false },
        {
          kind: "select",
          name: "color",
          required: false,
          options: [
            { value: "r", title: "Red" },
            { value: "g", title: "g" },
          ],
        },
        {
          kind: "select",
          name: "size",
          required: false,
          options: [{ value: "s", title: "Small" }],
          default: "s",
        },
        {
          kind: "multi-select",
          name: "tags",
          required: false,
          options: [
            { value: "a", title: "a" },
            { value: "b", title: "b" },
          ],
          minItems: 1,
          maxItems: 2,
          default: ["a"],
        },
        {
          kind: "multi-select",
          name: "toys",
          required: false,
          options: [{ value: "x", title: "Xylophone" }],
        },
      ],
    });
  });

  it.each<[string, JsonObject]>([
    ["pattern", { type: "string", pattern: "^a" }],
    ["another format", { type: "string", format: "hostname" }],
    ["const", { type: "string", const: "a" }],
    ["exclusiveMinimum", { type: "number", exclusiveMinimum: 0 }],
    ["multipleOf", { type: "integer", multipleOf: 2 }],
    ["uniqueItems", { type: "array", items: { type: "string", enum: ["a"] }, uniqueItems: true }],
    ["a list of types", { type: ["string", "null"] }],
    ["an enum without type", { enum: ["a"] }],
    ["an enum with a number", { type: "string", enum: ["a", 1] }],
    ["an enum with a duplicate", { type: "string", enum: ["a", "a"] }],
    ["oneOf with a duplicate", { type: "string", oneOf: [{ const: "a" }, { const: "a" }] }],
    ["oneOf with more than const", { type: "string", oneOf: [{ const: "a", minLength: 3 }] }],
    ["enum with a length", { type: "string", enum: ["a"], minLength: 3 }],
    ["a nested object", { type: "object", properties: {} }],
    ["an array of numbers", { type: "array", items: { type: "number" } }],
    ["a malformed bound", { type: "string", minLength: "3" }],
    ["a fractional length", { type: "string", minLength: 1.5 }],
    ["a keyword nobody knows", { type: "string", "x-check": true }],
    ["a reference", { $ref: "#/$defs/a" }],
  ])("MRTR-15: %s makes the form inexact, so that a validator looks too", (_title, field) => {
    expect(formOf({ f: field }).exact).toBe(false);
  });

  it.each<[string, JsonObject]>([
    ["dependentRequired", { properties: {}, dependentRequired: { a: ["b"] } }],
    ["allOf", { properties: {}, allOf: [] }],
    ["minProperties", { properties: {}, minProperties: 1 }],
    ["additionalProperties as a schema", { properties: {}, additionalProperties: { type: "string" } }],
    ["an unknown dialect", { properties: {}, $schema: "http://json-schema.org/draft-04/schema#" }],
    ["required that is no list", { properties: {}, required: true }],
    ["required that repeats", { properties: {}, required: ["a", "a"] }],
    ["properties that are a list", { properties: [] }],
    ["a property that is no schema", { properties: { a: true } }],
  ])("MRTR-15: %s at the top makes the form inexact", (_title, schema) => {
    expect(readForm({ type: "object", ...schema }).exact).toBe(false);
  });

  it("MRTR-15: annotations, a known dialect and additionalProperties true or false stay exact", () => {
    const rest = { title: "T", description: "D", $comment: "c", additionalProperties: false };
    for (const $schema of [
      "https://json-schema.org/draft/2020-12/schema",
      "http://json-schema.org/draft-07/schema#",
    ]) {
      const form = formOf({ a: { type: "string", examples: ["x"], deprecated: true } }, { $schema, ...rest });
      expect(form).toMatchObject({ exact: true, closed: true });
    }
  });
});

describe("formDefaults", () => {
  it("MRTR-15: gives the defaults as own properties, also under names that objects inherit", () => {
    const properties = JSON.parse(
      '{"__proto__":{"type":"string","default":"p"},"constructor":{"type":"boolean","default":false},"":{"type":"number","default":0},"none":{"type":"string"}}',
    ) as JsonObject;
    const defaults = formDefaults(formOf(properties));
    expect(Object.entries(defaults)).toEqual([
      ["__proto__", "p"],
      ["constructor", false],
      ["", 0],
    ]);
    expect(Object.getPrototypeOf(defaults)).toBe(Object.prototype);
  });

  it("MRTR-15: leaves out a default that its own field would refuse, and shares no array with the schema", () => {
    const items = { type: "string", enum: ["a", "b"] };
    const schema = {
      age: { type: "integer", minimum: 18, default: 3 },
      name: { type: "string", default: 5 },
      tags: { type: "array", items, default: ["a"] },
    };
    const form = formOf(schema);
    (formDefaults(form).tags as string[]).push("b");
    expect(formDefaults(form)).toEqual({ tags: ["a"] });
    expect(schema.tags.default).toEqual(["a"]);
  });
});

describe("checkForm", () => {
  it.each<[JsonObject, unknown, string | undefined]>([
    [{ type: "string" }, "", undefined],
    [{ type: "string" }, 1, "must be a string, not number"],
    [{ type: "string" }, null, "must be a string, not null"],
    [{ type: "string", minLength: 2 }, "a", "must be at least 2 characters long"],
    [{ type: "string", minLength: 2 }, "😀", "must be at least 2 characters long"],
    [{ type: "string", maxLength: 1 }, "😀", undefined],
    [{ type: "string", maxLength: 1 }, "ab", "must be at most 1 character long"],
    [{ type: "string", minLength: 2, maxLength: 2 }, "\ud83d\ud83d", undefined],
    [{ type: "string", format: "email" }, "ann", "must be an email address"],
    [{ type: "string", format: "date" }, "2026-02-30", "must be a date, such as 2026-07-28"],
    [{ type: "number" }, Number.NaN, "must be a finite number"],
    [{ type: "number" }, "1", "must be a number, not string"],
    [{ type: "integer" }, 1.5, "must be a whole number"],
    [{ type: "integer" }, 1.0, undefined],
    [{ type: "integer", minimum: 18 }, 17, "must be 18 or more"],
    [{ type: "number", maximum: 0.5 }, 0.75, "must be 0.5 or less"],
    [{ type: "boolean" }, "true", "must be true or false, not string"],
    [{ type: "string", enum: ["a", "b"] }, "c", 'must be one of "a", "b"'],
    [{ type: "array", items: { type: "string", enum: ["a"] } }, ["a", "z"], 'must hold only one of "a"'],
    [
      { type: "array", items: { type: "string", enum: ["a"] } },
      "a",
      "must be an array of strings, not string",
    ],
    [{ type: "array", minItems: 1, items: { type: "string", enum: ["a"] } }, [], "must have at least 1 item"],
    [
      { type: "array", maxItems: 1, items: { type: "string", enum: ["a"] } },
      ["a", "a"],
      "must have at most 1 item",
    ],
  ])("MRTR-15: %j with %j: %s", (field, value, message) => {
    expect(problemOf(field, value)).toBe(message);
  });

  it("MRTR-15: a required name must be an own property, also one that every object inherits", () => {
    const form = formOf({ toString: { type: "string" } }, { required: ["toString", "__proto__", ""] });
    const problem = (content: string) => checkForm(form, JSON.parse(content));
    const missing = (path: string) => ({ path, message: "is required and missing" });
    expect(problem("{}")).toEqual(missing("content.toString"));
    expect(problem('{"toString":"a"}')).toEqual(missing("content.__proto__"));
    expect(problem('{"toString":"a","__proto__":1}')).toEqual(missing('content[""]'));
    expect(problem('{"toString":"a","__proto__":1,"":2}')).toBeUndefined();
  });

  it("MRTR-15: an unknown name is refused only where the schema closes the form", () => {
    expect(checkForm(formOf({}), { extra: 1 })).toBeUndefined();
    expect(checkForm(formOf({}, { additionalProperties: false }), { "a b": 1 })).toEqual({
      path: 'content["a b"]',
      message: "is not a field of this form",
    });
  });

  it("SAF-01: a long list of choices is cut, and the refused value is not shown", () => {
    const field = { type: "string", enum: Array.from({ length: 40 }, (_, index) => `choice ${index}`) };
    const message = problemOf(field, "hunter2");
    expect(message).toMatch(/^must be one of "choice 0", .* and 28 more$/);
    expect(message).not.toContain("hunter2");
  });

  it("MRTR-15: one field can be checked by itself, as a form is filled in", () => {
    const [field] = formOf({ age: { type: "integer", minimum: 18 } }).fields;
    expect(checkField(field!, 17)).toBe("must be 18 or more");
    expect(checkField(field!, 18)).toBeUndefined();
  });

  it("MRTR-15: agrees with ajv on generated forms and values", () => {
    const words = [
      "",
      "a",
      "b",
      "😀😀",
      "abc",
      "a@b.example",
      "https://a.example/",
      "2026-07-28",
      "2026-07-28T00:00:00Z",
    ];
    const word = fc.constantFrom(...words);
    const option = fc.uniqueArray(fc.constantFrom("a", "b", "abc"), { minLength: 1 });
    const titled = option.map((values) =>
      values.map((value) => ({ const: value, title: value.toUpperCase() })),
    );
    const count = fc.nat({ max: 3 });
    const bound = fc.integer({ min: -2, max: 2 });
    const partial = { requiredKeys: ["type"] } as const;
    const field = fc.oneof(
      fc.record(
        {
          type: fc.constant("string"),
          title: word,
          minLength: count,
          maxLength: count,
          format: fc.constantFrom("email", "uri", "date", "date-time"),
        },
        { requiredKeys: ["type"] },
      ),
      fc.record(
        { type: fc.constantFrom("number", "integer"), minimum: bound, maximum: bound },
        partial as never,
      ),
      fc.record({ type: fc.constant("boolean"), default: fc.boolean() }, partial as never),
      fc.record({ type: fc.constant("string"), enum: option }),
      fc.record({ type: fc.constant("string"), oneOf: titled }),
      fc.record(
        {
          type: fc.constant("array"),
          items: fc.record({ type: fc.constant("string"), enum: option }),
          minItems: count,
          maxItems: count,
        },
        { requiredKeys: ["type", "items"] },
      ),
      fc.record({ type: fc.constant("array"), items: fc.record({ anyOf: titled }) }),
    );
    const name = fc.constantFrom("x", "y", "constructor", "");
    const schema = fc.record(
      {
        type: fc.constant("object"),
        properties: fc.dictionary(name, field, { maxKeys: 3 }),
        // Not the empty name: ajv 8 takes it for present when it is required and missing. Ours is in the test above.
        required: fc.uniqueArray(fc.constantFrom("x", "y", "constructor"), { maxLength: 2 }),
        additionalProperties: fc.boolean(),
      },
      { requiredKeys: ["type", "properties"] },
    );
    const value = fc.oneof(
      word,
      fc.constantFrom(-3, 0, 1, 1.5, 2),
      fc.boolean(),
      fc.array(word, { maxLength: 3 }),
    );
    const content = fc.dictionary(name, value, { maxKeys: 4 });
    const formats = { ...fullFormats };
    const seen = { accepted: 0, refused: 0 };
    fc.assert(
      fc.property(schema, fc.array(content, { minLength: 1, maxLength: 4 }), (schema, contents) => {
        const form = readForm(schema as unknown as JsonObject);
        expect(form.exact).toBe(true);
        const validate = new Ajv2020({
          ownProperties: true,
          strict: false,
          validateSchema: false,
          meta: false,
          formats,
        }).compile(schema);
        for (const content of contents) {
          const fits = validate(content);
          seen[fits ? "accepted" : "refused"]++;
          expect(checkForm(form, content) === undefined).toBe(fits);
        }
      }),
      { numRuns: 400, seed: 11 },
    );
    expect(Math.min(seen.accepted, seen.refused)).toBeGreaterThan(100);
  });

  it("B155: reading and checking a form takes microseconds, seen before or new", () => {
    const properties: JsonObject = {};
    for (let index = 0; index < 20; index++)
      properties[`f${index}`] = { type: "string", maxLength: 50, format: "email" };
    const content = Object.fromEntries(Object.keys(properties).map((name) => [name, "ann@example.com"]));
    const times: number[] = [];
    for (let run = 0; run < 300; run++) {
      const startedAt = performance.now();
      checkForm(formOf(properties), content);
      times.push(performance.now() - startedAt);
    }
    times.sort((a, b) => a - b);
    expect(times[150]).toBeLessThan(1);
  });
});

describe("the formats of a form", () => {
  const agree: Readonly<Record<string, readonly string[]>> = {
    email: [
      "a@b.co",
      "first.last+tag@sub.example.com",
      "",
      "a",
      "@b.co",
      "a@",
      "a@b",
      "a b@c.de",
      "a..b@c.de",
      ".a@b.co",
      "a@-b.co",
      "a@b-.co",
      "a@b..co",
      "a@b@c.de",
      "é@b.co",
    ],
    uri: [
      "https://a.example/",
      "https://a.example:8080/p?q=1#f",
      "urn:isbn:12",
      "mailto:a@b.co",
      "file:///a/b",
      "http://[::1]:80/",
      "a:b",
      "",
      "a",
      "//a/b",
      "/a",
      "1a:b",
      "https://a b/",
      "http://a/%2",
      "http://a/%zz",
      "http://a/\u00e9",
      "http://a/<b>",
      "http://[::1",
      "http://a/{b}",
      "\\\\a\\b",
    ],
    date: [
      "2026-07-28",
      "2024-02-29",
      "2023-02-29",
      "2000-02-29",
      "1900-02-29",
      "2026-13-01",
      "2026-00-01",
      "2026-01-00",
      "2026-04-31",
      "2026-7-28",
      "26-07-28",
      "2026-07-28 ",
      "",
    ],
    "date-time": [
      "2026-07-28T12:00:00Z",
      "2026-07-28t12:00:00z",
      "2026-07-28T12:00:00.123+02:00",
      "2026-07-28T23:59:60Z",
      "2026-07-28T22:59:60-01:00",
      "2026-07-28T12:00:60Z",
      "2026-07-28T24:00:00Z",
      "2026-07-28T12:60:00Z",
      "2026-02-30T12:00:00Z",
      "2026-07-28T12:00:00",
      "2026-07-28T12:00:00+24:00",
      "2026-07-28",
      "",
      "2026-07-28T12:00Z",
    ],
  };
  const ours = { email: isEmail, uri: isUri, date: isDate, "date-time": isDateTime };
  const theirs = new Ajv2020({ formats: fullFormats });

  for (const [format, texts] of Object.entries(agree)) {
    it.each(texts.map((text) => [text]))(
      `MRTR-15: ${format} %j is judged as ajv-formats judges it`,
      (text) => {
        expect(ours[format as keyof typeof ours](text)).toBe(
          theirs.validate({ type: "string", format }, text),
        );
      },
    );
  }

  // RFC 3339 5.6 and RFC 3986 decide; ajv-formats is laxer there.
  it.each([
    ["date-time", "2026-07-28 12:00:00Z", "a space in place of T"],
    ["date-time", "2026-07-28T12:00:00+0200", "an offset without its colon"],
    ["uri", 'https://a.example/"x"', "a quotation mark in a path"],
  ] as const)("MRTR-15: %s %j is refused: %s", (format, text, _why) => {
    expect(ours[format](text)).toBe(false);
  });

  it("B155: takes linear time for texts made to provoke backtracking", () => {
    const startedAt = performance.now();
    const long = "a".repeat(200_000);
    expect(isEmail(`${long}@${"a-".repeat(50_000)}!`)).toBe(false);
    expect(isEmail(`a@${"a.".repeat(100)}${"a-".repeat(50)}`)).toBe(false);
    expect(isUri(`http://${long}@${long}:${long}[`)).toBe(false);
    expect(isUri(`a:${"%20".repeat(100_000)}%`)).toBe(false);
    expect(isDateTime(`2026-07-28T12:00:00.${"1".repeat(200_000)}`)).toBe(false);
    expect(performance.now() - startedAt).toBeLessThan(500);
  });
});
