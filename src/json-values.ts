/** Checks that a value of the host's own can be sent as JSON without silently becoming something else. */

import { joinPath, type Problem } from "./problems.ts";
import { typeName } from "./wire.ts";

const DEEPEST = 100;

/**
 * The first part of `value` that JSON cannot carry as it is: undefined in an array, NaN, Infinity, a BigInt, a function, a
 * Date or another object that is no plain one, a cycle. A property whose value is undefined counts as absent.
 */
export function findNonJson(value: unknown, path: string, depth = 0): Problem | undefined {
  switch (typeof value) {
    case "string":
    case "boolean":
      return undefined;
    case "number":
      return Number.isFinite(value) ? undefined : { path, message: "must be a finite number" };
    case "object":
      break;
    default:
      return { path, message: `must be a JSON value, not ${describeType(value)}` };
  }
  if (value === null) return undefined;
  if (depth >= DEEPEST) return { path, message: "nests too deeply, or refers to itself" };
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const problem = findNonJson(value[index], joinPath(path, index), depth + 1);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
  if (!isPlain(value)) return { path, message: `must be a JSON value, not ${describeType(value)}` };
  for (const key of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[key];
    if (member === undefined) continue;
    const problem = findNonJson(member, joinPath(path, key), depth + 1);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Whether JSON encodes an object by its own properties: no Date, Map, boxed value, nor anything with a `toJSON`. */
export function isPlain(value: object): boolean {
  return (
    Object.prototype.toString.call(value) === "[object Object]" &&
    typeof (value as { toJSON?: unknown }).toJSON !== "function"
  );
}

/** Names a value's type for a message, more precisely than JSON's types: "Date", "bigint", "undefined". */
export function describeType(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return typeName(value);
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  if (tag !== "Object") return `a ${tag}`;
  return isPlain(value) ? "object" : "an object with a toJSON of its own";
}
