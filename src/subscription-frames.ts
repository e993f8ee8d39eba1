/** What the frames of a subscription say, and the errors that they can be. */

import { ProtocolViolationError, TimeoutError } from "./errors.ts";
import { LISTEN, type Listen } from "./listen-request.ts";
import { META } from "./protocol.ts";
import { clip } from "./show.ts";
import { asksFor, isFilterable, readAcknowledgment, type SubscriptionFilter } from "./subscription-filter.ts";
import type { ChangeItem, SubscriptionItem } from "./subscription-queue.ts";
import type { ListenAnomaly, SubscriptionReporter } from "./subscription-reporter.ts";
import type { NotificationFrame } from "./transport.ts";
import { isObject, type JsonObject } from "./wire.ts";

/** The notification that answers a listen request first. */
const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";

/** What a notification tells a subscription. */
export type ListenNews =
  | {
      readonly type: "acknowledged";
      readonly filter: SubscriptionFilter;
      readonly refused: readonly string[];
    }
  /** Something changed: {@link readChange} says what. */
  | { readonly type: "changed" }
  /** The server cancelled the listen request; `message` is what it said, if anything. */
  | { readonly type: "cancelled"; readonly message?: string };

/**
 * Reads a notification that came on a listen request, and reports what is out of place in it. Undefined when that leaves
 * nothing to do.
 */
export function readNews(
  listen: Listen,
  frame: NotificationFrame,
  filter: SubscriptionFilter,
  report: SubscriptionReporter,
): ListenNews | undefined {
  const { method, params } = frame;
  if (method === "notifications/cancelled") return readCancel(listen, params, report);
  if (method === "notifications/progress" || method === "notifications/message") {
    // streamable-http.mdx: what belongs to a call is not delivered on the listen stream.
    report.anomaly(listen, { kind: "unexpected-notification", detail: { method }, variant: method });
    return undefined;
  }
  if (!isOurs(listen, frame, report)) return undefined;
  if (method === ACKNOWLEDGED) return readAcknowledged(listen, params, filter, report);
  if (!listen.isAcknowledged) {
    const detail = { method: clip(method), fault: "not acknowledged yet" };
    report.anomaly(listen, { kind: "unexpected-notification", detail });
  }
  return { type: "changed" };
}

function readCancel(
  listen: Listen,
  params: JsonObject | undefined,
  report: SubscriptionReporter,
): ListenNews | undefined {
  const { requestId, reason } = params ?? {};
  if (requestId !== listen.wireId) {
    report.anomaly(listen, { kind: "unexpected-cancel", detail: { requestId: brief(requestId) } });
    return undefined;
  }
  return { type: "cancelled", ...(typeof reason === "string" && { message: clip(reason, 500) }) };
}

/** On a channel the frame came here by its subscription id; over HTTP the stream itself says whose it is. */
function isOurs(
  listen: Listen,
  { method, params }: NotificationFrame,
  report: SubscriptionReporter,
): boolean {
  const meta = params?._meta;
  const subscriptionId = isObject(meta) ? meta[META.subscriptionId] : undefined;
  if (subscriptionId === listen.wireId) return true;
  report.anomaly(listen, {
    kind: "subscription-id",
    detail: { method: clip(method), subscriptionId: brief(subscriptionId) },
    variant: subscriptionId === undefined ? "missing" : "other",
  });
  return subscriptionId === undefined;
}

function readAcknowledged(
  listen: Listen,
  params: JsonObject | undefined,
  filter: SubscriptionFilter,
  report: SubscriptionReporter,
): ListenNews | undefined {
  const method = ACKNOWLEDGED;
  if (listen.isAcknowledged) {
    report.anomaly(listen, { kind: "unexpected-notification", detail: { method }, variant: method });
    return undefined;
  }
  if (!isObject(params?.notifications)) {
    const detail = { method, fault: "params.notifications is missing" };
    report.anomaly(listen, { kind: "bad-frame", detail });
  }
  return { type: "acknowledged", ...readAcknowledgment(filter, params) };
}

/** The item for a change; in its place, what keeps it from the reader: it was not asked for, or does not say what changed. */
export function readChange(
  { method, params }: NotificationFrame,
  filter: SubscriptionFilter,
): SubscriptionItem | ListenAnomaly {
  if (!isFilterable(method)) return { type: "extension", method, params };
  if (!asksFor(filter, method)) {
    return { kind: "unexpected-notification", detail: { method, fault: "not asked for" }, variant: method };
  }
  if (method === "notifications/resources/updated" && typeof params?.uri !== "string") {
    return { kind: "bad-frame", detail: { method, fault: "params.uri must be a string" } };
  }
  return { type: "notification", method, params } as ChangeItem;
}

/** A listen stream ends with a complete result; no other can mean that it ended (MRTR-01, MRTR-02). */
export function resultFault({ resultType }: JsonObject): ProtocolViolationError | undefined {
  if (resultType === undefined || resultType === "complete") return undefined;
  return new ProtocolViolationError(
    `The server answered ${LISTEN} with the resultType ${clip(JSON.stringify(resultType), 60)}; only "complete" can end a subscription.`,
    "result.resultType",
  );
}

/** The acknowledgment did not come in time. */
export function notAcknowledged(ackMs: number, waitedMs: number): TimeoutError {
  const spent = { totalMs: waitedMs, wireMs: waitedMs, inputMs: 0, pauseMs: 0, silentMs: ackMs };
  return new TimeoutError(
    `The server did not acknowledge ${LISTEN} within ${ackMs} ms (ackMs); the request was cancelled on the wire.`,
    "attempt",
    ackMs,
    spent,
  );
}

/** Why `acknowledged` rejects: the server ended the subscription before. */
export function endedUnacknowledged(reason: string): ProtocolViolationError {
  return new ProtocolViolationError(
    `The server ended the subscription (${reason}) before it acknowledged it; ${ACKNOWLEDGED} must come first.`,
    ACKNOWLEDGED,
  );
}

/** A peer's value in a form that fits an event. */
function brief(value: unknown): unknown {
  if (typeof value === "string") return clip(value, 100);
  return typeof value === "object" && value !== null ? typeof value : value;
}
