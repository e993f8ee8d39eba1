/** What it means for a subscription that a listen request has ended, by a response or by a failure. */

import { rpcError } from "./engine-errors.ts";
import type { RallyError } from "./errors.ts";
import { LISTEN, type Listen } from "./listen-request.ts";
import { type Negotiation, recoveryFor } from "./negotiation.ts";
import { resultFault } from "./subscription-frames.ts";
import { lastingError, type SubscriptionEvent } from "./subscription-state.ts";
import type { Envelope, ExchangeFailure, ResponseFrame } from "./transport.ts";

/** The subscription is over, or there is something to answer a refusal with. */
export type ListenEnd = Extract<SubscriptionEvent, { type: "end" | "recoverable" }>;

/** Judges a response: a result ends the subscription, and an error refuses it. */
export function judgeResponse(
  listen: Listen,
  frame: ResponseFrame,
  envelope: Envelope | undefined,
  negotiation: Negotiation,
): ListenEnd {
  if (frame.kind === "result") {
    const fault = resultFault(frame.result);
    return fault === undefined ? { type: "end", end: { reason: "graceful" } } : failed(fault);
  }
  const { status } = envelope ?? {};
  const legacy = negotiation.judgeErrorFrame(frame, status, frame.id === listen.wireId);
  if (legacy !== undefined) return failed(legacy);
  const error = rpcError(frame.error, status);
  if (recoveryFor(LISTEN, error.rpcCode) !== "version") return failed(error);
  const unmatched = negotiation.renegotiate(error, listen.version);
  return unmatched === undefined ? { type: "recoverable", recovery: "version", error } : failed(unmatched);
}

/** Judges a failure. Undefined for a loss: listening again may help. */
export function judgeFailure(
  listen: Listen,
  failure: ExchangeFailure,
  negotiation: Negotiation,
): ListenEnd | undefined {
  const { error, challenge } = failure;
  if (error.code === "closed") return { type: "end", end: { reason: "client-closed" } };
  const legacy = negotiation.judgeFailure(error);
  if (legacy !== undefined) return failed(legacy);
  if (challenge !== undefined) {
    return { type: "recoverable", recovery: challenge.status === 401 ? "unauthorized" : "scope", error };
  }
  const lasting = lastingError(failure, listen.isAcknowledged);
  return lasting && failed(lasting);
}

function failed(error: RallyError): ListenEnd {
  return { type: "end", end: { reason: "failed", error } };
}
