/**
 * `x-mcp-header`: which params of a tool a binding mirrors outside the body, and their values in one call (HDR-02).
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters}
 */

import { UsageError } from "./errors.ts";
import { joinPath } from "./problems.ts";
import type { MirroredField } from "./transport.ts";
import { isObject, type JsonObject, typeName } from "./wire.ts";

/** One annotated param: the name of its header, and the `properties` keys that lead to its value in the arguments. */
export interface MirrorRule {
  readonly name: string;
  readonly path: readonly string[];
}

/** What the annotations of one input schema come to: the rules, or why the tool's definition has to be rejected. */
export type MirrorPlan = { readonly rules: readonly MirrorRule[] } | { readonly fault: string };

const ANNOTATION = "x-mcp-header";
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const TYPES: ReadonlySet<unknown> = new Set(["string", "integer", "boolean"]);

/** Keywords whose value is a map of names to schemas: a name in it is not a keyword. */
const MAPS: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
  "dependencies",
]);
/** Keywords whose value is data: what is in there annotates nothing. */
const DATA: ReadonlySet<string> = new Set(["const", "enum", "default", "examples", "required"]);

// More than any request could carry as headers; they keep a hostile schema from costing more than its own size.
const MOST_RULES = 100;
const DEEPEST_RULE = 64;
const LONGEST_NAME = 200;

/** Where a schema stands: undefined once the way to it has left the chain of `properties`. */
interface Place {
  readonly key: string;
  readonly above: Place | undefined;
  readonly depth: number;
}

interface Visit {
  readonly schema: unknown;
  /** "root", a place that only `properties` lead to, or the keyword that left the chain. */
  readonly at: "root" | Place | { readonly under: string };
}

const NO_RULES: MirrorPlan = { rules: [] };

/**
 * Reads the annotations of a tool's `inputSchema`. Every constraint of the specification holds; an annotation anywhere
 * but on a property that only `properties` lead to makes the definition invalid. Linear in the schema, without recursion.
 */
export function planMirroring(inputSchema: unknown): MirrorPlan {
  const rules: MirrorRule[] = [];
  const names = new Set<string>();
  const open: Visit[] = [{ schema: inputSchema, at: "root" }];
  for (let visit = open.pop(); visit !== undefined; visit = open.pop()) {
    const { schema, at } = visit;
    if (typeof schema !== "object" || schema === null) continue;
    if (Array.isArray(schema)) {
      for (const item of schema) open.push({ schema: item, at });
      continue;
    }
    const node = schema as JsonObject;
    if (Object.hasOwn(node, ANNOTATION)) {
      const rule = readRule(node, at);
      if (typeof rule === "string") return { fault: rule };
      const lower = rule.name.toLowerCase();
      if (names.has(lower)) {
        return { fault: `${placeName(rule.path)} repeats the ${ANNOTATION} "${rule.name}" (case aside)` };
      }
      if (rules.length === MOST_RULES) return { fault: `it has more than ${MOST_RULES} ${ANNOTATION}s` };
      names.add(lower);
      rules.push(rule);
    }
    pushChildren(node, at, open);
  }
  return rules.length === 0 ? NO_RULES : { rules };
}

function pushChildren(node: JsonObject, at: Visit["at"], open: Visit[]): void {
  for (const keyword of Object.keys(node)) {
    const value = node[keyword];
    if (typeof value !== "object" || value === null || DATA.has(keyword)) continue;
    if (!MAPS.has(keyword)) {
      open.push({ schema: value, at: leave(at, keyword) });
      continue;
    }
    const onChain = keyword === "properties" && (at === "root" || "key" in at);
    for (const key of Object.keys(value)) {
      const child = (value as JsonObject)[key];
      open.push({ schema: child, at: onChain ? step(at as "root" | Place, key) : leave(at, keyword) });
    }
  }
}

function step(at: "root" | Place, key: string): Place {
  return at === "root" ? { key, above: undefined, depth: 1 } : { key, above: at, depth: at.depth + 1 };
}

function leave(at: Visit["at"], keyword: string): { readonly under: string } {
  return at !== "root" && "under" in at ? at : { under: keyword };
}

/** The rule that an annotated schema makes, or the constraint that it breaks. */
function readRule(schema: JsonObject, at: Visit["at"]): MirrorRule | string {
  if (at === "root") return `the schema itself has an ${ANNOTATION}; only a property may`;
  if ("under" in at) {
    return `there is an ${ANNOTATION} under "${at.under.slice(0, 40)}"; only properties that a chain of "properties" leads to may have one`;
  }
  if (at.depth > DEEPEST_RULE) return `there is an ${ANNOTATION} more than ${DEEPEST_RULE} levels deep`;
  const path: string[] = [];
  for (let place: Place | undefined = at; place !== undefined; place = place.above) path.unshift(place.key);
  const name = schema[ANNOTATION];
  if (typeof name !== "string") {
    return `the ${ANNOTATION} of ${placeName(path)} must be a string, not ${typeName(name)}`;
  }
  if (name === "") return `the ${ANNOTATION} of ${placeName(path)} is empty`;
  if (name.length > LONGEST_NAME || !TOKEN.test(name)) {
    return `the ${ANNOTATION} of ${placeName(path)}, ${JSON.stringify(name.slice(0, 60))}, is no header name (letters, digits and !#$%&'*+-.^_\`|~, at most ${LONGEST_NAME})`;
  }
  const type = Object.hasOwn(schema, "type") ? schema.type : undefined;
  if (!TYPES.has(type)) {
    const shown = type === undefined ? "none" : (JSON.stringify(type)?.slice(0, 60) ?? typeName(type));
    return `${placeName(path)} has an ${ANNOTATION}, so its type must be "string", "integer" or "boolean", not ${shown}`;
  }
  return { name, path };
}

function placeName(path: readonly string[]): string {
  return path.reduce((text, key) => joinPath(text, key.slice(0, 60)), "");
}

/**
 * The fields that one call mirrors. Read from the encoded params, so what is mirrored is what is sent. A value that is
 * missing or null leaves its field out; so does an object or array, which has no form as a field and which the server's
 * own check of the arguments refuses. Other values are mirrored by their own type, whatever the schema says of them.
 *
 * @param params P: the inner text of the params object.
 * @throws {UsageError} for an integer beyond ±(2^53 − 1), which would not arrive as it was given.
 */
export function mirrorParams(rules: readonly MirrorRule[], params: string): readonly MirroredField[] {
  if (rules.length === 0) return NO_FIELDS;
  const given = ownValue(JSON.parse(`{${params}}`), "arguments");
  const fields: MirroredField[] = [];
  for (const { name, path } of rules) {
    let value: unknown = given;
    for (const key of path) value = ownValue(value, key);
    const text = fieldText(value, path);
    if (text !== undefined) fields.push({ name, value: text });
  }
  return fields;
}

const NO_FIELDS: readonly MirroredField[] = [];

function ownValue(value: unknown, key: string): unknown {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

function fieldText(value: unknown, path: readonly string[]): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return value ? "true" : "false";
  if (typeof value !== "number") return undefined;
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    const where = path.reduce<string>(joinPath, "arguments");
    throw new UsageError(
      `${where} is mirrored as a header, so it must be an integer between -(2^53 - 1) and 2^53 - 1. Nothing was sent.`,
      { path: where },
    );
  }
  return String(value);
}
