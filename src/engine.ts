/**
 * Owns the pending operations, runs the effects that the reducer decides on, mints wire ids and keeps the time.
 *
 * Pending calls are tracked by operation, never by wire id: a retry under a new id is the same operation (MRTR-07).
 */

import { AbortHub } from "./abort-hub.ts";
import type { Clock } from "./clock.ts";
import { Deadlines } from "./deadlines.ts";
import { metaText } from "./declarations.ts";
import {
  attemptTimedOut,
  cancelled,
  cancelReason,
  clientClosed,
  copyError,
  finishError,
  metaFailed,
  noSignal,
  operationTimedOut,
  rpcError,
  tag,
  transportThrew,
} from "./engine-errors.ts";
import { FrameError, LimitError, type RallyError, type RpcError, TransportError } from "./errors.ts";
import { callHost, type EventBus } from "./events.ts";
import { InputRounds } from "./input-rounds.ts";
import { LinkGate } from "./link-gate.ts";
import { type Negotiation, recoveryFor } from "./negotiation.ts";
import { onlyLogger, readLogEntry, readProgress } from "./notices.ts";
import { type Effect, isTerminal, type OperationEvent, reduce } from "./operation.ts";
import { OperationList } from "./operation-list.ts";
import {
  Attempt,
  type Dispatcher,
  type LogEntry,
  type OperationSpec,
  PendingOperation,
  type SettledPhase,
} from "./pending.ts";
import { Reporter } from "./reporter.ts";
import { encodeRequest } from "./request.ts";
import { clip, showValue } from "./show.ts";
import { type StreamHandle, type StreamRequest, Streams, type WaitingStream } from "./streams.ts";
import type {
  AnomalyKind,
  Envelope,
  Exchange,
  ExchangeFailure,
  ExchangeRequest,
  ExchangeSink,
  LinkState,
  NotificationFrame,
  ResponseFrame,
  Transport,
  TransportHost,
} from "./transport.ts";
import type { SchemaValidator } from "./validate.ts";
import { isObject, type JsonObject, type WireId } from "./wire.ts";

/** What an engine is made from. */
export interface EngineOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly events: EventBus;
  readonly negotiation: Negotiation;
  readonly validator: SchemaValidator;
  readonly messageBytes: number;
  readonly pendingOperations: number;
  /** Whether the link's first exchange must be `server/discover`: false when the host gave a discovery. */
  readonly probes: boolean;
  /** Makes the spec of a probe. */
  readonly probeSpec: (settled: OperationSpec["settled"]) => OperationSpec;
  /** The bound on a probe in milliseconds. */
  readonly probeMs: number;
  /** Told of a probe's discovery; says what keeps the client from going on. */
  readonly onDiscovery: (result: JsonObject) => RallyError | undefined;
  readonly onLog: ((entry: LogEntry) => void) | undefined;
  /** Told of every notification that is neither progress nor a log entry. */
  readonly onNotification: (frame: NotificationFrame) => void;
}

/** What waits at the gate. */
type GateMember = PendingOperation | WaitingStream;

/** An object that is still being put together. */
type Writable<T> = { -readonly [K in keyof T]: T[K] };

const NEVER = Number.POSITIVE_INFINITY;

/** The engine of one client. */
export class Engine implements Dispatcher, TransportHost {
  readonly limits: { readonly messageBytes: number };
  readonly #options: EngineOptions;
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #report: Reporter;
  readonly #negotiation: Negotiation;
  readonly #operations = new OperationList<PendingOperation>();
  readonly #deadlines: Deadlines<PendingOperation>;
  readonly #aborts = new AbortHub();
  readonly #gate: LinkGate<GateMember>;
  readonly #inputs: InputRounds;
  readonly #streams: Streams;
  readonly #linkWatchers = new Set<(state: LinkState) => void>();
  #lastOperationId = 0;
  #lastWireId = 0;
  /** The probe that is out: one at a time, for the link. */
  #probing: PendingOperation | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#transport = options.transport;
    this.#clock = options.clock;
    this.#report = new Reporter(options.events, options.clock);
    this.#negotiation = options.negotiation;
    this.limits = { messageBytes: options.messageBytes };
    this.#deadlines = new Deadlines(options.clock, this.#operations, (operation) => this.#due(operation));
    this.#gate = new LinkGate<GateMember>(
      {
        probe: () => this.#probe(),
        pass: (member) => (member instanceof PendingOperation ? this.#passed(member) : member.open()),
        refuse: (member, error) => {
          if (member instanceof PendingOperation) this.#refused(member, error);
          else member.refuse(copyError(error));
        },
      },
      !(options.probes && options.transport.shared === true),
    );
    this.#inputs = new InputRounds({
      clock: options.clock,
      validator: options.validator,
      report: this.#report,
      dispatch: (operation, event) => this.#dispatch(operation, event),
    });
    this.#streams = new Streams({
      gate: this.#gate,
      negotiation: options.negotiation,
      mint: () => ++this.#lastWireId,
      isClosed: () => this.isClosed,
      open: (request, sink, holder) => this.#open(request, sink, holder),
      abandon: (handle, reason) => this.#abandon(handle, reason),
    });
    this.#transport.attach(this);
  }

  /** What is pending, probes included. */
  get operations(): Iterable<PendingOperation> {
    return this.#operations;
  }

  /** Starts an operation; `spec.settled` is called exactly once. */
  start(spec: OperationSpec): void {
    const operation = new PendingOperation(++this.#lastOperationId, spec, this.#clock.now(), this);
    const refusal = this.#refusal(spec);
    if (refusal !== undefined) return spec.settled(refusal, operation);
    this.#operations.add(operation);
    if (spec.isProbe) this.#probing = operation;
    if (spec.signal !== undefined) this.#aborts.join(spec.signal, operation);
    this.#inputs.expect(operation);
    this.#report.started(operation);
    this.#dispatch(operation, { type: "start" });
  }

  /** Why an operation is not even begun: nothing is sent for it. */
  #refusal(spec: OperationSpec): SettledPhase | undefined {
    if (this.#closing !== undefined) return { at: "failed", error: clientClosed() };
    if (spec.signal !== undefined && typeof spec.signal?.addEventListener !== "function") {
      return { at: "failed", error: noSignal(spec.signal) };
    }
    if (spec.signal?.aborted) return { at: "cancelled", error: cancelled(spec.signal.reason) };
    const allowed = this.#options.pendingOperations;
    // A probe is the engine's own: the operation that waits for it must not be what keeps it out.
    if (spec.isProbe) return undefined;
    if (this.#operations.size - (this.#probing === undefined ? 0 : 1) < allowed) return undefined;
    const error = new LimitError(
      `${allowed} operations are pending already; wait for some to end, or raise limits.pendingOperations`,
      "pendingOperations",
      allowed,
      "not-sent",
    );
    return { at: "failed", error };
  }

  /** Feeds one event to an operation. Events that arrive while a reduction runs wait for their turn. */
  #dispatch(operation: PendingOperation, event: OperationEvent): void {
    if (operation.reducing) {
      operation.queue ??= [];
      operation.queue.push(event);
      return;
    }
    operation.reducing = true;
    this.#step(operation, event);
    this.#drain(operation);
  }

  /** Takes the events that waited, and ends the reduction. */
  #drain(operation: PendingOperation): void {
    for (let next = operation.queue?.shift(); next !== undefined; next = operation.queue?.shift()) {
      this.#step(operation, next);
    }
    operation.reducing = false;
  }

  #step(operation: PendingOperation, event: OperationEvent): void {
    const before = operation.state;
    const { state, effects } = reduce(before, event, operation.spec.rules);
    if (state.phase !== before.phase) {
      // An operation that only now begins has just read the clock.
      operation.leave(before.phase, before.phase.at === "idle" ? operation.startedAt : this.#clock.now());
      operation.dueAt = NEVER;
    }
    operation.state = state;
    if (state.round !== before.round || before.phase.at === "idle") this.#report.round(operation);
    for (const effect of effects) this.#run(operation, effect, event);
  }

  #run(operation: PendingOperation, effect: Effect, event: OperationEvent): void {
    switch (effect) {
      case "send":
        return this.#send(operation);
      case "settle":
        return this.#settle(operation);
      case "cancelAttempt":
        return this.#cancelAttempt(operation, event);
      case "gather":
        return this.#gather(operation);
      case "abortInputs":
        return this.#inputs.abort(operation);
      case "recover":
        return this.#recover(operation);
      case "pause":
        return this.#pause(operation);
      case "late":
        return this.#report.late(operation, event.type);
    }
  }

  // --- an attempt goes out --------------------------------------------------------------------------------------

  #send(operation: PendingOperation): void {
    const now = operation.phaseAt;
    const { attemptMs, attemptMaxMs } = operation.spec.timeouts;
    operation.heardAt = now;
    operation.attemptMaxAt = attemptMaxMs === undefined ? NEVER : now + attemptMaxMs;
    this.#armAttempt(operation, attemptMs === undefined ? NEVER : now + attemptMs, now);
    if (this.#gate.isOpen || operation.spec.isProbe) this.#issue(operation, now);
    else this.#gate.wait(operation);
  }

  #armAttempt(operation: PendingOperation, attemptDueAt: number, now: number): void {
    const dueAt = Math.min(attemptDueAt, operation.attemptMaxAt, operation.operationDueAt);
    this.#deadlines.arm(operation, dueAt, now);
  }

  /** Let through by the gate. What a host did when another was let through may have ended this one meanwhile. */
  #passed(operation: PendingOperation): void {
    if (isTerminal(operation.state.phase)) return;
    const now = this.#clock.now();
    if (operation.reducing) return this.#issue(operation, now);
    operation.reducing = true;
    this.#issue(operation, now);
    this.#drain(operation);
  }

  #issue(operation: PendingOperation, now: number): void {
    const { spec, state } = operation;
    const { rules } = spec;
    const wireId = ++this.#lastWireId;
    const version = this.#negotiation.version;
    let body: string;
    try {
      body = this.#encode(operation, wireId, version);
    } catch (cause) {
      return this.#dispatch(operation, { type: "stop", error: metaFailed(cause) });
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
    this.#open(request, attempt, attempt);
    // A host's header function may have ended the operation from within: the exchange it left behind is given up.
    if (operation.attempt !== attempt) this.#abandon(attempt.handle, "the operation has ended");
  }

  #encode(operation: PendingOperation, id: WireId, protocolVersion: string): string {
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

  /** Opens an exchange; a transport that throws counts as not sent. */
  #open(request: ExchangeRequest, sink: ExchangeSink, holder: { handle: Exchange | undefined }): void {
    try {
      holder.handle = this.#transport.exchange(request, sink);
    } catch (cause) {
      sink.failure({ delivery: "not-sent", error: transportThrew(this.#transport.name, cause) });
    }
  }

  #cancelAttempt(operation: PendingOperation, event: OperationEvent): void {
    if (this.#gate.leave(operation)) return;
    const { attempt } = operation;
    if (attempt === undefined) return;
    operation.attempt = undefined;
    this.#report.attemptEnded(attempt, {
      outcome: event.type === "attemptTimeout" ? "timeout" : "cancelled",
    });
    this.#abandon(attempt.handle, cancelReason(event));
  }

  /** Cancels an exchange. A transport that throws has broken its contract, and that must not keep the caller waiting. */
  #abandon(handle: Exchange | undefined, reason: string): void {
    try {
      handle?.cancel(reason);
    } catch (error) {
      this.anomaly("transport-threw", { in: "cancel", message: clip(String(error)) });
    }
  }

  // --- what an attempt brings back ------------------------------------------------------------------------------

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
      this.#dispatch(operation, { type: "result", result });
      return;
    }
    const { code } = frame.error;
    this.#report.attemptEnded(attempt, { outcome: "error", rpcCode: code });
    const isOurs = frame.id === attempt.wireId;
    const legacy = this.#negotiation.judgeErrorFrame(frame, envelope?.status, isOurs);
    const error = legacy ?? rpcError(frame.error, envelope?.status);
    tag(error, operation, attempt.wireId);
    const recovery = legacy === undefined ? recoveryFor(operation.method, code) : undefined;
    this.#dispatch(operation, { type: "rpcError", error, recovery });
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
      return this.#dispatch(operation, { type: "rpcError", error: legacy });
    }
    tag(error, operation, attempt.wireId);
    operation.challenge = challenge;
    const recovery = challenge && (challenge.status === 401 ? "unauthorized" : "scope");
    this.#dispatch(operation, { type: "failure", failure, recovery, random: Math.random() });
  }

  notified(attempt: Attempt, frame: NotificationFrame): void {
    const { operation } = attempt;
    if (operation.attempt !== attempt) return this.#report.late(operation, frame.method);
    operation.heardAt = this.#clock.now();
    this.#report.notified(attempt, frame.method);
    if (frame.method === "notifications/progress") this.#progressed(attempt, frame);
    else if (frame.method === "notifications/message") this.#logged(frame, operation.spec.onLog);
    else callHost(this.#options.onNotification, frame);
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
      return this.anomaly(report, { method: operation.method, value });
    }
    attempt.lastProgress = report.progress;
    const { heardAt } = operation;
    if (resetOnProgress && attemptMs !== undefined) this.#armAttempt(operation, heardAt + attemptMs, heardAt);
    if (onProgress !== undefined) callHost(onProgress, report);
  }

  // --- recovery, inputs, pauses ---------------------------------------------------------------------------------

  #recover(operation: PendingOperation): void {
    this.#deadlines.arm(operation, operation.operationDueAt, operation.phaseAt);
    const { phase } = operation.state;
    if (phase.at !== "recovering") return;
    switch (phase.kind) {
      case "unauthorized":
      case "scope":
        // The transport asks the host's token function again, with the challenge, when the next attempt goes out.
        return this.#dispatch(operation, { type: "recovered" });
      case "version": {
        const error = this.#negotiation.renegotiate(phase.error as RpcError, operation.version);
        return this.#dispatch(operation, error ? { type: "unrecovered", error } : { type: "recovered" });
      }
      case "headers":
        return this.#refreshMirrored(operation, phase.error);
    }
  }

  #refreshMirrored(operation: PendingOperation, original: RallyError): void {
    const unrecovered = () => this.#dispatch(operation, { type: "unrecovered", error: original });
    const refreshed = operation.spec.mirror?.refreshMirrored();
    if (refreshed === undefined) return unrecovered();
    refreshed.then((mirrored) => {
      if (mirrored === undefined) unrecovered();
      else this.#dispatch(operation, { type: "recovered", mirrored });
    }, unrecovered);
  }

  #gather(operation: PendingOperation): void {
    const now = this.#clock.now();
    // The timer may be late: a user is never asked on behalf of a call whose time is over (MRTR-17).
    if (now >= operation.operationDueAt) return this.#operationDue(operation, now);
    this.#deadlines.arm(operation, operation.operationDueAt, now);
    this.#inputs.open(operation);
  }

  #pause(operation: PendingOperation): void {
    const { phase } = operation.state;
    if (phase.at !== "pausing") return;
    const resumeAt = operation.phaseAt + phase.ms;
    // A pause that ends after the deadline helps no one: fail now with what is known (HTTP-03).
    if (resumeAt >= operation.operationDueAt && phase.error !== undefined) {
      return this.#dispatch(operation, { type: "stop", error: phase.error });
    }
    this.#deadlines.arm(operation, Math.min(resumeAt, operation.operationDueAt), operation.phaseAt);
  }

  #due(operation: PendingOperation): void {
    const now = this.#clock.now();
    if (now + 1 >= operation.operationDueAt) return this.#operationDue(operation, now);
    const { phase } = operation.state;
    if (phase.at === "pausing") this.#dispatch(operation, { type: "timer" });
    else if (phase.at === "awaiting") {
      const error = attemptTimedOut(operation, now);
      tag(error, operation, operation.attempt?.wireId);
      this.#dispatch(operation, { type: "attemptTimeout", error, random: Math.random() });
    }
  }

  #operationDue(operation: PendingOperation, now: number): void {
    const error = operationTimedOut(operation, now);
    tag(error, operation, operation.attempt?.wireId);
    this.#dispatch(operation, { type: "stop", error });
  }

  // --- the end --------------------------------------------------------------------------------------------------

  #settle(operation: PendingOperation): void {
    this.#operations.remove(operation);
    const { spec } = operation;
    if (spec.isProbe) this.#probing = undefined;
    if (spec.signal !== undefined) this.#aborts.leave(spec.signal, operation);
    if (this.#operations.size === 0) this.#deadlines.idle();
    const phase = operation.state.phase as SettledPhase;
    if (phase.at === "failed" || phase.at === "cancelled") finishError(phase, operation);
    this.#report.settled(operation, phase);
    spec.settled(phase, operation);
  }

  aborted(operation: PendingOperation, reason: unknown): void {
    this.#dispatch(operation, { type: "cancel", error: cancelled(reason) });
  }

  /** Whether {@link close} was called. */
  get isClosed(): boolean {
    return this.#closing !== undefined;
  }

  /** Ends everything that is pending with a ClosedError and closes the transport. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#closeNow();
    return this.#closing;
  }

  async #closeNow(): Promise<void> {
    // One turn later `#closing` is set, so that nothing a host starts while its calls are being ended gets through.
    await undefined;
    for (const operation of [...this.#operations]) {
      const delivery = operation.version === "" ? "not-sent" : "unknown";
      this.#dispatch(operation, { type: "stop", error: clientClosed(delivery) });
    }
    await this.#transport.close();
  }

  // --- what the transport tells outside any exchange ------------------------------------------------------------

  notification(frame: NotificationFrame): void {
    if (frame.method === "notifications/message") this.#logged(frame, onlyLogger(this.#operations));
    else callHost(this.#options.onNotification, frame);
  }

  #logged(frame: NotificationFrame, onLog: ((entry: LogEntry) => void) | undefined): void {
    const listener = onLog ?? this.#options.onLog;
    if (listener !== undefined) callHost(listener, readLogEntry(frame));
  }

  link(state: LinkState, cause?: Error): void {
    if (state === "down" || state === "closed") this.#gate.reset();
    this.#report.link(state, cause);
    for (const watcher of [...this.#linkWatchers]) watcher(state);
  }

  anomaly(kind: AnomalyKind, detail: unknown): void {
    this.#report.anomaly(kind, detail);
    if (this.#probing === undefined) return;
    // Nothing but the probe is out on a link that is being probed: an answer to nothing, or a message that breaks off, is
    // meant for it. Waiting for a better one would only take `probeMs` (VER-02). A banner or a log line is no message.
    const isBroken = kind === "bad-frame" && isObject(detail) && detail.isMessage === true;
    if (!isBroken && kind !== "unknown-id") return;
    const error = new FrameError(
      isBroken
        ? "the answer to server/discover is no valid message"
        : "the answer to server/discover carries an id that is not the request's",
    );
    this.#dispatch(this.#probing, { type: "stop", error });
  }

  /** Watches the link; the returned function stops. */
  watchLink(watcher: (state: LinkState) => void): () => void {
    this.#linkWatchers.add(watcher);
    return () => this.#linkWatchers.delete(watcher);
  }

  // --- the probe of a link ----------------------------------------------------------------------------------------

  #probe(): void {
    const { probeSpec, probeMs, onDiscovery } = this.#options;
    this.start(
      probeSpec((phase) => {
        if (phase.at === "succeeded") {
          const error = onDiscovery(phase.result);
          if (error === undefined) this.#gate.passed();
          else this.#gate.refused(error);
        } else if (phase.at !== "suspended") {
          this.#gate.refused(this.#negotiation.judgeProbe(phase.error, probeMs));
        }
      }),
    );
  }

  /** The link could not be had, or its server is an old one: each waiting operation gets an error of its own. */
  #refused(operation: PendingOperation, error: RallyError): void {
    const own = copyError(error);
    // What was lost is the probe: the operation itself has not left.
    if (own instanceof TransportError) own.delivery = "not-sent";
    if (own instanceof TransportError && own.code !== "closed") {
      const failure = { delivery: "not-sent", error: own } as const;
      this.#dispatch(operation, { type: "failure", failure, random: Math.random() });
    } else {
      this.#dispatch(operation, { type: "stop", error: own });
    }
  }

  /** Opens a stream: see {@link Streams.open}. */
  openStream(stream: StreamRequest, sink: ExchangeSink): StreamHandle {
    return this.#streams.open(stream, sink);
  }
}
