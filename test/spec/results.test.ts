import { describe, expect, it, vi } from "vitest";
import type { InputError, ProtocolViolationError } from "../../src/errors.ts";
import type { Script } from "../../src/testing/peer-types.ts";
import {
  complete,
  elicitForm,
  elicitUrl,
  inputRequired,
  listRoots,
  sample,
} from "../../src/testing/replies.ts";
import type { JsonObject } from "../../src/wire.ts";
import { HTTP_AND_STDIO, memory } from "../support/bindings.ts";
import { retryParts } from "../support/frames.ts";
import { errorOf, expectAtRest, textOf } from "../support/outcomes.ts";

// What a result means: resultType first, then the strict shape of a question.

const FORM_PARAMS = { message: "Sure?", requestedSchema: { type: "object", properties: {} } };
const ask = (entry: unknown) => inputRequired({ inputRequests: { k: entry }, requestState: "s" });

const violations: { title: string; result: JsonObject; field: string }[] = [
  { title: "neither inputRequests nor requestState", result: inputRequired({}), field: "result" },
  ...[null, [], "oops", 42, true].map((inputRequests) => ({
    title: `inputRequests ${JSON.stringify(inputRequests)}`,
    result: inputRequired({ inputRequests, requestState: "s" }),
    field: "result.inputRequests",
  })),
  ...[null, [], {}, 42, false].map((requestState) => ({
    title: `requestState ${JSON.stringify(requestState)}`,
    result: inputRequired({ inputRequests: { k: elicitForm("?") }, requestState }),
    field: "result.requestState",
  })),
  ...[null, [], "x", 1].map((entry) => ({
    title: `an entry ${JSON.stringify(entry)}`,
    result: ask(entry),
    field: 'result.inputRequests["k"]',
  })),
  {
    title: "an entry without method",
    result: ask({ params: {} }),
    field: 'result.inputRequests["k"].method',
  },
  {
    title: "a method that is no string",
    result: ask({ method: 1 }),
    field: 'result.inputRequests["k"].method',
  },
  {
    title: "an unknown method",
    result: ask({ method: "tools/call", params: {} }),
    field: 'result.inputRequests["k"].method',
  },
  {
    title: "an elicitation without params",
    result: ask({ method: "elicitation/create" }),
    field: 'result.inputRequests["k"].params',
  },
  {
    title: "an unknown mode",
    result: ask({ method: "elicitation/create", params: { ...FORM_PARAMS, mode: "voice" } }),
    field: 'result.inputRequests["k"].params.mode',
  },
  {
    title: "a mode of null",
    result: ask({ method: "elicitation/create", params: { ...FORM_PARAMS, mode: null } }),
    field: 'result.inputRequests["k"].params.mode',
  },
  {
    title: "a form without schema",
    result: ask({ method: "elicitation/create", params: { message: "?" } }),
    field: 'result.inputRequests["k"].params.requestedSchema',
  },
  {
    title: "a URL elicitation without url",
    result: ask({ method: "elicitation/create", params: { mode: "url", message: "?" } }),
    field: 'result.inputRequests["k"].params.url',
  },
  {
    title: "sampling without messages",
    result: ask({ method: "sampling/createMessage", params: { maxTokens: 1 } }),
    field: 'result.inputRequests["k"].params.messages',
  },
  {
    title: "roots with params that are a list",
    result: ask({ method: "roots/list", params: [] }),
    field: 'result.inputRequests["k"].params',
  },
];

for (const { name, open } of HTTP_AND_STDIO)
  describe(`a result over ${name}`, () => {
    it("MRTR-01: only three methods may ask; on any other it is a violation, and no handler runs", async () => {
      const elicitForm_ = vi.fn(() => ({ action: "decline" as const }));
      const question = inputRequired({ inputRequests: { k: elicitForm("Sure?") }, requestState: "s" });
      const rig = await open(question, { inputs: { elicitForm: elicitForm_ } });
      const methods = ["tools/list", "prompts/list", "resources/list", "completion/complete", "x/custom"];
      for (const method of methods) {
        const error = await errorOf<ProtocolViolationError>(rig.client.request(method, {}));
        expect([error.code, error.field]).toEqual(["protocol-violation", "result.resultType"]);
        expect(error.message).toContain(method);
      }
      expect(elicitForm_).not.toHaveBeenCalled();
      expect(rig.peer.requests).toHaveLength(methods.length);
      expectAtRest(rig);
    });

    it("MRTR-01: prompts/get, resources/read and tools/call are answered and retried", async () => {
      const script: Script = ({ params, method }, exchange) => {
        if (!("inputResponses" in params)) return exchange.result(ask(elicitForm("Sure?")));
        if (method === "prompts/get") return exchange.result({ resultType: "complete", messages: [] });
        if (method === "resources/read") return exchange.result({ resultType: "complete", contents: [] });
        exchange.result(complete("done"));
      };
      const rig = await open(script, { inputs: { elicitForm: () => ({ action: "decline" }) } });
      expect(await rig.client.getPrompt("p")).toMatchObject({ messages: [] });
      expect(await rig.client.readResource("note://x")).toMatchObject({ contents: [] });
      expect(textOf(await rig.client.callTool("t"))).toBe("done");
      const answered = { inputResponses: { k: { action: "decline" } }, requestState: "s" };
      expect(retryParts(rig.peer)).toEqual([{}, answered, {}, answered, {}, answered]);
      expectAtRest(rig);
    });

    it("MRTR-02: complete, absent, and what a declared extension adds end the call", async () => {
      const results = [
        complete("hi"),
        { content: [{ type: "text", text: "hi" }] },
        complete("hi", { inputRequests: { k: elicitForm("?") }, requestState: "s" }),
        complete("hi", { resultType: "x/job" }),
      ];
      const extension = { extensions: { "example.com/x": {} }, resultTypes: ["x/job"] };
      const rig = await open(results, { capabilities: extension });
      for (const result of results) expect(await rig.client.callTool("t")).toEqual(result);
      expect(rig.peer.requests).toHaveLength(results.length);
    });

    it("MRTR-02: any other resultType, and one that is no string, is invalid", async () => {
      const values = ["pending", "Complete", "", null, 1, true, ["complete"], { complete: true }];
      const rig = await open(values.map((resultType) => complete("hi", { resultType })));
      for (const value of values) {
        const error = await errorOf<ProtocolViolationError>(rig.client.callTool("t"));
        expect([value, error.code, error.field]).toEqual([value, "protocol-violation", "result.resultType"]);
      }
      expect(rig.peer.requests).toHaveLength(values.length);
    });

    it("MRTR-02 B019: a question that looks like another result too is still a question", async () => {
      const question = {
        resultType: "input_required",
        _meta: { "io.modelcontextprotocol/serverInfo": { name: "s", version: "1" } },
        content: [],
        structuredContent: {},
        isError: true,
        inputRequests: { k: elicitForm("Sure?") },
      };
      const rig = await open([question, complete("done")], {
        inputs: { elicitForm: () => ({ action: "accept", content: { ok: true } }) },
      });
      expect(textOf(await rig.client.callTool("t"))).toBe("done");
      expect(retryParts(rig.peer)[1]).toEqual({
        inputResponses: { k: { action: "accept", content: { ok: true } } },
      });
    });

    it("MRTR-03 MRTR-04 B004: a malformed question is a violation that names the field, never 'absent'", async () => {
      const handler = vi.fn();
      const inputs = { elicitForm: handler, elicitUrl: handler, sample: handler, listRoots: handler };
      const rig = await open(
        violations.map(({ result }) => result),
        { inputs },
      );
      for (const { title, field } of violations) {
        const error = await errorOf<ProtocolViolationError>(rig.client.callTool("t"));
        expect([title, error.code, error.field]).toEqual([title, "protocol-violation", field]);
      }
      expect(handler).not.toHaveBeenCalled();
      expect(rig.peer.requests).toHaveLength(violations.length);
      expectAtRest(rig);
    });

    it("MRTR-04 B008 B034: each entry goes to its kind of handler, and the whole result object goes back", async () => {
      const inputRequests = {
        form: elicitForm("Form?"),
        plain: { method: "elicitation/create", params: FORM_PARAMS },
        url: elicitUrl("Visit", "https://example.com/"),
        model: sample("Hi"),
        places: listRoots(),
      };
      const answers = {
        form: { action: "accept", content: { ok: true } },
        plain: { action: "accept", content: {} },
        url: { action: "accept" },
        model: {
          role: "assistant",
          content: { type: "text", text: "Hello" },
          model: "m",
          stopReason: "endTurn",
        },
        places: { roots: [{ uri: "file:///home/x", name: "x" }] },
      };
      const asked: string[] = [];
      const rig = await open([inputRequired({ inputRequests }), complete("done")], {
        inputs: {
          elicitForm: (_params, { key }) => {
            asked.push(`form ${key}`);
            return answers[key as "form" | "plain"] as never;
          },
          elicitUrl: (_params, { key }) => {
            asked.push(`url ${key}`);
            return answers.url as never;
          },
          sample: (_params, { key }) => {
            asked.push(`sample ${key}`);
            return answers.model as never;
          },
          listRoots: ({ key }) => {
            asked.push(`roots ${key}`);
            return answers.places;
          },
        },
      });
      expect(textOf(await rig.client.callTool("t"))).toBe("done");
      expect(asked).toEqual(["form form", "form plain", "url url", "sample model", "roots places"]);
      expect(retryParts(rig.peer)[1]).toEqual({ inputResponses: answers });
    });
  });

describe("a result of absurd depth", () => {
  const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;

  for (const { title, member } of [
    { title: "resultType", member: (value: string) => `"resultType":${value}` },
    {
      title: "mode",
      member: (value: string) =>
        `"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?","mode":${value}}}}`,
    },
    {
      title: "input request",
      member: (value: string) =>
        `"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}},"extra":${value}}}}`,
    },
  ])
    it(`SAF-02 MRTR-03: a deeply nested ${title} fails its call and nothing else`, async () => {
      const text = (id: unknown) => `{"jsonrpc":"2.0","id":${id},"result":{${member(deep(100_000))}}}`;
      for (const handler of ["suspend", () => ({ action: "decline" })] as const) {
        const rig = await memory.open(({ id }, exchange) => exchange.raw(text(id)), {
          inputs: { elicitForm: handler as never },
          maxRounds: 2,
        });
        const error = await errorOf<InputError>(rig.client.callTool("t"));
        expect(["protocol-violation", "limit"]).toContain(error.code);
        expectAtRest(rig);
      }
    });
});
