/**
 * The contract between the engine and a transport: types and prose, no code.
 *
 * In revision 2026-07-28 servers send no requests and clients send no responses, so an exchange is simple: one request
 * frame goes out, then come notifications and exactly one end, a response or a failure. A transport carries frames and
 * knows nothing of rounds, inputs or retries; the engine knows nothing of sockets. `mcp-rally/testing` has a suite,
 * `transportContract`, that checks every promise made here.
 */

import type { TransportError } from "./errors.ts";
import type { NotificationFrame, ResponseFrame, WireId } from "./wire.ts";

export type { NotificationFrame, ResponseFrame, WireId } from "./wire.ts";

/** One param of a call that a binding mirrors outside the body: `Mcp-Param-{name}` over HTTP (HDR-02). */
export interface MirroredField {
  /** The name part of the header, as the tool's `x-mcp-header` annotation gives it. */
  readonly name: string;
  /** The value before any header encoding. */
  readonly value: string;
}

/** What a transport needs to carry one attempt. */
export interface ExchangeRequest {
  readonly id: WireId;
  readonly method: string;
  /** The tool, prompt or URI that the request names, for methods that name one: `Mcp-Name` over HTTP. */
  readonly name?: string;
  /** The revision in the body's `_meta`; a header that mirrors it cannot differ. */
  readonly protocolVersion: string;
  /** The whole request frame, already encoded: one line of JSON without a newline. */
  readonly body: string;
  /** Fields to mirror. A shared channel ignores them. */
  readonly mirrored: readonly MirroredField[];
  /** The host's own value for this call, handed on to header and token functions. */
  readonly context?: unknown;
  /** The challenge that refused the attempt before this one: handed to the token function, so that it can do better. */
  readonly challenge?: AuthChallenge;
  /** A stream that stays open for long (`subscriptions/listen`): it should not occupy a pooled connection of calls. */
  readonly longLived?: boolean;
}

/** A 401 or 403, read but not acted upon: the engine fetches no URL that a challenge names. */
export interface AuthChallenge {
  readonly status: number;
  /** The scheme, in lower case: "bearer". Empty when the answer had no `WWW-Authenticate`. */
  readonly scheme: string;
  /** The auth-params: `error`, `scope`, `resource_metadata`, … */
  readonly params: Readonly<Record<string, string>>;
}

/** What came around a response: the HTTP status and the headers that are safe to show. */
export interface Envelope {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * What is known of a request that got no valid answer. It is all that a decision to issue it again needs.
 *
 * - `not-sent`: no byte of the request left; nothing can have happened.
 * - `rejected`: the peer answered that it did not run the request.
 * - `unknown`: the request left, and whether it ran cannot be told.
 */
export type Delivery = "not-sent" | "rejected" | "unknown";

/** The end of an exchange that brought no response. */
export interface ExchangeFailure {
  readonly delivery: Delivery;
  readonly error: TransportError;
  /** How long the peer asked us to wait, in milliseconds from now (`Retry-After`). */
  readonly retryAfterMs?: number;
  /** Set when the transport has a token function that may answer this challenge; the engine then tries once more. */
  readonly challenge?: AuthChallenge;
}

/**
 * Where a transport delivers one exchange. Grammar: `notification* (response | failure)`, each call on a fresh turn or in
 * the order of arrival, never before `exchange` has returned, nothing after the end, nothing after a cancel.
 */
export interface ExchangeSink {
  notification(frame: NotificationFrame): void;
  /** A result or a JSON-RPC error. The transport has checked that it answers this exchange. */
  response(frame: ResponseFrame, envelope?: Envelope): void;
  failure(failure: ExchangeFailure): void;
}

/** A running exchange. */
export interface Exchange {
  /**
   * Abandons the exchange in the transport's own way: HTTP closes the response stream, a shared channel sends
   * `notifications/cancelled` if the request was written and drops it if it was not. Idempotent; the sink is silent
   * afterwards. `silent` gives the exchange up without telling the peer.
   */
  cancel(reason: string, options?: { readonly silent?: boolean }): void;
}

/** The state of a shared channel, as one union a host can show. */
export type LinkState = "connecting" | "up" | "down" | "closed";

/** Things a peer did that harm no exchange. They become `wire.anomaly` events. */
export type AnomalyKind =
  | "bad-frame"
  | "late-response"
  | "unknown-id"
  | "unknown-token"
  | "peer-request"
  | "unexpected-cancel"
  | "unexpected-notification"
  | "progress-order"
  | "subscription-id"
  | "host-callback"
  | "transport-threw";

/** Bounds that a transport enforces on what it receives. */
export interface Limits {
  /** The largest message in bytes after decoding (gzip too). Default 16 MiB. */
  readonly messageBytes: number;
}

/** What a transport may tell the engine outside any exchange. */
export interface TransportHost {
  readonly limits: Limits;
  /** A notification that belongs to no exchange: only a shared channel has such. */
  notification(frame: NotificationFrame): void;
  link(state: LinkState, cause?: Error): void;
  anomaly(kind: AnomalyKind, detail: unknown): void;
}

/** A way to reach one peer. */
export interface Transport {
  /** The binding: "http", "stdio", "websocket", "memory", or a name of your own. */
  readonly name: string;
  /** Who is at the other end: origin and path, or the command. Never holds a secret. */
  readonly peer: string;
  /**
   * True when all exchanges share one channel. The engine then sends `server/discover` first on each link and holds the
   * other calls back until it is answered (VER-02). A link begins with `host.link("up")`.
   */
  readonly shared?: boolean;
  /**
   * The authorization that an exchange of this `context` runs under, as an opaque text that holds no secret: equal texts
   * mean that what one of them was given may be given to the other (CCH-01). Everything that can bear on it counts: the
   * whole URL, the token, the header fields. Undefined when it can't be told beforehand, as with a token function; then, and
   * without this method, private results are not cached. Called for every cacheable call, so it should be cheap.
   */
  partition?(context: unknown): string | undefined;
  /** Called once, before the first exchange. */
  attach(host: TransportHost): void;
  /** Starts an exchange. Never throws, and never calls the sink before it returns. */
  exchange(request: ExchangeRequest, sink: ExchangeSink): Exchange;
  /** Ends every exchange with a `ClosedError` failure, frees all resources, and resolves within a bounded time. */
  close(): Promise<void>;
}
