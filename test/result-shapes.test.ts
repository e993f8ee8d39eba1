import { describe, expect, it } from "vitest";
import { checkResult } from "../src/result-shapes.ts";

describe("checkResult", () => {
  it.each([
    ["tools/call", { content: [] }],
    ["tools/call", { content: [{ type: "text", text: "x" }], isError: true, structuredContent: null }],
    ["resources/read", { contents: [] }],
    ["prompts/get", { messages: [] }],
    ["tools/list", { tools: [], nextCursor: "" }],
    ["prompts/list", { prompts: [] }],
    ["resources/list", { resources: [] }],
    ["resources/templates/list", { resourceTemplates: [] }],
    ["completion/complete", { completion: { values: [] } }],
    ["server/discover", { supportedVersions: ["2026-07-28"], capabilities: {} }],
    ["x/anything", {}],
  ])("MRTR-02: %s may be answered with %j", (method, result) => {
    expect(checkResult(method, result)).toBeUndefined();
  });

  it.each<[string, Record<string, unknown>, string, string]>([
    ["tools/call", {}, "result.content", "it must be an array and is missing"],
    ["tools/call", { content: null }, "result.content", "it must be an array and is null"],
    ["tools/call", { content: {} }, "result.content", "it must be an array and is object"],
    ["tools/call", { content: [], isError: "no" }, "result.isError", "it must be a boolean and is string"],
    ["resources/read", { content: [] }, "result.contents", "it must be an array and is missing"],
    ["prompts/get", { messages: "x" }, "result.messages", "it must be an array and is string"],
    ["tools/list", { tools: {} }, "result.tools", "it must be an array and is object"],
    ["tools/list", { tools: [], nextCursor: 5 }, "result.nextCursor", "it must be a string and is number"],
    ["prompts/list", {}, "result.prompts", "it must be an array and is missing"],
    ["resources/list", {}, "result.resources", "it must be an array and is missing"],
    ["resources/templates/list", {}, "result.resourceTemplates", "it must be an array and is missing"],
    ["completion/complete", { completion: [] }, "result.completion", "it must be an object and is array"],
    [
      "completion/complete",
      { completion: {} },
      "result.completion.values",
      "it must be an array and is missing",
    ],
    [
      "server/discover",
      { capabilities: {} },
      "result.supportedVersions",
      "it must be an array and is missing",
    ],
    [
      "server/discover",
      { supportedVersions: ["a", 1], capabilities: {} },
      "result.supportedVersions[1]",
      "it must be a string and is number",
    ],
    [
      "server/discover",
      { supportedVersions: [] },
      "result.capabilities",
      "it must be an object and is missing",
    ],
  ])("MRTR-02: %s answered with %j names the field", (method, result, field, message) => {
    expect(checkResult(method, result)).toEqual({ field, message });
  });
});
