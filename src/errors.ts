/**
 * Every error the engine can give. Switch on `code`; it is a string union and the same across copies of this package.
 *
 * A message says what happened, what was expected, and what the host can do. Tokens, `requestState` and input contents
 * are never part of an error (SAF-01).
 */

import type { AuthChallenge, Delivery } from "./transport.ts";

/** The stable codes. */
export type ErrorCode =
  | "rpc"
  | "capability-required"
  | "unsupported-version"
  | "connect"
  | "connection-lost"
  | "http-status"
  | "frame"
  | "legacy-peer"
  | "protocol-violation"
  | "input"
  | "input-repeated"
  | "round-limit"
  | "suspended"
  | "schema"
  | "timeout"
  | "cancelled"
  | "limit"
  | "closed"
  | "usage";

/** Where an operation stood when its error arose. */
export interface OperationInfo {
  readonly id: number;
  readonly method: string;
  readonly round: number;
  readonly attempt: number;
  /** The JSON-RPC id of the attempt in question; absent before the first was sent. */
  readonly wireId?: number;
}

/** What marks the instances of a class in every copy of this package. */
const BRANDS = new Map<unknown, symbol>();

/** The base of every error of this package. */
export abstract class RallyError extends Error {
  abstract readonly code: ErrorCode;
  /** The operation that failed. Absent on errors that belong to no operation. */
  operation?: OperationInfo;

  constructor(message: string, options?: { cause?: unknown }) {
    super(
      message,
      options !== undefined && options.cause !== undefined ? { cause: options.cause } : undefined,
    );
  }

  /** Whether `value` is an error of this package, of whichever copy of it; `instanceof` tells the same. */
  static is(value: unknown): value is RallyError {
    return typeof value === "object" && value !== null && BRANDS.get(RallyError)! in value;
  }
}

/**
 * What `instanceof` does for these classes: it holds across copies of this package too, a host's own and the one of a library
 * that made its transport. A subclass made elsewhere has no brand, and is told by its prototype as ever.
 */
function hasInstance(this: unknown, value: unknown): boolean {
  const brand = BRANDS.get(this);
  if (brand === undefined)
    return Function.prototype[Symbol.hasInstance].call(this as typeof RallyError, value);
  return typeof value === "object" && value !== null && brand in value;
}

/** The peer answered with a JSON-RPC error. The only error that comes from the peer itself. */
export class RpcError extends RallyError {
  readonly code: ErrorCode = "rpc";
  /** The integer `error.code` of the answer. */
  readonly rpcCode: number;
  /** `error.data` of the answer, as it came. */
  readonly data: unknown;
  /** The HTTP status that carried it, over HTTP. */
  readonly status?: number;

  constructor(message: string, rpcCode: number, data?: unknown, status?: number) {
    super(message);
    this.rpcCode = rpcCode;
    this.data = data;
    if (status !== undefined) this.status = status;
  }
}

/** -32021: the server needs a capability that this client did not declare. Never retried (CAP-01). */
export class CapabilityRequiredError extends RpcError {
  override readonly code = "capability-required";
  /** The capabilities the server asks for, as it listed them. */
  readonly requiredCapabilities: unknown;

  constructor(message: string, data: unknown, requiredCapabilities: unknown, status?: number) {
    super(message, -32021, data, status);
    this.requiredCapabilities = requiredCapabilities;
  }
}

/** -32022, or a discovery, left no protocol version that both sides speak (VER-01). */
export class UnsupportedVersionError extends RpcError {
  override readonly code = "unsupported-version";
  /** What the server said it speaks. */
  readonly supported: readonly string[];
  /** What this client speaks. */
  readonly wanted: readonly string[];

  constructor(message: string, supported: readonly string[], wanted: readonly string[], status?: number) {
    super(message, -32022, { supported }, status);
    this.supported = supported;
    this.wanted = wanted;
  }
}

/** The exchange brought no valid response. `delivery` says whether the request can have run. */
export abstract class TransportError extends RallyError {
  /**
   * Whether the call can have run. It speaks of the whole operation: once an attempt was lost that may have run, it stays
   * "unknown" whatever became of the attempts after it.
   */
  delivery: Delivery;
  /** Why the attempt was not issued again, such as: the policy is "never". */
  notReissued?: string;

  constructor(message: string, delivery: Delivery, options?: { cause?: unknown }) {
    super(message, options);
    this.delivery = delivery;
  }
}

/** The peer could not be reached: refused, unknown host, TLS, a command that does not exist, a refused upgrade. */
export class ConnectError extends TransportError {
  readonly code = "connect";
  /** The HTTP status of a refused WebSocket upgrade. */
  readonly status?: number;
  /** True when trying again cannot help: a command that does not exist, a refused upgrade. It is not issued again then. */
  readonly permanent: boolean;

  constructor(
    message: string,
    options?: { cause?: unknown; delivery?: Delivery; status?: number; permanent?: boolean },
  ) {
    super(message, options?.delivery ?? "not-sent", options);
    this.permanent = options?.permanent ?? false;
    if (options?.status !== undefined) this.status = options.status;
  }
}

/** The stream, socket or process ended before the answer came. */
export class ConnectionLostError extends TransportError {
  readonly code = "connection-lost";
  /** stdio: the exit code of the process, when it exited. */
  readonly exitCode?: number;
  /** stdio: the signal that ended the process. */
  readonly signal?: string;
  /** stdio: the end of what the process wrote to stderr. */
  readonly stderr?: string;
  /** WebSocket: the close code. */
  readonly closeCode?: number;

  constructor(
    message: string,
    delivery: Delivery,
    details: {
      cause?: unknown;
      exitCode?: number;
      signal?: string;
      stderr?: string;
      closeCode?: number;
    } = {},
  ) {
    super(message, delivery, details);
    if (details.exitCode !== undefined) this.exitCode = details.exitCode;
    if (details.signal !== undefined) this.signal = details.signal;
    if (details.stderr !== undefined) this.stderr = details.stderr;
    if (details.closeCode !== undefined) this.closeCode = details.closeCode;
  }
}

/** The HTTP status says no, and the body is no JSON-RPC error. */
export class HttpStatusError extends TransportError {
  readonly code = "http-status";
  readonly status: number;
  /** The response headers that are safe to show. */
  readonly headers: Readonly<Record<string, string>>;
  /** The beginning of the body as text. */
  readonly body: string;
  /** The challenge of a 401 or 403. */
  readonly challenge?: AuthChallenge;

  constructor(
    message: string,
    delivery: Delivery,
    details: {
      status: number;
      headers: Readonly<Record<string, string>>;
      body: string;
      challenge?: AuthChallenge | undefined;
      cause?: unknown;
    },
  ) {
    super(message, delivery, details);
    this.status = details.status;
    this.headers = details.headers;
    this.body = details.body;
    if (details.challenge !== undefined) this.challenge = details.challenge;
  }
}

/** What came is not a frame that can answer this request. `delivery` is "unknown": the peer may have run it. */
export class FrameError extends TransportError {
  readonly code = "frame";

  constructor(message: string, options?: { cause?: unknown; delivery?: Delivery }) {
    super(message, options?.delivery ?? "unknown", options);
  }
}

/** The server speaks only the older revisions that begin with `initialize`. */
export class LegacyPeerError extends RallyError {
  readonly code = "legacy-peer";
  /** HTTP: the status that told. */
  readonly status?: number;
  /** HTTP: the beginning of the body. */
  readonly body?: string;

  constructor(message: string, details: { cause?: unknown; status?: number; body?: string } = {}) {
    super(message, details);
    if (details.status !== undefined) this.status = details.status;
    if (details.body !== undefined) this.body = details.body;
  }
}

/** The server broke the protocol in a way that leaves no meaning to act on. */
export class ProtocolViolationError extends RallyError {
  readonly code = "protocol-violation";
  /** The field at fault, as a path: `result.inputRequests["a"].method`. */
  readonly field: string;

  constructor(message: string, field: string, options?: { cause?: unknown }) {
    super(message, options);
    this.field = field;
  }
}

/** An input that the server asked for could not be given: no handler, a handler that failed, or an answer that does not fit. */
export class InputError extends RallyError {
  readonly code = "input";
  /** The server's key for the input request. */
  readonly key: string;
  /** The method of the input request, such as `elicitation/create`. */
  readonly method: string;
  /** What was at fault inside the handler's answer, as a path; absent when it is not about a value. */
  readonly path?: string;

  constructor(
    message: string,
    key: string,
    method: string,
    details: { cause?: unknown; path?: string } = {},
  ) {
    super(message, details);
    this.key = key;
    this.method = method;
    if (details.path !== undefined) this.path = details.path;
  }
}

/** The user said no, and the server asked the identical question again, and again (MRTR-21). */
export class InputRepeatedError extends RallyError {
  readonly code = "input-repeated";
  /** The keys of the question. */
  readonly keys: readonly string[];
  /** How many times it was asked again. */
  readonly repeats: number;

  constructor(message: string, keys: readonly string[], repeats: number) {
    super(message);
    this.keys = keys;
    this.repeats = repeats;
  }
}

/** Errors that leave a way to go on: `continuation` is a getter, so it is never printed or serialised by accident. */
abstract class ContinuationError extends RallyError {
  readonly #continuation: unknown;

  constructor(message: string, continuation: unknown) {
    super(message);
    this.#continuation = continuation;
  }

  /** Plain JSON for `client.resume`. It holds the server's state and the call's arguments: treat it as a secret. */
  get continuation(): unknown {
    return this.#continuation;
  }
}

/** The server went on asking until `maxRounds` answers were used up (MRTR-11). */
export class RoundLimitError extends ContinuationError {
  readonly code = "round-limit";
  /** How many `input_required` answers were honoured. */
  readonly rounds: number;
  /** The keys of the last question; empty when it was state only. */
  readonly keys: readonly string[];

  constructor(message: string, rounds: number, keys: readonly string[], continuation: unknown) {
    super(message, continuation);
    this.rounds = rounds;
    this.keys = keys;
  }
}

/** The call needs an input that was left to the host (`"suspend"`). Answer it with `client.resume(error.continuation, …)`. */
export class SuspendedError extends ContinuationError {
  readonly code = "suspended";
  /** The keys that still want an answer. */
  readonly keys: readonly string[];

  constructor(message: string, keys: readonly string[], continuation: unknown) {
    super(message, continuation);
    this.keys = keys;
  }
}

/** A schema cannot be used, or a value does not satisfy one. */
export class SchemaError extends RallyError {
  readonly code = "schema";
  /** The tool whose schema or output it is, when it is a tool's. */
  readonly tool?: string;
  /** Where in the value, or in the schema, the fault lies. */
  readonly path: string;
  readonly #result: unknown;

  constructor(
    message: string,
    path: string,
    details: { cause?: unknown; tool?: string; result?: unknown } = {},
  ) {
    super(message, details);
    this.path = path;
    if (details.tool !== undefined) this.tool = details.tool;
    this.#result = details.result;
  }

  /** The tool's result, unchecked, where the call has run and its output is at fault. A getter, so it is never printed by accident. */
  get result(): unknown {
    return this.#result;
  }
}

/** Where an operation's time went, in milliseconds. */
export interface TimeSpent {
  readonly totalMs: number;
  /** Waiting for the peer, all attempts together. */
  readonly wireMs: number;
  /** Waiting for input handlers. */
  readonly inputMs: number;
  /** Pausing before an attempt. */
  readonly pauseMs: number;
  /** Since the last sign of life (the request sent, or the last notification of the attempt). */
  readonly silentMs: number;
}

/** A time bound passed. Purely local: it is never shaped like an answer of the server. */
export class TimeoutError extends RallyError {
  readonly code = "timeout";
  readonly scope: "attempt" | "operation" | "input";
  /** The bound that passed, in milliseconds. */
  readonly limitMs: number;
  readonly spent: TimeSpent;

  constructor(message: string, scope: "attempt" | "operation" | "input", limitMs: number, spent: TimeSpent) {
    super(message);
    this.scope = scope;
    this.limitMs = limitMs;
    this.spent = spent;
  }
}

/** The caller's signal aborted. `cause` is the caller's reason. */
export class CancelledError extends RallyError {
  readonly code = "cancelled";
}

/** A bound of the client passed: message size, input requests, request state, pending operations. */
export class LimitError extends TransportError {
  readonly code = "limit";
  /** The name of the option: "messageBytes", "inputRequests", … */
  readonly limit: string;
  readonly allowed: number;

  constructor(message: string, limit: string, allowed: number, delivery: Delivery = "unknown") {
    super(message, delivery);
    this.limit = limit;
    this.allowed = allowed;
  }
}

/** The client or the transport was closed. */
export class ClosedError extends TransportError {
  readonly code = "closed";

  constructor(message: string, delivery: Delivery = "not-sent") {
    super(message, delivery);
  }
}

/** The host called the API in a way that cannot work; nothing was sent. */
export class UsageError extends RallyError {
  readonly code = "usage";
  /** The argument or option at fault, as a path. */
  readonly path?: string;

  constructor(message: string, details: { cause?: unknown; path?: string } = {}) {
    super(message, details);
    if (details.path !== undefined) this.path = details.path;
  }
}

// The names are written out, as keys, since a minifier leaves of a class's own name a letter. They are on the prototypes,
// where the names of the language's own errors are.
for (const [name, errorClass] of Object.entries({
  RallyError,
  RpcError,
  CapabilityRequiredError,
  UnsupportedVersionError,
  TransportError,
  ConnectError,
  ConnectionLostError,
  HttpStatusError,
  FrameError,
  LegacyPeerError,
  ProtocolViolationError,
  InputError,
  InputRepeatedError,
  RoundLimitError,
  SuspendedError,
  SchemaError,
  TimeoutError,
  CancelledError,
  LimitError,
  ClosedError,
  UsageError,
})) {
  const brand = Symbol.for(`mcp-rally.${name}`);
  BRANDS.set(errorClass, brand);
  Object.defineProperty(errorClass.prototype, brand, { value: true });
  Object.defineProperty(errorClass.prototype, "name", { value: name, configurable: true, writable: true });
}
Object.defineProperty(RallyError, Symbol.hasInstance, { value: hasInstance });
