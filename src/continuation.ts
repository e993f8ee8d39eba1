/**
 * The plain-JSON snapshot of a suspended operation: enough to resume it later, in another process, over another transport
 * to the same server (MRTR-20). It is bound to the peer's name. It holds the server's state and the call's arguments: a secret.
 */

import { ProtocolViolationError, UsageError } from "./errors.ts";
import { type InputRequest, readQuestion } from "./input-required.ts";
import { showValue } from "./show.ts";
import type { MirroredField } from "./transport.ts";
import { isObject, type JsonObject, typeName } from "./wire.ts";

/** A suspended operation as plain JSON. `schemas/continuation.json` describes it. */
export interface Continuation {
  readonly version: 1;
  /** The name of the server it belongs to. */
  readonly peer: string;
  readonly method: string;
  /** The original params as encoded text, without braces: spliced into the retry as it is. */
  readonly params: string;
  /** The tool, prompt or URI. */
  readonly name?: string;
  readonly mirrored?: readonly MirroredField[];
  /** How many `input_required` answers were honoured so far. */
  readonly rounds: number;
  /** The server's opaque state, echoed in the retry. */
  readonly requestState?: string;
  /** The input requests of the open round by key; absent when it was state only. */
  readonly inputRequests?: Readonly<
    Record<string, { readonly method: string; readonly params?: JsonObject }>
  >;
  /** Answers of the open round that are there already, by key. */
  readonly answers?: Readonly<Record<string, JsonObject>>;
}

/** What a continuation is written from. */
export interface ContinuationParts {
  readonly peer: string;
  readonly method: string;
  readonly params: string;
  readonly name: string | undefined;
  readonly mirrored: readonly MirroredField[];
  readonly rounds: number;
  readonly requestState: string | undefined;
  readonly requests: readonly InputRequest[] | undefined;
  readonly answers: ReadonlyMap<string, JsonObject> | undefined;
}

/** Writes a continuation: a fresh plain object that shares nothing with the operation. */
export function writeContinuation(parts: ContinuationParts): Continuation {
  const { name, mirrored, requestState, requests, answers } = parts;
  return structuredClone({
    version: 1,
    peer: parts.peer,
    method: parts.method,
    params: parts.params,
    ...(name !== undefined && { name }),
    ...(mirrored.length > 0 && { mirrored: mirrored.map(({ name, value }) => ({ name, value })) }),
    rounds: parts.rounds,
    ...(requestState !== undefined && { requestState }),
    ...(requests !== undefined && {
      inputRequests: ownKeys(requests.map(({ key, method, params }) => [key, { method, params }])),
    }),
    ...(answers !== undefined && answers.size > 0 && { answers: ownKeys([...answers]) }),
  } as Continuation);
}

/** An object of own properties, also for keys such as `__proto__`. */
export function ownKeys<T>(entries: readonly (readonly [string, T])[]): Record<string, T> {
  return Object.fromEntries(entries) as Record<string, T>;
}

/** A continuation that was read and found whole. */
export interface ReadContinuation {
  readonly continuation: Continuation;
  readonly requests: readonly InputRequest[] | undefined;
}

/**
 * Reads a continuation for `peer`. One that is damaged, of an unknown version or of another peer is a {@link UsageError};
 * nothing is sent.
 */
export function readContinuation(value: unknown, peer: string): ReadContinuation {
  if (!isObject(value)) throw damaged("continuation", `it must be an object, not ${typeName(value)}`);
  if (value.version !== 1) {
    throw new UsageError(
      `the continuation is of version ${showValue(value.version, 20)}, and this package reads version 1; resume it with the version that wrote it`,
      { path: "continuation.version" },
    );
  }
  for (const field of ["peer", "method", "params"] as const) {
    if (typeof value[field] !== "string") throw wrong(field, "a string", value[field]);
  }
  for (const field of ["name", "requestState"] as const) {
    if (value[field] !== undefined && typeof value[field] !== "string")
      throw wrong(field, "a string", value[field]);
  }
  if (!Number.isSafeInteger(value.rounds) || (value.rounds as number) < 0) {
    throw wrong("rounds", "a whole number", value.rounds);
  }
  checkParams(value.params as string);
  checkMirrored(value.mirrored);
  const requests = checkRequests(value);
  checkAnswers(value.answers, requests);
  if (value.peer !== peer) {
    throw new UsageError(
      `the continuation belongs to the server "${value.peer}", and this client talks to "${peer}"; resume it there, or give both clients the same \`peer\` name if they are the same server`,
      { path: "continuation.peer" },
    );
  }
  return { continuation: value as unknown as Continuation, requests };
}

function checkParams(text: string): void {
  let params: unknown;
  try {
    params = JSON.parse(`{${text}}`);
  } catch (cause) {
    throw damaged("continuation.params", "it is not the inner text of a JSON object", cause);
  }
  if (!isObject(params)) throw damaged("continuation.params", "it is not the inner text of a JSON object");
  for (const key of ["_meta", "inputResponses", "requestState"]) {
    if (Object.hasOwn(params, key))
      throw damaged("continuation.params", `it holds the reserved key "${key}"`);
  }
}

function checkMirrored(value: unknown): void {
  if (value === undefined) return;
  if (!Array.isArray(value)) throw wrong("mirrored", "an array", value);
  for (const field of value) {
    if (!isObject(field) || typeof field.name !== "string" || typeof field.value !== "string") {
      throw damaged("continuation.mirrored", "each entry must have a name and a value");
    }
  }
}

function checkRequests(value: JsonObject): readonly InputRequest[] | undefined {
  if (value.inputRequests === undefined) return undefined;
  const question = readQuestion(
    { inputRequests: value.inputRequests },
    { inputRequests: Number.POSITIVE_INFINITY, requestStateBytes: Number.POSITIVE_INFINITY },
  );
  if (question instanceof Error) {
    const field =
      question instanceof ProtocolViolationError ? question.field.replace("result.", "") : "inputRequests";
    throw damaged(`continuation.${field}`, "it is no valid input request", question);
  }
  return question.requests;
}

function checkAnswers(value: unknown, requests: readonly InputRequest[] | undefined): void {
  if (value === undefined) return;
  if (!isObject(value)) throw wrong("answers", "an object", value);
  for (const key of Object.keys(value)) {
    if (!requests?.some((request) => request.key === key)) {
      throw damaged("continuation.answers", `the key ${JSON.stringify(key)} was not asked`);
    }
    if (!isObject(value[key])) throw wrong(`answers[${JSON.stringify(key)}]`, "an object", value[key]);
  }
}

function wrong(field: string, wanted: string, value: unknown): UsageError {
  return damaged(`continuation.${field}`, `it must be ${wanted}, not ${typeName(value)}`);
}

function damaged(path: string, why: string, cause?: unknown): UsageError {
  return new UsageError(`the continuation is damaged at ${path}: ${why}; nothing was sent`, { path, cause });
}
