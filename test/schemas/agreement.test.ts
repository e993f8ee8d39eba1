import * as official from "@modelcontextprotocol/core";
import { describe, expect, it } from "vitest";
import { loadSchemas, readSchema, schemaNames } from "./load.ts";

/*
 * Our schemas against those of the official package, value by value. `differs` marks the values on which the two
 * legitimately disagree; it says which line of the specification decides for us, and the test then insists on the
 * disagreement, so that the mark goes when the official package changes.
 */

interface Case {
  readonly value: unknown;
  readonly valid: boolean;
  readonly differs?: string;
}

interface ZodLike {
  safeParse(value: unknown): { readonly success: boolean };
}

interface Table {
  readonly schema: string;
  readonly official: ZodLike;
  readonly cases: Readonly<Record<string, Case>>;
}

const yes = (value: unknown, differs?: string): Case => ({ value, valid: true, ...(differs && { differs }) });
const no = (value: unknown, differs?: string): Case => ({ value, valid: false, ...(differs && { differs }) });

const text = { type: "text", text: "hello" };
const image = { type: "image", data: "aGVsbG8=", mimeType: "image/png" };
const toolUse = { type: "tool_use", id: "u1", name: "search", input: {} };
const toolResult = { type: "tool_result", toolUseId: "u1", content: [text] };
const form = (properties: unknown, rest: object = {}) => ({
  message: "Who are you?",
  requestedSchema: { type: "object", properties, ...rest },
});

const TABLES: readonly Table[] = [
  {
    schema: "elicit-form-request",
    official: official.ElicitRequestFormParamsSchema,
    cases: {
      "no mode": yes(form({ name: { type: "string" } })),
      "mode form": yes({ ...form({}), mode: "form" }),
      "mode url": no({ ...form({}), mode: "url" }),
      "mode null": no({ ...form({}), mode: null }),
      "no message": no({ requestedSchema: { type: "object", properties: {} } }),
      "no schema": no({ message: "m" }),
      "no properties": no({ message: "m", requestedSchema: { type: "object" } }),
      "type array": no({ message: "m", requestedSchema: { type: "array", properties: {} } }),
      "a $schema": yes(form({}, { $schema: "https://json-schema.org/draft/2020-12/schema" })),
      "required names": yes(form({ a: { type: "string" } }, { required: ["a"] })),
      "required of numbers": no(form({}, { required: [1] })),
      "all of a text field": yes(
        form({
          a: {
            type: "string",
            title: "A",
            description: "d",
            minLength: 1,
            maxLength: 9,
            format: "email",
            default: "x",
          },
        }),
      ),
      "unknown format": no(form({ a: { type: "string", format: "hostname" } })),
      "minLength as text": no(form({ a: { type: "string", minLength: "1" } })),
      "negative minLength": no(
        form({ a: { type: "string", minLength: -1 } }),
        "schema.ts StringSchema: a number; the validation vocabulary of 2020-12 (6.3.2) asks for a non-negative integer",
      ),
      "number field": yes(form({ a: { type: "number", minimum: 0, maximum: 0.5, default: 0.25 } })),
      "integer field": yes(form({ a: { type: "integer", minimum: 0 } })),
      "minimum as text": no(form({ a: { type: "number", minimum: "0" } })),
      "boolean field": yes(form({ a: { type: "boolean", default: false } })),
      "boolean default as text": no(form({ a: { type: "boolean", default: "no" } })),
      enum: yes(form({ a: { type: "string", enum: ["x", "y"], default: "x" } })),
      "enum with legacy names": yes(form({ a: { type: "string", enum: ["x"], enumNames: ["X"] } })),
      "enum of numbers": no(
        form({ a: { type: "string", enum: [1] } }),
        "schema.ts UntitledSingleSelectEnumSchema.enum is string[]; the official union falls through to a plain string field",
      ),
      "titled enum": yes(form({ a: { type: "string", oneOf: [{ const: "x", title: "X" }] } })),
      "titled enum without a title": no(
        form({ a: { type: "string", oneOf: [{ const: "x" }] } }),
        "schema.ts TitledSingleSelectEnumSchema.oneOf requires a title; the official union falls through to a plain string field",
      ),
      "multi-select": yes(
        form({ a: { type: "array", items: { type: "string", enum: ["x"] }, minItems: 1, maxItems: 2 } }),
      ),
      "titled multi-select": yes(
        form({ a: { type: "array", items: { anyOf: [{ const: "x", title: "X" }] }, default: ["x"] } }),
      ),
      "array of objects": no(form({ a: { type: "array", items: { type: "object" } } })),
      "array of free strings": no(form({ a: { type: "array", items: { type: "string" } } })),
      "nested object": no(form({ a: { type: "object", properties: {} } })),
      "null field": no(form({ a: null })),
      "a field without type": no(form({ a: { title: "A" } })),
    },
  },
  {
    schema: "elicit-url-request",
    official: official.ElicitRequestURLParamsSchema,
    cases: {
      whole: yes(
        { mode: "url", message: "m", url: "https://example.com/x" },
        "changelog of 2026-07-28: elicitationId is no longer part of ElicitRequestURLParams (schema.ts); the official schema still requires it",
      ),
      "with the id of an earlier revision": yes({
        mode: "url",
        message: "m",
        url: "https://example.com/x",
        elicitationId: "e",
      }),
      "no mode": no({ message: "m", url: "https://example.com/", elicitationId: "e" }),
      "no url": no({ mode: "url", message: "m", elicitationId: "e" }),
      "no message": no({ mode: "url", url: "https://example.com/", elicitationId: "e" }),
      "not a url": no({ mode: "url", message: "m", url: "example", elicitationId: "e" }),
    },
  },
  {
    schema: "elicit-result",
    official: official.ElicitResultSchema,
    cases: {
      accept: yes({ action: "accept" }),
      "accept with flat values": yes({
        action: "accept",
        content: { a: "x", b: 1.5, c: false, d: ["x", "y"] },
      }),
      decline: yes({ action: "decline" }),
      cancel: yes({ action: "cancel" }),
      "another action": no({ action: "reject" }),
      "no action": no({ content: {} }),
      "content with decline": no(
        { action: "decline", content: { a: 1 } },
        "schema.ts ElicitResult.content: only present with accept; the engine drops it before it sends",
      ),
      "nested content": no({ action: "accept", content: { a: { b: 1 } } }),
      "null value": no({ action: "accept", content: { a: null } }),
      "array of numbers": no({ action: "accept", content: { a: [1] } }),
      "content as array": no({ action: "accept", content: [] }),
      "content null": no(
        { action: "accept", content: null },
        "schema.ts ElicitResult.content is an object or absent; the official schema reads null as absent",
      ),
    },
  },
  {
    schema: "create-message-request",
    official: official.CreateMessageRequestParamsSchema,
    cases: {
      least: yes({ messages: [], maxTokens: 1 }),
      "one message": yes({ messages: [{ role: "user", content: text }], maxTokens: 100 }),
      "content as array": yes({
        messages: [{ role: "assistant", content: [text, image, toolUse] }],
        maxTokens: 1,
      }),
      "tool results": yes({ messages: [{ role: "user", content: [toolResult, toolResult] }], maxTokens: 1 }),
      "tool results mixed with text": no(
        { messages: [{ role: "user", content: [toolResult, text] }], maxTokens: 1 },
        "client/sampling, Tool Result Messages: a user message with tool results must contain only those",
      ),
      "all options": yes({
        messages: [],
        maxTokens: 5,
        systemPrompt: "s",
        temperature: 0.3,
        stopSequences: ["."],
        includeContext: "none",
        metadata: { a: 1 },
        modelPreferences: {
          hints: [{ name: "small" }],
          costPriority: 0,
          speedPriority: 1,
          intelligencePriority: 0.5,
        },
        tools: [{ name: "t", inputSchema: { type: "object" } }],
        toolChoice: { mode: "required" },
      }),
      "no maxTokens": no({ messages: [] }),
      "maxTokens as text": no({ messages: [], maxTokens: "1" }),
      "no messages": no({ maxTokens: 1 }),
      "another role": no({ messages: [{ role: "system", content: text }], maxTokens: 1 }),
      "content as plain text": no({ messages: [{ role: "user", content: "hello" }], maxTokens: 1 }),
      "priority above one": no({ messages: [], maxTokens: 1, modelPreferences: { costPriority: 2 } }),
      "another context": no({ messages: [], maxTokens: 1, includeContext: "all" }),
      "a tool without schema": no({ messages: [], maxTokens: 1, tools: [{ name: "t" }] }),
      "another tool choice": no({ messages: [], maxTokens: 1, toolChoice: { mode: "some" } }),
    },
  },
  {
    schema: "create-message-result",
    official: official.CreateMessageResultWithToolsSchema,
    cases: {
      text: yes({ role: "assistant", content: text, model: "m" }),
      "several blocks": yes({ role: "assistant", content: [text, image], model: "m", stopReason: "endTurn" }),
      "tool use": yes({ role: "assistant", content: [toolUse], model: "m", stopReason: "toolUse" }),
      "a reason of the provider's own": yes({
        role: "assistant",
        content: text,
        model: "m",
        stopReason: "refusal",
      }),
      "no model": no({ role: "assistant", content: text }),
      "no role": no({ content: text, model: "m" }),
      "another role": no({ role: "system", content: text, model: "m" }),
      "no content": no({ role: "assistant", model: "m" }),
      "unknown block": no({ role: "assistant", content: { type: "video", data: "" }, model: "m" }),
      "image without its type": no({ role: "assistant", content: { type: "image", data: "" }, model: "m" }),
      "a resource link": no({
        role: "assistant",
        content: { type: "resource_link", name: "n", uri: "a:b" },
        model: "m",
      }),
      "stopReason as number": no({ role: "assistant", content: text, model: "m", stopReason: 1 }),
    },
  },
  {
    schema: "list-roots-request",
    official: official.ListRootsRequestSchema,
    cases: {
      bare: yes({ method: "roots/list" }),
      "with params": yes({ method: "roots/list", params: {} }),
      "another method": no({ method: "roots/get" }),
      "params as array": no({ method: "roots/list", params: [] }),
    },
  },
  {
    schema: "list-roots-result",
    official: official.ListRootsResultSchema,
    cases: {
      empty: yes({ roots: [] }),
      named: yes({ roots: [{ uri: "file:///home/me", name: "home" }] }),
      "no roots": no({}),
      "another scheme": no({ roots: [{ uri: "https://example.com/" }] }),
      "name as number": no({ roots: [{ uri: "file:///a", name: 1 }] }),
      "not a uri": no(
        { roots: [{ uri: "file:///my files" }] },
        "schema.ts Root.uri: @format uri; RFC 3986 has no space in a URI",
      ),
      climbing: no(
        { roots: [{ uri: "file:///home/../etc" }] },
        "client/roots, Security Considerations 1: clients must validate root URIs to prevent path traversal",
      ),
    },
  },
  {
    schema: "call-tool-result",
    official: official.CallToolResultSchema,
    cases: {
      text: yes({ content: [text] }),
      empty: yes({ content: [] }),
      "with resultType": yes({ resultType: "complete", content: [] }),
      "an error": yes({ content: [text], isError: true }),
      "structured object": yes({ content: [], structuredContent: { a: 1 } }),
      "structured null": yes({ content: [], structuredContent: null }),
      "structured array": yes({ content: [], structuredContent: [1] }),
      "structured false": yes({ content: [], structuredContent: false }),
      "resource link": yes({ content: [{ type: "resource_link", name: "n", uri: "file:///a" }] }),
      "embedded resource": yes({
        content: [{ type: "resource", resource: { uri: "file:///a", text: "x" } }],
      }),
      annotations: yes({ content: [{ ...text, annotations: { audience: ["user"], priority: 1 } }] }),
      "priority above one": no({ content: [{ ...text, annotations: { priority: 1.5 } }] }),
      "no content": no(
        { structuredContent: {} },
        "schema.ts CallToolResult.content is required; the official schema fills in an empty array",
      ),
      "content as object": no({ content: text }),
      "isError as text": no({ content: [], isError: "true" }),
      "unknown block": no({ content: [{ type: "video" }] }),
      "text without text": no({ content: [{ type: "text" }] }),
      "resource without contents": no({ content: [{ type: "resource", resource: { uri: "file:///a" } }] }),
      "tool use": no({ content: [toolUse] }),
    },
  },
  {
    schema: "read-resource-result",
    official: official.ReadResourceResultSchema,
    cases: {
      text: yes({ contents: [{ uri: "a:b", text: "x" }] }),
      blob: yes({
        contents: [{ uri: "a:b", blob: "aGk=", mimeType: "image/png" }],
        ttlMs: 5,
        cacheScope: "public",
      }),
      "no contents": no({}),
      "no uri": no({ contents: [{ text: "x" }] }),
      "neither text nor blob": no({ contents: [{ uri: "a:b" }] }),
      "contents as object": no({ contents: { uri: "a:b", text: "x" } }),
    },
  },
  {
    schema: "get-prompt-result",
    official: official.GetPromptResultSchema,
    cases: {
      "one message": yes({ messages: [{ role: "user", content: text }] }),
      described: yes({ description: "d", messages: [] }),
      "no messages": no({ description: "d" }),
      "content as array": no({ messages: [{ role: "user", content: [text] }] }),
      "another role": no({ messages: [{ role: "system", content: text }] }),
    },
  },
];

describe("our schemas and the official ones", () => {
  const get = loadSchemas();
  for (const { schema, official, cases } of TABLES) {
    it.each(Object.entries(cases))(`MRTR-03 MRTR-15: ${schema}: %s`, (_title, { value, valid, differs }) => {
      expect(get(schema)(value)).toBe(valid);
      expect(official.safeParse(value).success).toBe(differs === undefined ? valid : !valid);
    });
  }
});

describe("messages that the official package has no schema of", () => {
  const get = loadSchemas();
  const elicit = { method: "elicitation/create", params: form({}) };
  const snapshot = {
    version: 1,
    peer: "https://example.com/mcp",
    method: "tools/call",
    params: '"name":"t"',
    rounds: 0,
  };
  const required = { resultType: "input_required" };

  it.each([
    ["both fields", { ...required, inputRequests: { a: elicit }, requestState: "s" }, true],
    ["state only", { ...required, requestState: "" }, true],
    ["an empty object of requests", { ...required, inputRequests: {} }, true],
    ["roots without params", { ...required, inputRequests: { a: { method: "roots/list" } } }, true],
    [
      "sampling",
      {
        ...required,
        inputRequests: { a: { method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } } },
      },
      true,
    ],
    [
      "a url",
      {
        ...required,
        inputRequests: {
          a: {
            method: "elicitation/create",
            params: { mode: "url", message: "m", url: "https://a.example/" },
          },
        },
      },
      true,
    ],
    ["neither field", required, false],
    ["requests null", { ...required, inputRequests: null, requestState: "s" }, false],
    ["requests as array", { ...required, inputRequests: [elicit] }, false],
    ["state as number", { ...required, requestState: 1 }, false],
    ["an entry without method", { ...required, inputRequests: { a: { params: {} } } }, false],
    ["another method", { ...required, inputRequests: { a: { method: "tools/list", params: {} } } }, false],
    [
      "elicitation without params",
      { ...required, inputRequests: { a: { method: "elicitation/create" } } },
      false,
    ],
    ["another resultType", { resultType: "complete", requestState: "s" }, false],
  ])("MRTR-03 MRTR-04: input-required-result: %s", (_title, value, valid) => {
    expect(get("input-required-result")(value)).toBe(valid);
  });

  it.each([
    ["least", snapshot, true],
    [
      "whole",
      {
        ...snapshot,
        name: "t",
        mirrored: [{ name: "Region", value: "eu" }],
        requestState: "s",
        inputRequests: { a: elicit },
        answers: { a: { action: "accept" } },
      },
      true,
    ],
    ["another version", { ...snapshot, version: 2 }, false],
    ["negative rounds", { ...snapshot, rounds: -1 }, false],
    ["params as object", { ...snapshot, params: {} }, false],
    ["answers without questions", { ...snapshot, answers: {} }, false],
    [
      "an answer that is no object",
      { ...snapshot, inputRequests: { a: elicit }, answers: { a: "yes" } },
      false,
    ],
    ["no peer", { ...snapshot, peer: undefined }, false],
  ])("MRTR-20: continuation: %s", (_title, value, valid) => {
    expect(get("continuation")(value)).toBe(valid);
  });
});

describe("the schema files", () => {
  it.each(schemaNames)("%s has a title, a description and the id of its file name", (name) => {
    const schema = readSchema(name);
    expect(schema).toMatchObject({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      $id: `mcp-rally:/schemas/${name}.json`,
      title: expect.any(String),
      description: expect.any(String),
    });
  });

  it("compile in a strict ajv without a warning", () => {
    const warnings: string[] = [];
    const get = loadSchemas((message) => warnings.push(message));
    for (const name of schemaNames) get(name);
    expect(warnings).toEqual([]);
  });
});
