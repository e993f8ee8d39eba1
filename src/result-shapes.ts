/**
 * What a result must hold to be handed to the host as what it claims to be. One look at the top level, never into the
 * lists: the cost does not grow with the result.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/schema}
 */

import { isObject, type JsonObject, typeName } from "./wire.ts";

/** A field of a result that is not what the specification requires. */
export interface ResultFault {
  /** `result.content`. */
  readonly field: string;
  /** What is wrong, as a sentence without its end: "it must be an array and is missing". */
  readonly message: string;
}

type Shape = "array" | "object";

const REQUIRED: ReadonlyMap<string, readonly (readonly [name: string, shape: Shape])[]> = new Map([
  ["tools/call", [["content", "array"]]],
  ["resources/read", [["contents", "array"]]],
  ["prompts/get", [["messages", "array"]]],
  ["tools/list", [["tools", "array"]]],
  ["prompts/list", [["prompts", "array"]]],
  ["resources/list", [["resources", "array"]]],
  ["resources/templates/list", [["resourceTemplates", "array"]]],
  ["completion/complete", [["completion", "object"]]],
  [
    "server/discover",
    [
      ["supportedVersions", "array"],
      ["capabilities", "object"],
    ],
  ],
]);

/** The first field of `result` that is missing or of the wrong type for `method`; undefined when there is none. */
export function checkResult(method: string, result: JsonObject): ResultFault | undefined {
  const required = REQUIRED.get(method);
  if (required === undefined) return undefined;
  for (const [name, shape] of required) {
    const value = result[name];
    if (shape === "array" ? !Array.isArray(value) : !isObject(value))
      return fault(`result.${name}`, shape, value);
  }
  return checkDetails(method, result);
}

function checkDetails(method: string, result: JsonObject): ResultFault | undefined {
  switch (method) {
    case "tools/call":
      if (result.isError === undefined || typeof result.isError === "boolean") return undefined;
      return fault("result.isError", "boolean", result.isError);
    case "server/discover": {
      // The one list that is looked into: negotiation picks from it, and it is as short as the revisions are few.
      const versions = result.supportedVersions as readonly unknown[];
      const wrong = versions.findIndex((version) => typeof version !== "string");
      return wrong < 0 ? undefined : fault(`result.supportedVersions[${wrong}]`, "string", versions[wrong]);
    }
    case "completion/complete": {
      const { values } = result.completion as JsonObject;
      return Array.isArray(values) ? undefined : fault("result.completion.values", "array", values);
    }
    case "tools/list":
    case "prompts/list":
    case "resources/list":
    case "resources/templates/list":
      if (result.nextCursor === undefined || typeof result.nextCursor === "string") return undefined;
      return fault("result.nextCursor", "string", result.nextCursor);
    default:
      return undefined;
  }
}

function fault(field: string, wanted: string, value: unknown): ResultFault {
  const article = wanted === "array" || wanted === "object" ? "an" : "a";
  const got = value === undefined ? "is missing" : `is ${typeName(value)}`;
  return { field, message: `it must be ${article} ${wanted} and ${got}` };
}
