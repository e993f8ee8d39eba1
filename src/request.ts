/**
 * The text of a request: the caller's params are encoded once, at the call, and every attempt splices the same text (MRTR-06).
 *
 * Layout: `{"jsonrpc":"2.0","id":N,"method":M,"params":{` P `,"_meta":` META `,"inputResponses":` R `,"requestState":` S `}}`.
 * P is the inner text of the caller's params without the three reserved keys.
 */

import { UsageError } from "./errors.ts";
import { isObject, type JsonObject, typeName, type WireId } from "./wire.ts";

/** The caller's params, encoded: what stays the same in every attempt, and what belongs to round 1 alone. */
export interface EncodedParams {
  /** P: the inner text of the params object, without braces. */
  readonly text: string;
  /** The caller's own `_meta`, merged into every attempt's. */
  readonly meta: JsonObject | undefined;
  /** `inputResponses` that the caller put in: round 1 only. */
  readonly responses: string | undefined;
  /** `requestState` that the caller put in: round 1 only. */
  readonly requestState: string | undefined;
}

const RESERVED = ["_meta", "inputResponses", "requestState"] as const;

/**
 * Encodes the params of a call. JSON.stringify's rules hold (undefined members vanish, dates become strings); what JSON
 * cannot say at all (BigInt, a cycle) or params that are no object are a {@link UsageError} with the path.
 */
export function encodeParams(params: unknown): EncodedParams {
  if (params === undefined) return NO_PARAMS;
  if (!isObject(params)) {
    throw new UsageError(`params must be an object, not ${typeName(params)}`, { path: "params" });
  }
  // What JSON makes of such an object may be no object, or hold reserved keys: so it is looked at as JSON has it.
  if (typeof params.toJSON === "function") return encodeParams(JSON.parse(encodeValue(params, "params")));
  if (!RESERVED.some((key) => Object.hasOwn(params, key))) {
    return { ...NO_PARAMS, text: encodeValue(params, "params").slice(1, -1) };
  }
  const { _meta, inputResponses, requestState, ...rest } = params;
  if (_meta !== undefined && !isObject(_meta)) {
    throw new UsageError(`_meta must be an object, not ${typeName(_meta)}`, { path: "params._meta" });
  }
  if (inputResponses !== undefined && !isObject(inputResponses)) {
    throw new UsageError(`inputResponses must be an object, not ${typeName(inputResponses)}`, {
      path: "params.inputResponses",
    });
  }
  if (requestState !== undefined && typeof requestState !== "string") {
    throw new UsageError(`requestState must be a string, not ${typeName(requestState)}`, {
      path: "params.requestState",
    });
  }
  return {
    text: encodeValue(rest, "params").slice(1, -1),
    meta: _meta,
    responses:
      inputResponses === undefined ? undefined : encodeValue(inputResponses, "params.inputResponses"),
    requestState,
  };
}

const NO_PARAMS: EncodedParams = { text: "", meta: undefined, responses: undefined, requestState: undefined };

/** Encodes `{name, arguments}` without building the object. `args` must be an object, as MCP has it. */
export function encodeNamedParams(name: string, args: unknown): string {
  const head = `"name":${JSON.stringify(name)}`;
  if (args === undefined) return head;
  if (!isObject(args)) {
    throw new UsageError(`arguments must be an object, not ${typeName(args)}`, { path: "arguments" });
  }
  const text = encodeValue(args, "arguments");
  if (!text.startsWith("{")) {
    throw new UsageError("arguments must be an object, and its toJSON gives something else", {
      path: "arguments",
    });
  }
  return `${head},"arguments":${text}`;
}

/** Encodes one JSON value; a {@link UsageError} names the path of what JSON cannot say. */
export function encodeValue(value: unknown, path: string): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    const found = findUnencodable(value, path, new Set());
    throw new UsageError(
      found === undefined
        ? `${path} cannot be encoded as JSON: ${(cause as Error).message}`
        : `${found.path} is ${found.what}, which JSON cannot say; pass a string, a number or a plain object instead`,
      { path: found?.path ?? path, cause },
    );
  }
  if (text === undefined) {
    throw new UsageError(`${path} is ${typeName(value)}, which JSON cannot say`, { path });
  }
  return text;
}

/** Finds the first BigInt or cycle in a value. Runs only after JSON.stringify has refused it. */
function findUnencodable(
  value: unknown,
  path: string,
  above: Set<unknown>,
): { path: string; what: string } | undefined {
  if (typeof value === "bigint") return { path, what: "a BigInt" };
  if (typeof value !== "object" || value === null) return undefined;
  if (above.has(value)) return { path, what: "a reference to an object that contains it" };
  above.add(value);
  for (const [key, member] of Object.entries(value)) {
    const found = findUnencodable(member, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`, above);
    if (found !== undefined) return found;
  }
  above.delete(value);
  return undefined;
}

/** Everything that one attempt's frame is joined from. */
export interface RequestParts {
  readonly id: WireId;
  readonly method: string;
  /** P, see {@link EncodedParams}. */
  readonly params: string;
  /** The whole `_meta` object as text. */
  readonly meta: string;
  /** R: the whole `inputResponses` object as text; undefined leaves the key out. */
  readonly responses: string | undefined;
  /** Undefined leaves the key out; an empty string is sent as one (MRTR-08). */
  readonly requestState: string | undefined;
}

/** Joins the frame of one attempt. `id` comes before `params`, so that nothing inside params can be mistaken for it. */
export function encodeRequest(parts: RequestParts): string {
  const { params, responses, requestState } = parts;
  let text = `{"jsonrpc":"2.0","id":${parts.id},"method":${quoteMethod(parts.method)},"params":{`;
  if (params !== "") text += `${params},`;
  text += `"_meta":${parts.meta}`;
  if (responses !== undefined) text += `,"inputResponses":${responses}`;
  if (requestState !== undefined) text += `,"requestState":${JSON.stringify(requestState)}`;
  return `${text}}}`;
}

const quoted = new Map<string, string>();

/** Quotes a method name; the few names in use are quoted once. */
function quoteMethod(method: string): string {
  let text = quoted.get(method);
  if (text === undefined) {
    text = JSON.stringify(method);
    if (quoted.size < 64) quoted.set(method, text);
  }
  return text;
}
