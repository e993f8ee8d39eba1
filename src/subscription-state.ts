/**
 * The life of one subscription as a pure reducer: `(state, event, rules) -> { state, effects }`.
 *
 * A listen stream is no operation: no answer is due, so nothing times out but the acknowledgment, and a loss is answered by
 * listening again under the same handle (SUB-01).
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions}
 */

import { ConnectError, ConnectionLostError, HttpStatusError, RallyError, TransportError } from "./errors.ts";
import { backoff } from "./reissue.ts";
import type { ExchangeFailure } from "./transport.ts";

/** How a subscription ended. */
export type SubscriptionEnd =
  /** `close()`, the signal, or a reader that left its loop. */
  | { readonly reason: "closed-by-host" }
  /** The whole client was closed. */
  | { readonly reason: "client-closed" }
  /** The server answered the listen request: an end in good order. */
  | { readonly reason: "graceful" }
  /** The server cancelled the listen request; `message` is what it said, if anything. */
  | { readonly reason: "server-cancelled"; readonly message?: string }
  /** The server refused, or it was lost more often than the rules allow. */
  | { readonly reason: "failed"; readonly error: RallyError };

/** When a lost subscription listens again. Times are in milliseconds. */
export interface RelistenRules {
  /** The pause after the first loss in a row, doubled for each further one, with jitter. Default 500. */
  readonly backoffMs: number;
  /** The longest pause. Default 30 000. */
  readonly maxMs: number;
  /** How long a stream must have stood for its loss to be the first in a row again. Default 10 000. */
  readonly stableMs: number;
  /** The most times in a row to listen again. Default 20, about six minutes; `Infinity` never gives up. */
  readonly max: number;
  /** The most times to listen again before the first acknowledgment: until then it fails as a call does. Default 2. */
  readonly firstMax: number;
}

/** The defaults of {@link RelistenRules}. */
export const DEFAULT_RELISTEN: RelistenRules = {
  backoffMs: 500,
  maxMs: 30_000,
  stableMs: 10_000,
  max: 20,
  firstMax: 2,
};

/** What a refusal can be answered with: another version, or a token that fits the challenge. */
export type ListenRecovery = "version" | "unauthorized" | "scope";

/**
 * Where a subscription stands:
 * - `opening`: a listen request is out, or waits for its link; the acknowledgment is due.
 * - `open`: acknowledged; changes come.
 * - `lost`: the stream is gone; after a pause the next listen request goes out.
 * - `closed`: over, for one reason.
 */
export type SubscriptionPhase =
  | { readonly at: "opening" }
  | { readonly at: "open"; readonly sinceMs: number }
  | { readonly at: "lost"; readonly delayMs: number }
  | { readonly at: "closed"; readonly end: SubscriptionEnd };

/** The whole state of one subscription. */
export interface SubscriptionState {
  readonly phase: SubscriptionPhase;
  /** Whether the server ever acknowledged. */
  readonly known: boolean;
  /** Losses in a row. */
  readonly losses: number;
  /** What was tried already for the listen request at hand: each once. */
  readonly recoveries: readonly ListenRecovery[];
}

/** What can happen to a subscription. */
export type SubscriptionEvent =
  | { readonly type: "acknowledged"; readonly nowMs: number }
  /** The stream is gone, or did not come to stand; listening again may help. */
  | {
      readonly type: "lost";
      readonly error: RallyError;
      readonly retryAfterMs?: number | undefined;
      readonly nowMs: number;
      /** A number in [0, 1) for the jitter. */
      readonly random: number;
    }
  /** The server refused, and there is something to answer that with. */
  | { readonly type: "recoverable"; readonly recovery: ListenRecovery; readonly error: RallyError }
  /** The pause is over. */
  | { readonly type: "timer" }
  | { readonly type: "end"; readonly end: SubscriptionEnd };

/** What is to be done after a step. */
export type SubscriptionEffect = "listen" | "pause" | "settle";

/** The outcome of a step. */
export interface SubscriptionStep {
  readonly state: SubscriptionState;
  readonly effects: readonly SubscriptionEffect[];
}

/** The state of a subscription whose first listen request is about to go out. */
export const NEW_SUBSCRIPTION: SubscriptionState = {
  phase: { at: "opening" },
  known: false,
  losses: 0,
  recoveries: [],
};

const NOTHING: readonly SubscriptionEffect[] = [];

/** Takes one step. After `closed` nothing changes any more, so there is one end however many ways it was told. */
export function stepSubscription(
  state: SubscriptionState,
  event: SubscriptionEvent,
  rules: RelistenRules,
): SubscriptionStep {
  const { phase } = state;
  if (phase.at === "closed") return { state, effects: NOTHING };
  switch (event.type) {
    case "acknowledged":
      if (phase.at !== "opening") return { state, effects: NOTHING };
      return {
        state: { ...state, phase: { at: "open", sinceMs: event.nowMs }, known: true, recoveries: [] },
        effects: NOTHING,
      };
    case "lost":
      return lose(state, event, rules);
    case "recoverable": {
      const { recovery, error } = event;
      if (state.recoveries.includes(recovery)) return settle(state, { reason: "failed", error });
      const recoveries = [...state.recoveries, recovery];
      return { state: { ...state, phase: { at: "opening" }, recoveries }, effects: ["listen"] };
    }
    case "timer":
      if (phase.at !== "lost") return { state, effects: NOTHING };
      return { state: { ...state, phase: { at: "opening" }, recoveries: [] }, effects: ["listen"] };
    case "end":
      return settle(state, event.end);
  }
}

function lose(
  state: SubscriptionState,
  event: Extract<SubscriptionEvent, { type: "lost" }>,
  rules: RelistenRules,
): SubscriptionStep {
  const { phase } = state;
  const stood = phase.at === "open" && event.nowMs - phase.sinceMs >= rules.stableMs;
  const losses = (stood ? 0 : state.losses) + 1;
  const most = state.known ? rules.max : Math.min(rules.max, rules.firstMax);
  if (losses > most) return settle(state, { reason: "failed", error: event.error });
  const pause = backoff(rules.backoffMs, losses - 1, event.random, rules.maxMs);
  const delayMs = Math.max(pause, event.retryAfterMs ?? 0);
  return { state: { ...state, phase: { at: "lost", delayMs }, losses }, effects: ["pause"] };
}

function settle(state: SubscriptionState, end: SubscriptionEnd): SubscriptionStep {
  return { state: { ...state, phase: { at: "closed", end } }, effects: ["settle"] };
}

/** Statuses below 500 that speak of time or load, not of the request. */
const PASSING_STATUSES: ReadonlySet<number> = new Set([408, 425, 429]);

/** WebSocket close codes after which the transport opens no further link (WS-02). */
const LASTING_CLOSE_CODES: ReadonlySet<number> = new Set([1002, 1003, 1007, 1008, 1009]);

/**
 * Whether the failure of a listen exchange would only be met again. Gives the error to close with, or undefined for a loss.
 *
 * @param acknowledged whether this exchange had been acknowledged: a stream that stood and then broke may stand again
 */
export function lastingError(failure: ExchangeFailure, acknowledged: boolean): RallyError | undefined {
  const { error, delivery } = failure;
  const { cause } = error;
  // What is no transport error (an old server, no common version, a wrong option) comes as the cause of one.
  if (error.code === "connect" && RallyError.is(cause) && !(cause instanceof TransportError)) return cause;
  if (error.code === "closed") return error;
  if (error instanceof ConnectError || error instanceof HttpStatusError) {
    const { status } = error;
    if (status !== undefined) {
      const refused = status >= 300 && status < 500 && !PASSING_STATUSES.has(status);
      return refused && failure.retryAfterMs === undefined ? error : undefined;
    }
  }
  if (error instanceof ConnectionLostError && LASTING_CLOSE_CODES.has(error.closeCode ?? 0)) return error;
  if (delivery === "rejected" && failure.retryAfterMs === undefined) return error;
  const unusable = error.code === "frame" || error.code === "limit";
  return unusable && !acknowledged && delivery !== "not-sent" ? error : undefined;
}
