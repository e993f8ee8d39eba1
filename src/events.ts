/**
 * What the engine tells those who watch it: one union, through `onEvent` and, in Node, the diagnostics channel
 * `mcp-rally`. No event holds a token, a `requestState` or the content of an input (SAF-01).
 */

import type { AnomalyKind, Delivery, LinkState } from "./transport.ts";
import type { WireId } from "./wire.ts";

interface Stamped {
  /** Monotonic milliseconds, as `performance.now()`. */
  readonly atMs: number;
}

interface OfOperation extends Stamped {
  readonly operationId: number;
  readonly method: string;
}

interface OfAttempt extends OfOperation {
  readonly round: number;
  readonly attempt: number;
  readonly wireId: WireId;
}

/** How an attempt ended. */
export type AttemptOutcome = "complete" | "input_required" | "error" | "failure" | "timeout" | "cancelled";

/** How an operation ended. */
export type OperationOutcome = "succeeded" | "suspended" | "failed" | "cancelled";

/** Every event. Switch on `type`. */
export type RallyEvent =
  | ({ readonly type: "operation.started"; readonly name?: string } & OfOperation)
  | ({
      readonly type: "operation.ended";
      readonly outcome: OperationOutcome;
      /** The error's code, unless it succeeded or was suspended. */
      readonly code?: string;
      readonly rounds: number;
      readonly attempts: number;
      readonly ms: number;
    } & OfOperation)
  | ({ readonly type: "operation.late"; readonly what: string } & OfOperation)
  | ({ readonly type: "round.started"; readonly round: number } & OfOperation)
  | ({ readonly type: "attempt.sent"; readonly characters: number } & OfAttempt)
  | ({ readonly type: "attempt.notified"; readonly notification: string } & OfAttempt)
  | ({
      readonly type: "attempt.ended";
      readonly outcome: AttemptOutcome;
      readonly ms: number;
      /** error: the JSON-RPC code. */
      readonly rpcCode?: number;
      /** failure: the error's code and what is known of the request. */
      readonly code?: string;
      readonly delivery?: Delivery;
    } & OfAttempt)
  | ({
      readonly type: "input.requested";
      readonly round: number;
      readonly key: string;
      readonly inputMethod: string;
    } & OfOperation)
  | ({
      readonly type: "input.answered";
      readonly round: number;
      readonly key: string;
      /** elicitation: accept, decline or cancel; otherwise "answered". "failed" and "left" when there is no answer. */
      readonly answer: string;
      readonly ms: number;
    } & OfOperation)
  | ({ readonly type: "link.changed"; readonly state: LinkState; readonly cause?: Error } & Stamped)
  | ({ readonly type: "cache.hit"; readonly method: string; readonly ageMs: number } & Stamped)
  | ({ readonly type: "cache.stored"; readonly method: string; readonly ttlMs: number } & Stamped)
  | ({ readonly type: "cache.evicted"; readonly method: string; readonly entries: number } & Stamped)
  | ({ readonly type: "tool.rejected"; readonly tool: string; readonly reason: string } & Stamped)
  | ({ readonly type: "output.unchecked"; readonly tool: string; readonly reason: string } & Stamped)
  | ({ readonly type: "list.stopped"; readonly method: string; readonly reason: string } & Stamped)
  | ({
      readonly type: "subscription.changed";
      /** The subscription's own number, the same however often it listens again. */
      readonly subscriptionId: number;
      readonly state: "opening" | "open" | "lost" | "closed";
      /** opening and open: the id of the listen request, which the protocol calls the subscription id. */
      readonly wireId?: WireId;
      /** open: what the server did not acknowledge. */
      readonly refused?: readonly string[];
      /** lost: the pause before the next listen request. */
      readonly delayMs?: number;
      /** closed: why. */
      readonly reason?: string;
      /** lost, and closed as failed: the error's code. */
      readonly code?: string;
    } & Stamped)
  | ({ readonly type: "wire.anomaly"; readonly kind: AnomalyKind; readonly detail: unknown } & Stamped);

/** The part of Node's diagnostics channel that is used. */
interface DiagnosticsChannel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

/** The name of the diagnostics channel. */
export const DIAGNOSTICS_CHANNEL = "mcp-rally";

/** Hands events to the host's `onEvent` and to the diagnostics channel. */
export class EventBus {
  readonly #listener: ((event: RallyEvent) => void) | undefined;
  #channel: DiagnosticsChannel | undefined;

  constructor(listener: ((event: RallyEvent) => void) | undefined) {
    this.#listener = listener;
  }

  /** Whether anyone listens; where it is false, callers do not build the event at all. */
  get watched(): boolean {
    return this.#listener !== undefined || this.#diagnostics.hasSubscribers;
  }

  /** Publishes one event. A listener that throws is the host's affair and stops nothing (SAF-02). */
  publish(event: RallyEvent): void {
    if (this.#listener !== undefined) callHost(this.#listener, event);
    if (this.#diagnostics.hasSubscribers) this.#diagnostics.publish(event);
  }

  /** Taken when it is first asked for: a client that makes no call does not need it. */
  get #diagnostics(): DiagnosticsChannel {
    this.#channel ??= diagnosticsChannel();
    return this.#channel;
  }
}

/**
 * Calls a function of the host that has no say in what happens next. If it throws, or returns a promise that rejects, the
 * engine goes on: an observer's fault must not change the outcome of a call.
 */
export function callHost<A extends unknown[]>(callback: (...args: A) => unknown, ...args: A): void {
  try {
    const returned = callback(...args) as { then?: unknown } | null | undefined;
    // Not only a Promise of this realm: whatever can be awaited can be rejected.
    if (typeof returned?.then === "function") returned.then(ignore, ignore);
  } catch {
    // Nothing to tell it to: the listener that failed is the one that would be told.
  }
}

function ignore(): void {}

const NO_CHANNEL: DiagnosticsChannel = { hasSubscribers: false, publish: ignore };

/** `node:diagnostics_channel` where there is one; `src/` itself imports no `node:` module, so it also runs in a browser. */
function diagnosticsChannel(): DiagnosticsChannel {
  const runtime = (globalThis as { process?: { getBuiltinModule?: (id: string) => unknown } }).process;
  const module = runtime?.getBuiltinModule?.("node:diagnostics_channel") as
    | { channel(name: string): DiagnosticsChannel }
    | undefined;
  return module?.channel(DIAGNOSTICS_CHANNEL) ?? NO_CHANNEL;
}
