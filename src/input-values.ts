/**
 * Checks what an input handler returns before it is sent (MRTR-15). `schemas/elicit-result.json`, `create-message-result.json`
 * and `list-roots-result.json` say the same, and a test holds the two equal; what is added here is the precise path, and
 * the values that JavaScript has and JSON has not.
 */

import { checkForm, type Form } from "./form.ts";
import { isUri } from "./formats.ts";
import { describeType, findNonJson, isPlain } from "./json-values.ts";
import { joinPath, type Problem, setOwn } from "./problems.ts";
import { isObject, type JsonObject } from "./wire.ts";

/** The answer to an elicitation, as it goes to the server. */
export interface CleanElicitResult {
  readonly action: "accept" | "decline" | "cancel";
  readonly content?: Record<string, string | number | boolean | string[]>;
  readonly [key: string]: unknown;
}

/** A cleaned value, or what is wrong with it. */
export type Checked<T> = { readonly value: T; readonly problem?: never } | { readonly problem: Problem };

/**
 * Checks the answer to an elicitation. The value that comes back is a copy of its own: `content` is in it only with
 * accept in form mode, and dropped otherwise; with accept in form mode an absent `content` is an empty one. With `form`,
 * the content is checked against it too; when `form.exact` is false a validator still has to look at the content.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#response-actions}
 */
export function checkElicitResult(
  value: unknown,
  mode: "form" | "url",
  form?: Form,
): Checked<CleanElicitResult> {
  if (!isObject(value))
    return no("", `must be an object such as { action: "accept" }, not ${describeType(value)}`);
  const { action } = value;
  if (action !== "accept" && action !== "decline" && action !== "cancel") {
    return no("action", 'must be "accept", "decline" or "cancel"');
  }
  const clean: Record<string, unknown> = { action };
  if (action === "accept" && mode === "form") {
    const content = copyContent(value.content ?? (value.content === undefined ? {} : null));
    if (content.problem !== undefined) return content;
    const problem = form && checkForm(form, content.value);
    if (problem !== undefined) return { problem };
    clean.content = content.value;
  }
  for (const key of Object.keys(value)) {
    const member = value[key];
    if (key === "action" || key === "content" || member === undefined) continue;
    const problem = findNonJson(member, joinPath("", key));
    if (problem !== undefined) return { problem };
    setOwn<unknown>(clean, key, JSON.parse(JSON.stringify(member)));
  }
  return { value: clean as unknown as CleanElicitResult };
}

type FlatValue = string | number | boolean | string[];

function copyContent(content: unknown): Checked<Record<string, FlatValue>> {
  if (!isObject(content) || !isPlain(content)) {
    return no("content", `must be an object of the form's values, not ${describeType(content)}`);
  }
  const copy: Record<string, FlatValue> = {};
  for (const key of Object.keys(content)) {
    const path = joinPath("content", key);
    const value = content[key];
    if (Array.isArray(value)) {
      const wrong = findNonString(value, path);
      if (wrong !== undefined) return { problem: wrong };
      setOwn(copy, key, [...(value as string[])]);
    } else if (typeof value === "number") {
      if (!Number.isFinite(value)) return no(path, "must be a finite number");
      setOwn(copy, key, value);
    } else if (typeof value === "string" || typeof value === "boolean") {
      setOwn(copy, key, value);
    } else {
      return no(
        path,
        `must be a string, a number, a boolean or an array of strings, not ${describeType(value)}`,
      );
    }
  }
  return { value: copy };
}

function findNonString(values: readonly unknown[], path: string): Problem | undefined {
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    if (typeof value !== "string") {
      return { path: joinPath(path, index), message: `must be a string, not ${describeType(value)}` };
    }
  }
  return undefined;
}

function no(path: string, message: string): { readonly problem: Problem } {
  return { problem: { path, message } };
}

// A segment that climbs, also when its dots are escaped.
const CLIMBS = /(?:^|\/)(?:\.|%2e){2}(?:\/|$)/i;

/**
 * Checks the answer to `roots/list`: every root is a `file://` URI, without a `..` in its path.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/client/roots#data-types}
 */
export function checkListRootsResult(value: unknown): Problem | undefined {
  if (!isObject(value)) return wrong("", "an object such as { roots: [] }", value);
  const { roots } = value;
  if (!Array.isArray(roots)) return wrong("roots", "an array", roots);
  for (let index = 0; index < roots.length; index++) {
    const problem = checkRoot(roots[index], joinPath("roots", index));
    if (problem !== undefined) return problem;
  }
  return findNonJson(value, "");
}

function checkRoot(root: unknown, path: string): Problem | undefined {
  if (!isObject(root)) return wrong(path, "an object", root);
  const { uri, name } = root;
  const at = joinPath(path, "uri");
  if (typeof uri !== "string") return wrong(at, "a string", uri);
  if (!uri.startsWith("file://")) return { path: at, message: 'must begin with "file://"' };
  if (!isUri(uri))
    return { path: at, message: "must be a URI, with spaces and other special characters escaped" };
  if (CLIMBS.test(uri)) return { path: at, message: 'must not hold a ".." segment' };
  if (name !== undefined && typeof name !== "string") return wrong(joinPath(path, "name"), "a string", name);
  return checkFields(root, { _meta: "object?" }, path);
}

type FieldKind = "string" | "object" | "array" | "string?" | "object?" | "boolean?";
type Fields = Readonly<Record<string, FieldKind>>;

const MEDIA: Fields = { data: "string", mimeType: "string", annotations: "object?", _meta: "object?" };
const RESOURCE_LINK: Fields = {
  name: "string",
  uri: "string",
  title: "string?",
  description: "string?",
  mimeType: "string?",
  annotations: "object?",
  _meta: "object?",
};

const RESOURCE: Fields = {
  uri: "string",
  mimeType: "string?",
  text: "string?",
  blob: "string?",
  _meta: "object?",
};

/** What each kind of content block holds. */
const BLOCKS: ReadonlyMap<unknown, Fields> = new Map<unknown, Fields>([
  ["text", { text: "string", annotations: "object?", _meta: "object?" }],
  ["image", MEDIA],
  ["audio", MEDIA],
  ["tool_use", { id: "string", name: "string", input: "object", _meta: "object?" }],
  ["tool_result", { toolUseId: "string", content: "array", isError: "boolean?", _meta: "object?" }],
  ["resource_link", RESOURCE_LINK],
  ["resource", { resource: "object", annotations: "object?", _meta: "object?" }],
]);

const PLAIN_BLOCKS: readonly string[] = ["text", "image", "audio"];
const TOOL_BLOCKS: readonly string[] = [...PLAIN_BLOCKS, "tool_use", "tool_result"];
const RESULT_BLOCKS: readonly string[] = [...PLAIN_BLOCKS, "resource_link", "resource"];

/**
 * Checks the answer to `sampling/createMessage`. `tools` says whether the server's request offered tools: only then may
 * the message use one.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/client/sampling}
 */
export function checkCreateMessageResult(
  value: unknown,
  options: { readonly tools: boolean },
): Problem | undefined {
  if (!isObject(value)) return wrong("", "an object with role, content and model", value);
  const { role, content } = value;
  if (role !== "user" && role !== "assistant")
    return { path: "role", message: 'must be "user" or "assistant"' };
  const fault = checkFields(value, { model: "string", stopReason: "string?", _meta: "object?" }, "");
  if (fault !== undefined) return fault;
  const allowed = options.tools ? TOOL_BLOCKS : PLAIN_BLOCKS;
  if (!Array.isArray(content)) return checkBlock(content, allowed, "content") ?? findNonJson(value, "");
  const problem = checkBlocks(content, allowed, "content");
  if (problem !== undefined) return problem;
  const results = content.filter((block) => block.type === "tool_result").length;
  if (role === "user" && results > 0 && results < content.length) {
    return { path: "content", message: "must not mix tool results with other content" };
  }
  return findNonJson(value, "");
}

function checkBlocks(
  blocks: readonly unknown[],
  allowed: readonly string[],
  path: string,
): Problem | undefined {
  for (let index = 0; index < blocks.length; index++) {
    const problem = checkBlock(blocks[index], allowed, joinPath(path, index));
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function checkBlock(block: unknown, allowed: readonly string[], path: string): Problem | undefined {
  if (!isObject(block)) return wrong(path, "a content block", block);
  const { type } = block;
  const fields = BLOCKS.get(type);
  if (fields === undefined || !allowed.includes(type as string)) {
    const hint =
      fields !== undefined && allowed === PLAIN_BLOCKS ? "; the server's request offered no tools" : "";
    return { path: joinPath(path, "type"), message: `must be one of "${allowed.join('", "')}"${hint}` };
  }
  // Tool uses and tool results have no annotations: a member of that name means nothing there.
  const annotations = fields.annotations === undefined ? undefined : block.annotations;
  const problem =
    checkFields(block, fields, path) ?? checkAnnotations(annotations, joinPath(path, "annotations"));
  if (problem !== undefined) return problem;
  if (type === "tool_result") {
    return checkBlocks(block.content as readonly unknown[], RESULT_BLOCKS, joinPath(path, "content"));
  }
  return type === "resource"
    ? checkResource(block.resource as JsonObject, joinPath(path, "resource"))
    : undefined;
}

function checkResource(resource: JsonObject, path: string): Problem | undefined {
  const problem = checkFields(resource, RESOURCE, path);
  if (problem !== undefined) return problem;
  if (resource.text !== undefined || resource.blob !== undefined) return undefined;
  return { path, message: 'must have a "text" or a "blob"' };
}

function checkAnnotations(annotations: unknown, path: string): Problem | undefined {
  if (!isObject(annotations)) return undefined;
  const { audience, priority } = annotations;
  if (audience !== undefined) {
    const at = joinPath(path, "audience");
    if (!Array.isArray(audience)) return wrong(at, "an array", audience);
    const index = audience.findIndex((role) => role !== "user" && role !== "assistant");
    if (index >= 0) return { path: joinPath(at, index), message: 'must be "user" or "assistant"' };
  }
  if (priority !== undefined && !(typeof priority === "number" && priority >= 0 && priority <= 1)) {
    return { path: joinPath(path, "priority"), message: "must be a number from 0 to 1" };
  }
  return checkFields(annotations, { lastModified: "string?" }, path);
}

function checkFields(value: JsonObject, fields: Fields, path: string): Problem | undefined {
  for (const name of Object.keys(fields)) {
    const kind = fields[name]!;
    const member = value[name];
    if (member === undefined && kind.endsWith("?")) continue;
    const wanted = kind.replace("?", "");
    const fits =
      wanted === "array"
        ? Array.isArray(member)
        : wanted === "object"
          ? isObject(member)
          : typeof member === wanted;
    if (fits) continue;
    return wrong(joinPath(path, name), `${/^[ao]/.test(wanted) ? "an" : "a"} ${wanted}`, member);
  }
  return undefined;
}

function wrong(path: string, wanted: string, value: unknown): Problem {
  return {
    path,
    message:
      value === undefined ? "is required and missing" : `must be ${wanted}, not ${describeType(value)}`,
  };
}
