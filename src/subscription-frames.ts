/** What the frames of a subscription say, and the errors that they can be. */

import { ProtocolViolationError, TimeoutError } from "./errors.ts";
import { LISTEN } from "./listen-request.ts";
import { clip } from "./show.ts";
import type { ChangeItem } from "./subscription-queue.ts";
import type { NotificationFrame } from "./transport.ts";
import type { JsonObject } from "./wire.ts";

/** The notification that answers a listen request first. */
export const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";

/** The item for a change; undefined when it does not say what changed. */
export function changeItem({ method, params }: NotificationFrame): ChangeItem | undefined {
  if (method !== "notifications/resources/updated")
    return { type: "notification", method, params } as ChangeItem;
  return typeof params?.uri === "string"
    ? ({ type: "notification", method, params } as ChangeItem)
    : undefined;
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

/** A peer's value in a form that fits an event. */
export function brief(value: unknown): unknown {
  if (typeof value === "string") return clip(value, 100);
  return typeof value === "object" && value !== null ? typeof value : value;
}

/** Why `acknowledged` rejects: the server ended the subscription before. */
export function endedUnacknowledged(reason: string): ProtocolViolationError {
  return new ProtocolViolationError(
    `The server ended the subscription (${reason}) before it acknowledged it; ${ACKNOWLEDGED} must come first.`,
    ACKNOWLEDGED,
  );
}
