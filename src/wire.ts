/**
 * JSON-RPC frames as MCP uses them: decoding with strict shape checks, and the encoding of the few frames a client sends.
 *
 * Decoding parses once and copies nothing: the frame holds the parsed values themselves.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic#messages}
 */

import { showValue } from "./show.ts";

/** The JSON-RPC id of one exchange: a positive integer, minted by the engine, never used twice. */
export type WireId = number;

/** A JSON-RPC id as a peer may write it. The engine itself only ever sends integers. */
export type RpcId = string | number;

/** A JSON object whose keys are not known beforehand. */
export type JsonObject = Record<string, unknown>;

/** The `error` member of a JSON-RPC error response. */
export interface RpcErrorObject {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** A message that expects no answer. */
export interface NotificationFrame {
  readonly kind: "notification";
  readonly method: string;
  readonly params: JsonObject | undefined;
}

/** A successful answer. */
export interface ResultFrame {
  readonly kind: "result";
  readonly id: RpcId;
  readonly result: JsonObject;
}

/** An answer that is an error. `id` is null or absent when the peer could not read ours. */
export interface ErrorFrame {
  readonly kind: "error";
  readonly id: RpcId | null | undefined;
  readonly error: RpcErrorObject;
}

/** Either kind of answer. */
export type ResponseFrame = ResultFrame | ErrorFrame;

/** A request of the peer. In this revision servers send none; it is reported, never answered (REQ-04). */
export interface PeerRequestFrame {
  readonly kind: "request";
  readonly id: RpcId | null;
  readonly method: string;
}

/** Something that is no JSON-RPC frame. `id` is there when it could be read, so that its exchange can fail at once. */
export interface BadFrame {
  readonly kind: "bad";
  readonly fault: string;
  readonly id: RpcId | undefined;
}

/** Anything that decoding can give. */
export type Frame = NotificationFrame | ResponseFrame | PeerRequestFrame | BadFrame;

/** Whether `value` is a JSON object: not null, not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Names the JSON type of a value, for messages: "null", "array", "object", "string", … */
export function typeName(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value;
}

function bad(fault: string, id?: unknown): BadFrame {
  return { kind: "bad", fault, id: typeof id === "string" || typeof id === "number" ? id : undefined };
}

/** Decodes the text of one message. Never throws: what is wrong with a frame is told in its `fault` (REQ-03). */
export function decodeFrame(text: string): Frame {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return bad(`the message is not JSON${whereIn(error)}`);
  }
  return readFrame(value);
}

/** Where JSON.parse gave up. The rest of its message quotes the text, which may hold what no error may hold (SAF-01). */
function whereIn(error: unknown): string {
  const position = / at position \d+/.exec((error as Error).message)?.[0];
  return position === undefined ? "" : `: it cannot be parsed${position}`;
}

/** Reads a parsed JSON value as a frame. See {@link decodeFrame}. */
export function readFrame(value: unknown): Frame {
  if (!isObject(value)) return bad(`the message must be a JSON object, not ${typeName(value)}`);
  const { id, method, result, error } = value;
  if (value.jsonrpc !== "2.0") {
    return bad(
      value.jsonrpc === undefined
        ? '"jsonrpc" is missing; it must be "2.0"'
        : `"jsonrpc" must be "2.0", not ${showValue(value.jsonrpc)}`,
      id,
    );
  }
  if (method !== undefined) return readCall(value, method);
  if (result !== undefined) {
    if (error !== undefined) return bad('the message has both "result" and "error"', id);
    if (typeof id !== "number" && typeof id !== "string") {
      return bad(
        `a result must carry the id of its request, not ${id === undefined ? "none" : typeName(id)}`,
      );
    }
    if (!isObject(result)) return bad(`"result" must be an object, not ${typeName(result)}`, id);
    return { kind: "result", id, result };
  }
  if (error === undefined) return bad('the message has neither "method", "result" nor "error"', id);
  return readError(id, error);
}

function readCall(value: JsonObject, method: unknown): Frame {
  const { id, params } = value;
  if (typeof method !== "string") return bad(`"method" must be a string, not ${typeName(method)}`);
  if (value.result !== undefined || value.error !== undefined) {
    return bad('the message has a "method" and an answer at once', id);
  }
  if (id !== undefined) {
    if (id !== null && typeof id !== "number" && typeof id !== "string") {
      return bad(`"id" must be a string or a number, not ${typeName(id)}`);
    }
    return { kind: "request", id, method };
  }
  if (params !== undefined && !isObject(params)) {
    return bad(`"params" must be an object, not ${typeName(params)}`);
  }
  return { kind: "notification", method, params };
}

function readError(id: unknown, error: unknown): Frame {
  if (id !== undefined && id !== null && typeof id !== "number" && typeof id !== "string") {
    return bad(`"id" must be a string or a number, not ${typeName(id)}`);
  }
  if (!isObject(error)) return bad(`"error" must be an object, not ${typeName(error)}`, id);
  if (!Number.isInteger(error.code)) {
    return bad(`"error.code" must be an integer, not ${showValue(error.code)}`, id);
  }
  if (typeof error.message !== "string") {
    return bad(`"error.message" must be a string, not ${typeName(error.message)}`, id);
  }
  return { kind: "error", id, error: error as unknown as RpcErrorObject };
}

/**
 * Encodes a `notifications/cancelled` for a shared channel (CAN-02).
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/cancellation}
 */
export function encodeCancelled(requestId: WireId, reason: string): string {
  return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${requestId},"reason":${JSON.stringify(reason)}}}`;
}

/**
 * Decodes bytes as UTF-8, strictly: a byte sequence that is not UTF-8 throws a TypeError.
 * MCP requires UTF-8 on every transport. {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/transports#messages}
 */
export function decodeUtf8(bytes: Uint8Array): string {
  return STRICT_UTF8.decode(bytes);
}

const STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true });
