/** The errors that the engine itself makes, worded in one place. */

import {
  CancelledError,
  CapabilityRequiredError,
  ClosedError,
  ConnectError,
  InputError,
  RallyError,
  RpcError,
  TimeoutError,
  TransportError,
  UsageError,
} from "./errors.ts";
import type { InputRequest } from "./input-required.ts";
import type { OperationEvent, Phase } from "./operation-state.ts";
import type { PendingOperation } from "./pending.ts";
import { CODE } from "./protocol.ts";
import { clip, showJson } from "./show.ts";
import { isObject, type RpcErrorObject, type WireId } from "./wire.ts";

/** The caller's signal aborted, for whatever `reason`. */
export function cancelled(reason: unknown): CancelledError {
  return new CancelledError("The call was cancelled by its signal; the signal's reason is the cause.", {
    cause: reason,
  });
}

/** What was given as a signal cannot be listened to. */
export function noSignal(value: unknown): UsageError {
  const got = value === null ? "null" : typeof value;
  return new UsageError(`signal must be an AbortSignal, not ${got}; nothing was sent`, { path: "signal" });
}

/** The client was closed before or during the call. */
export function clientClosed(delivery: "not-sent" | "unknown" = "not-sent"): ClosedError {
  return new ClosedError("The client was closed; make a new one to go on.", delivery);
}

/** What the peer is told of a cancel: never a text of the host, which may hold anything. */
export function cancelReason(event: OperationEvent): string {
  if (event.type === "cancel") return "cancelled by the caller";
  if (event.type === "attemptTimeout") return "timed out";
  if (event.type !== "stop") return "no longer wanted";
  if (event.error.code === "timeout") return "timed out";
  return event.error.code === "closed" ? "the client is closing" : "no longer wanted";
}

/** The host's meta function threw, or gave what JSON cannot say. */
export function metaFailed(cause: unknown): RallyError {
  if (RallyError.is(cause)) return cause;
  const why = cause instanceof Error ? cause.message : String(cause);
  return new UsageError(`The meta function failed: ${why}. Nothing was sent; its error is the cause.`, {
    path: "meta",
    cause,
  });
}

/** Answers that were whole when they were checked cannot be written any more. */
export function answersChanged(cause: unknown): UsageError {
  return new UsageError(
    "An answer of an input handler was changed after it was given, and cannot be encoded as JSON any more. Nothing was sent; the cause says why.",
    { path: "inputs", cause },
  );
}

/** The code that runs the handlers is loaded when it is first needed, and its file is not there (any more). */
export function inputCodeMissing(request: InputRequest | undefined, cause: unknown): InputError {
  return new InputError(
    "The server asked for input, and the part of mcp-rally that runs the handlers could not be loaded: was the package changed while this program ran? Nothing more was sent; the cause says what is missing.",
    request?.key ?? "",
    request?.method ?? "",
    { cause },
  );
}

/** A transport broke its contract: it must report a failure to its sink, never throw. */
export function transportThrew(name: string, cause: unknown): ConnectError {
  return new ConnectError(
    `The transport "${name}" threw when it was given a request; a transport must report a failure to its sink instead. Its error is the cause.`,
    { cause },
  );
}

/** The attempt that is out took longer than `attemptMs` or `attemptMaxMs`. */
export function attemptTimedOut(operation: PendingOperation, now: number): TimeoutError {
  const { attemptMs, attemptMaxMs } = operation.spec.timeouts;
  const maxed = now + 1 >= operation.attemptMaxAt;
  const limitMs = (maxed ? attemptMaxMs : attemptMs) ?? 0;
  const spent = operation.spent(now);
  return new TimeoutError(
    `No answer to ${operation.method} within ${limitMs} ms (timeouts.${maxed ? "attemptMaxMs" : "attemptMs"}); nothing was heard for the last ${Math.round(spent.silentMs)} ms. The request was cancelled on the wire. Raise the bound, or let progress reset it with resetOnProgress.`,
    "attempt",
    limitMs,
    spent,
  );
}

/** The operation took longer than `operationMs`. */
export function operationTimedOut(operation: PendingOperation, now: number): TimeoutError {
  const limitMs = operation.spec.timeouts.operationMs ?? 0;
  const spent = operation.spent(now);
  const { wireMs, inputMs, pauseMs } = spent;
  return new TimeoutError(
    `The operation ${operation.method} was not done within ${limitMs} ms (operationMs): ${Math.round(wireMs)} ms went to the wire, ${Math.round(inputMs)} to input handlers, ${Math.round(pauseMs)} to pauses.`,
    "operation",
    limitMs,
    spent,
  );
}

/** The error of a JSON-RPC error answer. */
export function rpcError({ code, message, data }: RpcErrorObject, status: number | undefined): RpcError {
  if (code !== CODE.missingRequiredClientCapability) return new RpcError(message, code, data, status);
  const required = isObject(data) ? data.requiredCapabilities : undefined;
  const shown = required === undefined ? "it named none" : showJson(required);
  return new CapabilityRequiredError(
    `The server requires capabilities that the request did not declare: ${shown}. Add the input handlers that declare them (the server's words: ${clip(message)})`,
    data,
    required,
    status,
  );
}

/** Says on an error which operation it ended, once. */
export function tag(error: RallyError, operation: PendingOperation, wireId: WireId | undefined): void {
  error.operation ??= operation.info(wireId);
}

/** Completes the error that an operation ends with: where it stood, and what is known of the operation as a whole. */
export function finishError(
  phase: Extract<Phase, { at: "failed" | "cancelled" }>,
  operation: PendingOperation,
): void {
  const { error } = phase;
  tag(error, operation, undefined);
  if (!(error instanceof TransportError)) return;
  if (operation.state.uncertain) error.delivery = "unknown";
  if (phase.at === "failed" && phase.notReissued !== undefined) error.notReissued = phase.notReissued;
}

/** An error of its own for each of several operations that one fault ends. */
export function copyError<E extends RallyError>(error: E): E {
  const copy = Object.create(Object.getPrototypeOf(error), Object.getOwnPropertyDescriptors(error)) as E;
  delete copy.operation;
  if (copy instanceof TransportError) delete copy.notReissued;
  return copy;
}

/** A stream's sink knows transport errors only: anything else (an old server, no common version) becomes the cause of one. */
export function asTransportError(error: RallyError): TransportError {
  return error instanceof TransportError ? error : new ConnectError(error.message, { cause: error });
}
