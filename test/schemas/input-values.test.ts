import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readForm } from "../../src/form.ts";
import { checkCreateMessageResult, checkElicitResult, checkListRootsResult } from "../../src/input-values.ts";
import { loadSchemas } from "./load.ts";

const get = loadSchemas();

describe("checkElicitResult", () => {
  it.each([
    ["nothing", undefined, ""],
    ["null", null, ""],
    ["text", "accept", ""],
    ["an array", [], ""],
    ["no action", {}, "action"],
    ["another action", { action: "ok" }, "action"],
    ["content 7", { action: "accept", content: 7 }, "content"],
    ["content []", { action: "accept", content: [] }, "content"],
    ["content null", { action: "accept", content: null }, "content"],
    ["content a Date", { action: "accept", content: new Date(0) }, "content"],
    ["content a Map", { action: "accept", content: new Map() }, "content"],
    ["a nested object", { action: "accept", content: { a: { nested: 1 } } }, "content.a"],
    ["a null", { action: "accept", content: { a: null } }, "content.a"],
    [
      "an undefined",
      { action: "accept", content: { ok: 1, "first name": undefined } },
      'content["first name"]',
    ],
    ["a Date", { action: "accept", content: { when: new Date(0) } }, "content.when"],
    ["NaN", { action: "accept", content: { n: Number.NaN } }, "content.n"],
    ["Infinity", { action: "accept", content: { n: Number.POSITIVE_INFINITY } }, "content.n"],
    ["a BigInt", { action: "accept", content: { n: 1n } }, "content.n"],
    ["a function", { action: "accept", content: { toJSON: () => ({}) } }, "content"],
    ["an array of numbers", { action: "accept", content: { tags: ["a", 1] } }, "content.tags[1]"],
    ["an array with a hole", { action: "accept", content: { tags: new Array(1) } }, "content.tags[0]"],
    ["a key __proto__", { action: "accept", content: JSON.parse('{"__proto__":{}}') }, "content.__proto__"],
    ["a BigInt beside", { action: "accept", _meta: { size: 1n } }, "_meta.size"],
  ])("MRTR-15 B029 B031: %s is refused with its path", (_title, value, path) => {
    expect(checkElicitResult(value, "form")).toEqual({ problem: { path, message: expect.any(String) } });
  });

  it("SAF-01: no message holds the value itself", () => {
    const secret = "hunter2";
    for (const value of [secret, { action: secret }, { action: "accept", content: { a: [1, secret] } }]) {
      expect(JSON.stringify(checkElicitResult(value, "form"))).not.toContain(secret);
    }
  });

  it.each([
    ["decline with content", { action: "decline", content: { a: 1 } }, "form", { action: "decline" }],
    ["decline with null content", { action: "decline", content: null }, "form", { action: "decline" }],
    ["cancel with content that is nonsense", { action: "cancel", content: 7 }, "form", { action: "cancel" }],
    ["accept in url mode", { action: "accept", content: { a: {} } }, "url", { action: "accept" }],
    ["accept without content", { action: "accept" }, "form", { action: "accept", content: {} }],
    [
      "accept with undefined content",
      { action: "accept", content: undefined },
      "form",
      { action: "accept", content: {} },
    ],
    [
      "another member",
      { action: "accept", content: {}, _meta: { a: 1 } },
      "form",
      { action: "accept", content: {}, _meta: { a: 1 } },
    ],
    [
      "an undefined member",
      { action: "accept", content: {}, _meta: undefined },
      "form",
      { action: "accept", content: {} },
    ],
  ] as const)("MRTR-15 B032: %s is cleaned", (_title, value, mode, clean) => {
    expect(checkElicitResult(value, mode)).toStrictEqual({ value: clean });
  });

  it("MRTR-15: content is checked against the form with accept only", () => {
    const form = readForm({ type: "object", properties: { age: { type: "integer" } }, required: ["age"] });
    expect(checkElicitResult({ action: "accept" }, "form", form)).toMatchObject({
      problem: { path: "content.age" },
    });
    expect(checkElicitResult({ action: "cancel" }, "form", form)).toEqual({ value: { action: "cancel" } });
    expect(checkElicitResult({ action: "accept", content: { age: 3 } }, "form", form)).toMatchObject({
      value: { content: { age: 3 } },
    });
  });

  it("MRTR-15: the cleaned value is a copy that later changes cannot reach, with every own key", () => {
    const content = JSON.parse('{"__proto__":"p","constructor":"c","":"e","tags":["a"]}') as Record<
      string,
      unknown
    >;
    const checked = checkElicitResult({ action: "accept", content }, "form");
    (content.tags as string[]).push("b");
    content[""] = "changed";
    expect(JSON.stringify(checked.problem ?? checked.value.content)).toBe(
      '{"__proto__":"p","constructor":"c","":"e","tags":["a"]}',
    );
  });

  it("MRTR-15: agrees with elicit-result.json on whatever JSON a handler gives", () => {
    const validate = get("elicit-result");
    const flat = fc.oneof(fc.string(), fc.double(), fc.boolean(), fc.array(fc.string()), fc.jsonValue());
    const result = fc.record(
      {
        action: fc.constantFrom("accept", "accept", "decline", "cancel", "other", 1),
        content: fc.oneof(fc.dictionary(fc.string(), flat), fc.jsonValue()),
        _meta: fc.dictionary(fc.string(), fc.jsonValue()),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(result, fc.jsonValue()), (generated) => {
        const value: unknown = JSON.parse(JSON.stringify(generated));
        const checked = checkElicitResult(value, "form");
        if (checked.problem === undefined) {
          // What is sent satisfies the schema, also where what was given did not (content with decline).
          expect(validate(checked.value)).toBe(true);
        } else {
          expect(validate(value)).toBe(false);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe("checkListRootsResult", () => {
  it.each([
    ["nothing", undefined, ""],
    ["no roots", {}, "roots"],
    ["roots as object", { roots: {} }, "roots"],
    ["a plain path", { roots: [{ uri: "/home/me" }] }, "roots[0].uri"],
    ["https", { roots: [{ uri: "file:///a" }, { uri: "https://a.example/" }] }, "roots[1].uri"],
    ["file: without slashes", { roots: [{ uri: "file:/a" }] }, "roots[0].uri"],
    ["a space", { roots: [{ uri: "file:///my files" }] }, "roots[0].uri"],
    ["climbing", { roots: [{ uri: "file:///home/me/../you" }] }, "roots[0].uri"],
    ["climbing, escaped", { roots: [{ uri: "file:///home/%2E%2e/you" }] }, "roots[0].uri"],
    ["a root as text", { roots: ["file:///a"] }, "roots[0]"],
    ["a name as number", { roots: [{ uri: "file:///a", name: 1 }] }, "roots[0].name"],
    ["a BigInt within", { roots: [{ uri: "file:///a", _meta: { size: 1n } }] }, "roots[0]._meta.size"],
  ])("MRTR-15: %s is refused with its path", (_title, value, path) => {
    expect(checkListRootsResult(value)).toEqual({ path, message: expect.any(String) });
  });

  it.each([
    [{ roots: [] }],
    [{ roots: [{ uri: "file:///home/me", name: "home" }] }],
    [{ roots: [{ uri: "file:///C:/Users/me" }, { uri: "file://server/share/a..b/...", name: undefined }] }],
  ])("MRTR-15: %j passes", (value) => {
    expect(checkListRootsResult(value)).toBeUndefined();
  });

  it("MRTR-15: agrees with list-roots-result.json", () => {
    const validate = get("list-roots-result");
    const piece = fc.constantFrom(
      "file://",
      "/",
      "..",
      ".",
      "%2e%2E",
      "a",
      " ",
      "home",
      "%",
      "%20",
      "é",
      "[",
      "?q",
      "#f",
      "C:",
    );
    const uri = fc.oneof(
      fc.array(piece, { maxLength: 7 }).map((pieces) => `file:///${pieces.join("")}`),
      fc.string(),
    );
    const root = fc.record(
      { uri: fc.oneof(uri, fc.jsonValue()), name: fc.jsonValue() },
      { requiredKeys: [] },
    );
    const result = fc.record({ roots: fc.oneof(fc.array(root), fc.jsonValue()) }, { requiredKeys: [] });
    fc.assert(
      fc.property(fc.oneof(result, fc.jsonValue()), (value) => {
        expect(checkListRootsResult(value) === undefined).toBe(validate(value));
      }),
      { numRuns: 500 },
    );
  });
});

const text = { type: "text", text: "hello" };
const toolUse = { type: "tool_use", id: "u", name: "t", input: {} };
const toolResult = { type: "tool_result", toolUseId: "u", content: [text] };

describe("checkCreateMessageResult", () => {
  const whole = { role: "assistant", content: text, model: "m" };

  it.each([
    ["nothing", undefined, ""],
    ["no role", { ...whole, role: undefined }, "role"],
    ["no model", { ...whole, model: undefined }, "model"],
    ["stopReason as number", { ...whole, stopReason: 1 }, "stopReason"],
    ["no content", { ...whole, content: undefined }, "content"],
    ["content as plain text", { ...whole, content: "hello" }, "content"],
    ["an unknown block", { ...whole, content: [text, { type: "video" }] }, "content[1].type"],
    [
      "an image without data",
      { ...whole, content: { type: "image", mimeType: "image/png" } },
      "content.data",
    ],
    [
      "a resource among results",
      { ...whole, content: [{ ...toolResult, content: [{ type: "resource", resource: {} }] }] },
      "content[0].content[0].resource.uri",
    ],
    ["tool results mixed", { ...whole, role: "user", content: [toolResult, text] }, "content"],
    [
      "a priority above one",
      { ...whole, content: { ...text, annotations: { priority: 2 } } },
      "content.annotations.priority",
    ],
    [
      "NaN in the input of a tool",
      { ...whole, content: { ...toolUse, input: { n: Number.NaN } } },
      "content.input.n",
    ],
    ["a Date in _meta", { ...whole, _meta: { at: new Date(0) } }, "_meta.at"],
  ])("MRTR-15: %s is refused with its path", (_title, value, path) => {
    expect(checkCreateMessageResult(value, { tools: true })).toEqual({ path, message: expect.any(String) });
  });

  it("MRTR-15: a cycle is refused, not followed", () => {
    const meta: Record<string, unknown> = {};
    meta.self = meta;
    expect(checkCreateMessageResult({ ...whole, _meta: meta }, { tools: false })?.message).toMatch(
      /refers to itself/,
    );
  });

  it("MRTR-15: a tool use passes only when the server's request offered tools", () => {
    const value = { ...whole, content: [text, toolUse] };
    expect(checkCreateMessageResult(value, { tools: true })).toBeUndefined();
    expect(checkCreateMessageResult(value, { tools: false })).toEqual({
      path: "content[1].type",
      message: expect.stringContaining("no tools"),
    });
  });

  it("MRTR-15: agrees with create-message-result.json", () => {
    const validate = get("create-message-result");
    const annotations = fc.record(
      {
        audience: fc.oneof(fc.array(fc.constantFrom("user", "assistant", "x")), fc.jsonValue()),
        priority: fc.double(),
        lastModified: fc.jsonValue(),
      },
      { requiredKeys: [] },
    );
    const loose = fc.oneof({ weight: 3, arbitrary: fc.string() }, { weight: 1, arbitrary: fc.jsonValue() });
    const object = fc.oneof(
      { weight: 3, arbitrary: fc.dictionary(fc.string(), fc.jsonValue()) },
      { weight: 1, arbitrary: fc.jsonValue() },
    );
    const block = fc.record(
      {
        type: fc.constantFrom(
          "text",
          "image",
          "audio",
          "tool_use",
          "tool_result",
          "resource",
          "resource_link",
          "video",
        ),
        text: loose,
        data: loose,
        mimeType: loose,
        id: loose,
        name: loose,
        uri: loose,
        toolUseId: loose,
        input: object,
        isError: fc.oneof(fc.boolean(), fc.jsonValue()),
        resource: fc.record({ uri: loose, text: loose, blob: loose }, { requiredKeys: [] }),
        content: fc.oneof(
          fc.array(
            fc.record(
              {
                type: fc.constantFrom("text", "resource", "tool_use"),
                text: loose,
                resource: fc.record({ uri: loose, text: loose }, { requiredKeys: [] }),
              },
              { requiredKeys: ["type"] },
            ),
            { maxLength: 2 },
          ),
          fc.jsonValue(),
        ),
        annotations: fc.oneof(annotations, fc.jsonValue()),
        _meta: object,
      },
      { requiredKeys: ["type"] },
    );
    const result = fc.record(
      {
        role: fc.constantFrom("user", "assistant", "assistant", "system"),
        content: fc.oneof(block, fc.array(block, { maxLength: 3 }), fc.jsonValue()),
        model: loose,
        stopReason: loose,
        _meta: object,
      },
      { requiredKeys: ["role", "content", "model"] },
    );
    let valid = 0;
    fc.assert(
      fc.property(fc.oneof(result, fc.jsonValue()), (generated) => {
        const value: unknown = JSON.parse(JSON.stringify(generated));
        const fits = validate(value);
        if (fits) valid++;
        expect(checkCreateMessageResult(value, { tools: true }) === undefined).toBe(fits);
      }),
      { numRuns: 2000, seed: 7 },
    );
    expect(valid).toBeGreaterThan(20);
  });
});
