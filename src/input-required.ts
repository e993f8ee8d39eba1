/**
 * Reads an `input_required` result strictly (MRTR-03, MRTR-04): what is missing is absent, what is there but of the wrong
 * type is a violation that names the field, never "absent".
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#inputrequiredresult}
 */

import { LimitError, ProtocolViolationError, type RallyError } from "./errors.ts";
import { clip, isDeeperThan, showJson, showValue } from "./show.ts";
import { isObject, type JsonObject, typeName } from "./wire.ts";

/** The kinds of input a server can ask for; also the names of the handlers. */
export type InputKind = "elicitForm" | "elicitUrl" | "sample" | "listRoots";

/** One entry of `inputRequests`, its shape checked. */
export interface InputRequest {
  /** The server's key, any string at all. */
  readonly key: string;
  readonly kind: InputKind;
  readonly method: string;
  readonly params: JsonObject;
}

/** What an `input_required` result asks for. */
export interface InputQuestion {
  /** Undefined when the result has no `inputRequests`; an empty list when it has an empty object. */
  readonly requests: readonly InputRequest[] | undefined;
  readonly requestState: string | undefined;
}

/** Bounds on one question (LIM-01). */
export interface QuestionLimits {
  /** The most input requests in one round. Default 64. */
  readonly inputRequests: number;
  /** The largest `requestState` in bytes of UTF-8. Default 1 MiB. */
  readonly requestStateBytes: number;
}

/** How deep an input request may be nested. */
const MAX_DEPTH = 100;

/** Reads the question; an error in place of a question says what is wrong with it. */
export function readQuestion(result: JsonObject, limits: QuestionLimits): InputQuestion | RallyError {
  const { inputRequests, requestState } = result;
  if (inputRequests === undefined && requestState === undefined) {
    return violation(
      "result",
      'an input_required result must have "inputRequests" or "requestState", and this one has neither',
    );
  }
  if (requestState !== undefined) {
    if (typeof requestState !== "string") return wrongType("result.requestState", "a string", requestState);
    if (isLongerThan(requestState, limits.requestStateBytes)) {
      return tooMuch("requestState is longer than", "requestStateBytes", limits.requestStateBytes, "bytes");
    }
  }
  if (inputRequests === undefined) return { requests: undefined, requestState };
  if (!isObject(inputRequests)) return wrongType("result.inputRequests", "an object", inputRequests);
  const keys = Object.keys(inputRequests);
  if (keys.length > limits.inputRequests) {
    return tooMuch(`${keys.length} input requests are more than`, "inputRequests", limits.inputRequests, "");
  }
  const requests: InputRequest[] = [];
  for (const key of keys) {
    const request = readRequest(key, inputRequests[key]);
    if (request instanceof Error) return request;
    requests.push(request);
  }
  return { requests, requestState };
}

function readRequest(key: string, entry: unknown): InputRequest | ProtocolViolationError {
  const path = `result.inputRequests[${showJson(key, 120)}]`;
  if (!isObject(entry)) return wrongType(path, "an object", entry);
  // A question is compared, copied and written out again; what none of those can walk is refused here.
  if (isDeeperThan(entry, MAX_DEPTH)) return violation(path, `it is nested deeper than ${MAX_DEPTH} levels`);
  const { method } = entry;
  if (typeof method !== "string") return wrongType(`${path}.method`, "a string", method);
  if (method === "roots/list") {
    const { params } = entry;
    if (params !== undefined && !isObject(params)) return wrongType(`${path}.params`, "an object", params);
    return { key, kind: "listRoots", method, params: params ?? {} };
  }
  if (method !== "elicitation/create" && method !== "sampling/createMessage") {
    return violation(
      `${path}.method`,
      `"${clip(method, 120)}" is no input request; it must be elicitation/create, sampling/createMessage or roots/list`,
    );
  }
  const { params } = entry;
  if (!isObject(params)) return wrongType(`${path}.params`, "an object", params);
  return method === "elicitation/create"
    ? readElicitation(key, method, params, `${path}.params`)
    : readSampling(key, method, params, `${path}.params`);
}

function readElicitation(key: string, method: string, params: JsonObject, path: string) {
  const { mode, message } = params;
  if (typeof message !== "string") return wrongType(`${path}.message`, "a string", message);
  if (mode === undefined || mode === "form") {
    const schema = params.requestedSchema;
    if (!isObject(schema)) return wrongType(`${path}.requestedSchema`, "an object", schema);
    if (schema.type !== "object") {
      return violation(`${path}.requestedSchema.type`, 'the schema of a form must have "type": "object"');
    }
    if (!isObject(schema.properties)) {
      return wrongType(`${path}.requestedSchema.properties`, "an object", schema.properties);
    }
    return { key, kind: "elicitForm", method, params } as const;
  }
  if (mode === "url") {
    if (typeof params.url !== "string") return wrongType(`${path}.url`, "a string", params.url);
    return { key, kind: "elicitUrl", method, params } as const;
  }
  return violation(
    `${path}.mode`,
    `the mode of an elicitation must be "form" or "url", not ${showValue(mode)}`,
  );
}

function readSampling(key: string, method: string, params: JsonObject, path: string) {
  if (!Array.isArray(params.messages)) return wrongType(`${path}.messages`, "an array", params.messages);
  if (typeof params.maxTokens !== "number") {
    return wrongType(`${path}.maxTokens`, "a number", params.maxTokens);
  }
  return { key, kind: "sample", method, params } as const;
}

/** Whether a string is longer than `bytes` in UTF-8, without encoding it where its length alone decides. */
function isLongerThan(text: string, bytes: number): boolean {
  if (text.length > bytes) return true;
  return text.length * 3 > bytes && new TextEncoder().encode(text).length > bytes;
}

function tooMuch(what: string, limit: string, allowed: number, unit: string): LimitError {
  return new LimitError(
    `${what} the ${allowed} ${unit} allowed; raise limits.${limit} if this server is right`.replace(
      "  ",
      " ",
    ),
    limit,
    allowed,
  );
}

function wrongType(field: string, wanted: string, value: unknown): ProtocolViolationError {
  const got = value === undefined ? "is missing" : `is ${typeName(value)}`;
  return violation(field, `it must be ${wanted} and ${got}`);
}

function violation(field: string, why: string): ProtocolViolationError {
  return new ProtocolViolationError(
    `The server broke the protocol at ${clip(field, 200)}: ${why}. Nothing more was sent; the server has to be mended.`,
    field,
  );
}

/**
 * A text that is equal for equal questions, whatever the order of their keys; `requestState` is no part of it (MRTR-21).
 */
export function questionSignature(requests: readonly InputRequest[]): string {
  return canonical(
    requests.map(({ key, method, params }) => [key, method, params]).sort((a, b) => (a[0]! < b[0]! ? -1 : 1)),
  );
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    isObject(member)
      ? Object.keys(member)
          .sort()
          .map((key) => [key, member[key]])
      : member,
  );
}
