/**
 * Owns the pending operations, runs the effects that the reducer decides on and keeps the time.
 *
 * Pending calls are tracked by operation, never by wire id: a retry under a new id is the same operation (MRTR-07).
 */

import { AbortHub } from "./abort-hub.ts";
import { Attempts } from "./attempts.ts";
import type { Clock } from "./clock.ts";
import { Deadlines } from "./deadlines.ts";
import {
  attemptTimedOut,
  cancelled,
  clientClosed,
  copyError,
  finishError,
  noSignal,
  operationTimedOut,
  tag,
} from "./engine-errors.ts";
import { LimitError } from "./errors.ts";
import { callHost, type EventBus } from "./events.ts";
import { InputRounds } from "./input-rounds.ts";
import { LinkGate } from "./link-gate.ts";
import { LinkProbe, linkRefused, type ProbeOptions } from "./link-probe.ts";
import type { Negotiation } from "./negotiation.ts";
import { onlyLogger, tellLogEntry } from "./notices.ts";
import { reduce } from "./operation.ts";
import { OperationList } from "./operation-list.ts";
import { type Effect, isTerminal, type OperationEvent } from "./operation-state.ts";
import {
  type Dispatcher,
  type LogEntry,
  type OperationSpec,
  PendingOperation,
  type SettledPhase,
} from "./pending.ts";
import { recover } from "./recoveries.ts";
import { Reporter } from "./reporter.ts";
import { type StreamHandle, type StreamRequest, Streams, type WaitingStream } from "./streams.ts";
import type {
  AnomalyKind,
  ExchangeSink,
  LinkState,
  NotificationFrame,
  Transport,
  TransportHost,
} from "./transport.ts";
import type { SchemaValidator } from "./validate.ts";

/** What an engine is made from. */
export interface EngineOptions extends ProbeOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly events: EventBus;
  readonly negotiation: Negotiation;
  readonly validator: SchemaValidator;
  readonly messageBytes: number;
  readonly pendingOperations: number;
  /** Whether the link's first exchange must be `server/discover`: false when the host gave a discovery. */
  readonly probes: boolean;
  readonly onLog: ((entry: LogEntry) => void) | undefined;
  /** Told of every notification that is neither progress nor a log entry. */
  readonly onNotification: (frame: NotificationFrame) => void;
}

/** What waits at the gate. */
type GateMember = PendingOperation | WaitingStream;

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
  readonly #attempts: Attempts;
  readonly #probe: LinkProbe;
  readonly #inputs: InputRounds;
  readonly #streams: Streams;
  readonly #linkWatchers = new Set<(state: LinkState) => void>();
  #lastOperationId = 0;
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
        probe: () => this.#probe.start(),
        pass: (member) => (member instanceof PendingOperation ? this.#passed(member) : member.open()),
        refuse: (member, error) => {
          if (member instanceof PendingOperation) this.dispatch(member, linkRefused(error));
          else member.refuse(copyError(error));
        },
      },
      !(options.probes && options.transport.shared === true),
    );
    this.#attempts = new Attempts({
      engine: this,
      transport: options.transport,
      clock: options.clock,
      report: this.#report,
      negotiation: options.negotiation,
      deadlines: this.#deadlines,
      gate: this.#gate,
      onLog: options.onLog,
      onNotification: options.onNotification,
    });
    this.#probe = new LinkProbe({
      engine: this,
      gate: this.#gate,
      negotiation: options.negotiation,
      options,
    });
    this.#inputs = new InputRounds({
      engine: this,
      clock: options.clock,
      validator: options.validator,
      report: this.#report,
    });
    this.#streams = new Streams({
      gate: this.#gate,
      negotiation: options.negotiation,
      exchanges: this.#attempts,
      isClosed: () => this.isClosed,
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
    if (spec.isProbe) this.#probe.operation = operation;
    if (spec.signal !== undefined) this.#aborts.join(spec.signal, operation);
    this.#inputs.expect(operation);
    this.#report.started(operation);
    this.dispatch(operation, { type: "start" });
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
    if (this.#operations.size - (this.#probe.operation === undefined ? 0 : 1) < allowed) return undefined;
    const error = new LimitError(
      `${allowed} operations are pending already; wait for some to end, or raise limits.pendingOperations`,
      "pendingOperations",
      allowed,
      "not-sent",
    );
    return { at: "failed", error };
  }

  dispatch(operation: PendingOperation, event: OperationEvent): void {
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
        return this.#attempts.send(operation);
      case "settle":
        return this.#settle(operation);
      case "cancelAttempt":
        return this.#attempts.cancel(operation, event);
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

  /** Let through by the gate. What a host did when another was let through may have ended this one meanwhile. */
  #passed(operation: PendingOperation): void {
    if (isTerminal(operation.state.phase)) return;
    const now = this.#clock.now();
    if (operation.reducing) return this.#attempts.issue(operation, now);
    operation.reducing = true;
    this.#attempts.issue(operation, now);
    this.#drain(operation);
  }

  // --- recovery, inputs, pauses ---------------------------------------------------------------------------------

  #recover(operation: PendingOperation): void {
    this.#deadlines.arm(operation, operation.operationDueAt, operation.phaseAt);
    recover(operation, this.#negotiation, this);
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
      return this.dispatch(operation, { type: "stop", error: phase.error });
    }
    this.#deadlines.arm(operation, Math.min(resumeAt, operation.operationDueAt), operation.phaseAt);
  }

  #due(operation: PendingOperation): void {
    const now = this.#clock.now();
    if (now + 1 >= operation.operationDueAt) return this.#operationDue(operation, now);
    const { phase } = operation.state;
    if (phase.at === "pausing") this.dispatch(operation, { type: "timer" });
    else if (phase.at === "awaiting") {
      const error = attemptTimedOut(operation, now);
      tag(error, operation, operation.attempt?.wireId);
      this.dispatch(operation, { type: "attemptTimeout", error, random: Math.random() });
    }
  }

  #operationDue(operation: PendingOperation, now: number): void {
    const error = operationTimedOut(operation, now);
    tag(error, operation, operation.attempt?.wireId);
    this.dispatch(operation, { type: "stop", error });
  }

  // --- the end --------------------------------------------------------------------------------------------------

  #settle(operation: PendingOperation): void {
    this.#operations.remove(operation);
    const { spec } = operation;
    if (spec.isProbe) this.#probe.operation = undefined;
    if (spec.signal !== undefined) this.#aborts.leave(spec.signal, operation);
    if (this.#operations.size === 0) this.#deadlines.idle();
    const phase = operation.state.phase as SettledPhase;
    if (phase.at === "failed" || phase.at === "cancelled") finishError(phase, operation);
    this.#report.settled(operation, phase);
    spec.settled(phase, operation);
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
      this.dispatch(operation, { type: "stop", error: clientClosed(delivery) });
    }
    await this.#transport.close();
  }

  // --- what the transport tells outside any exchange ------------------------------------------------------------

  notification(frame: NotificationFrame): void {
    const { onLog, onNotification } = this.#options;
    if (frame.method === "notifications/message") {
      tellLogEntry(frame, onlyLogger(this.#operations) ?? onLog);
    } else callHost(onNotification, frame);
  }

  link(state: LinkState, cause?: Error): void {
    if (state === "down" || state === "closed") this.#gate.reset();
    this.#report.link(state, cause);
    for (const watcher of [...this.#linkWatchers]) watcher(state);
  }

  anomaly(kind: AnomalyKind, detail: unknown): void {
    this.#report.anomaly(kind, detail);
    this.#probe.anomaly(kind, detail);
  }

  /** Watches the link; the returned function stops. */
  watchLink(watcher: (state: LinkState) => void): () => void {
    this.#linkWatchers.add(watcher);
    return () => this.#linkWatchers.delete(watcher);
  }

  /** Opens a stream: see {@link Streams.open}. */
  openStream(stream: StreamRequest, sink: ExchangeSink): StreamHandle {
    return this.#streams.open(stream, sink);
  }
}
