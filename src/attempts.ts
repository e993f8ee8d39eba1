/** Issues the attempts of operations, and reads what their exchanges bring back. */

import type { Clock } from "./clock.ts";
import type { Deadlines } from "./deadlines.ts";
import { metaText } from "./declarations.ts";
import { cancelReason, metaFailed, rpcError, tag, transportThrew } from "./engine-errors.ts";
import { callHost } from "./events.ts";
import { type Negotiation, recoveryFor } from "./negotiation.ts";
import { readProgress, tellLogEntry } from "./notices.ts";
import type { OperationEvent } from "./operation-state.ts";
import {
  Attempt,
  type AttemptOwner,
  type Dispatcher,
  type LogEntry,
  type PendingOperation,
} from "./pending.ts";
import type { Reporter } from "./reporter.ts";
import { encodeRequest } from "./request.ts";
import { clip, showValue } from "./show.ts";
import type {
  Envelope,
  Exchange,
  ExchangeFailure,
  ExchangeRequest,
  ExchangeSink,
  NotificationFrame,
  ResponseFrame,
  Transport,
} from "./transport.ts";
import type { WireId } from "./wire.ts";

/** What the engine lends to this. */
export interface AttemptsParts {
  readonly engine: Dispatcher;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly report: Reporter;
  readonly negotiation: Negotiation;
  readonly deadlines: Deadlines<PendingOperation>;
  readonly gate: {
    readonly isOpen: boolean;
    wait(operation: PendingOperation): void;
    leave(operation: PendingOperation): boolean;
  };
  readonly onLog: ((entry: LogEntry) => void) | undefined;
  readonly onNotification: (frame: NotificationFrame) => void;
}

/** An object that is still being put together. */
type Writable<T> = { -readonly [K in keyof T]: T[K] };

const NEVER = Number.POSITIVE_INFINITY;

/** The attempts of one client. */
export class Attempts implements AttemptOwner {
  readonly #engine: Dispatcher;
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #report: Reporter;
  readonly #negotiation: Negotiation;
  readonly #deadlines: Deadlines<PendingOperation>;
  readonly #gate: AttemptsParts["gate"];
  readonly #onLog: AttemptsParts["onLog"];
  readonly #onNotification: AttemptsParts["onNotification"];
  #lastWireId = 0;

  constructor(parts: AttemptsParts) {
    this.#engine = parts.engine;
    this.#transport = parts.transport;
    this.#clock = parts.clock;
    this.#report = parts.report;
    this.#negotiation = parts.negotiation;
    this.#deadlines = parts.deadlines;
    this.#gate = parts.gate;
    this.#onLog = parts.onLog;
    this.#onNotification = parts.onNotification;
  }

  /** Gives an operation its next attempt: at once, or when the gate lets it through. Its time runs from now on. */
  send(operation: PendingOperation): void {
    const now = operation.phaseAt;
    const { attemptMs, attemptMaxMs } = operation.spec.timeouts;
    operation.heardAt = now;
    operation.attemptMaxAt = attemptMaxMs === undefined ? NEVER : now + attemptMaxMs;
    this.#arm(operation, attemptMs === undefined ? NEVER : now + attemptMs, now);
    if (this.#gate.isOpen || operation.spec.isProbe) this.issue(operation, now);
    else this.#gate.wait(operation);
  }

  #arm(operation: PendingOperation, attemptDueAt: number, now: number): void {
    const dueAt = Math.min(attemptDueAt, operation.attemptMaxAt, operation.operationDueAt);
    this.#deadlines.arm(operation, dueAt, now);
  }

  /** Hands the attempt to the transport. */
  issue(operation: PendingOperation, now: number): void {
    const { spec, state } = operation;
    const { rules } = spec;
    const wireId = ++this.#lastWireId;
    const version = this.#negotiation.version;
    let body: string;
    try {
      body = encodeAttempt(operation, wireId, version);
    } catch (cause) {
      return this.#engine.dispatch(operation, { type: "stop", error: metaFailed(cause) });
    }
    const attempt = new Attempt(operation, wireId, now, this);
    operation.attempt = attempt;
    operation.version = version;
    const { challenge } = operation;
    operation.challenge = undefined;
    const request: Writable<ExchangeRequest> = {
      id: wireId,
      method: rules.method,
      protocolVersion: version,
      body,
      mirrored: state.mirrored,
    };
    // Spreading what there may be into the literal would take longer than the rest of this function.
    if (rules.name !== undefined) request.name = rules.name;
    if (spec.context !== undefined) request.context = spec.context;
    if (challenge !== undefined) request.challenge = challenge;
    this.#report.sent(attempt, body.length);
    this.open(request, attempt, attempt);
    // A host's header function may have ended the operation from within: the exchange it left behind is given up.
    if (operation.attempt !== attempt) this.abandon(attempt.handle, "the operation has ended");
  }

  /** Gives up the attempt that is out, or that waits at the gate. */
  cancel(operation: PendingOperation, event: OperationEvent): void {
    if (this.#gate.leave(operation)) return;
    const { attempt } = operation;
    if (attempt === undefined) return;
    operation.attempt = undefined;
    this.#report.attemptEnded(attempt, {
      outcome: event.type === "attemptTimeout" ? "timeout" : "cancelled",
    });
    this.abandon(attempt.handle, cancelReason(event));
  }

  // --- exchanges, also those that are no attempt ------------------------------------------------------------------

  /** A wire id that was never used. */
  mint(): WireId {
    return ++this.#lastWireId;
  }

  /** Opens an exchange; a transport that throws counts as not sent. */
  open(request: ExchangeRequest, sink: ExchangeSink, holder: { handle: Exchange | undefined }): void {
    try {
      holder.handle = this.#transport.exchange(request, sink);
    } catch (cause) {
      sink.failure({ delivery: "not-sent", error: transportThrew(this.#transport.name, cause) });
    }
  }

  /** Cancels an exchange. A transport that throws has broken its contract, and that must not keep the caller waiting. */
  abandon(handle: Exchange | undefined, reason: string): void {
    try {
      handle?.cancel(reason);
    } catch (error) {
      this.#report.anomaly("transport-threw", { in: "cancel", message: clip(String(error)) });
    }
  }

  // --- what an attempt brings back --------------------------------------------------------------------------------

  answered(attempt: Attempt, frame: ResponseFrame, envelope: Envelope | undefined): void {
    const { operation } = attempt;
    if (operation.attempt !== attempt) return this.#report.late(operation, "response");
    operation.attempt = undefined;
    if (frame.kind === "result") {
      const { result } = frame;
      const { resultType } = result;
      if (typeof resultType === "string") this.#negotiation.sawModern();
      const outcome = resultType === "input_required" ? resultType : "complete";
      this.#report.attemptEnded(attempt, { outcome });
      this.#engine.dispatch(operation, { type: "result", result });
      return;
    }
    const { code } = frame.error;
    this.#report.attemptEnded(attempt, { outcome: "error", rpcCode: code });
    const isOurs = frame.id === attempt.wireId;
    const legacy = this.#negotiation.judgeErrorFrame(frame, envelope?.status, isOurs);
    const error = legacy ?? rpcError(frame.error, envelope?.status);
    tag(error, operation, attempt.wireId);
    const recovery = legacy === undefined ? recoveryFor(operation.method, code) : undefined;
    this.#engine.dispatch(operation, { type: "rpcError", error, recovery });
  }

  failed(attempt: Attempt, failure: ExchangeFailure): void {
    const { operation } = attempt;
    if (operation.attempt !== attempt) return this.#report.late(operation, "failure");
    operation.attempt = undefined;
    const { error, delivery, challenge } = failure;
    this.#report.attemptEnded(attempt, { outcome: "failure", code: error.code, delivery });
    const legacy = this.#negotiation.judgeFailure(error);
    if (legacy !== undefined) {
      tag(legacy, operation, attempt.wireId);
      return this.#engine.dispatch(operation, { type: "rpcError", error: legacy });
    }
    tag(error, operation, attempt.wireId);
    operation.challenge = challenge;
    const recovery = challenge && (challenge.status === 401 ? "unauthorized" : "scope");
    this.#engine.dispatch(operation, { type: "failure", failure, recovery, random: Math.random() });
  }

  notified(attempt: Attempt, frame: NotificationFrame): void {
    const { operation } = attempt;
    if (operation.attempt !== attempt) return this.#report.late(operation, frame.method);
    operation.heardAt = this.#clock.now();
    this.#report.notified(attempt, frame.method);
    if (frame.method === "notifications/progress") this.#progressed(attempt, frame);
    else if (frame.method === "notifications/message")
      tellLogEntry(frame, operation.spec.onLog ?? this.#onLog);
    else callHost(this.#onNotification, frame);
  }

  #progressed(attempt: Attempt, frame: NotificationFrame): void {
    const { operation } = attempt;
    const { onProgress, timeouts } = operation.spec;
    const { attemptMs, resetOnProgress } = timeouts;
    const isAsked = onProgress !== undefined || resetOnProgress;
    const report = readProgress(frame, attempt, isAsked);
    if (typeof report === "string") {
      const { progressToken, progress } = frame.params ?? {};
      const value = showValue(report === "unknown-token" ? progressToken : progress);
      return this.#report.anomaly(report, { method: operation.method, value });
    }
    attempt.lastProgress = report.progress;
    const { heardAt } = operation;
    if (resetOnProgress && attemptMs !== undefined) this.#arm(operation, heardAt + attemptMs, heardAt);
    if (onProgress !== undefined) callHost(onProgress, report);
  }
}

function encodeAttempt(operation: PendingOperation, id: WireId, protocolVersion: string): string {
  const { spec, state } = operation;
  const wantsProgress = spec.onProgress !== undefined || spec.timeouts.resetOnProgress;
  return encodeRequest({
    id,
    method: spec.rules.method,
    params: spec.rules.params,
    meta: metaText(spec.declarations, {
      protocolVersion,
      host: typeof spec.hostMeta === "string" ? spec.hostMeta : spec.hostMeta(),
      logLevel: spec.logLevel,
      progressToken: wantsProgress ? id : undefined,
    }),
    responses: state.inputs.responses,
    requestState: state.inputs.requestState,
  });
}
