/**
 * The mutable record of one running operation, and of the attempt that is out for it. Only the engine changes them.
 */

import type { Abortable } from "./abort-hub.ts";
import type { Due } from "./deadlines.ts";
import type { Declarations } from "./declarations.ts";
import { cancelled } from "./engine-errors.ts";
import type { OperationInfo, TimeSpent } from "./errors.ts";
import type { ListItem } from "./operation-list.ts";
import {
  createOperation,
  type OperationEvent,
  type OperationRules,
  type OperationState,
  type Phase,
} from "./operation-state.ts";
import type { LogLevel } from "./protocol.ts";
import type {
  AuthChallenge,
  Envelope,
  Exchange,
  ExchangeFailure,
  ExchangeSink,
  MirroredField,
  NotificationFrame,
  ResponseFrame,
} from "./transport.ts";
import type { WireId } from "./wire.ts";

/** One progress report, of its own attempt only (PRG-01). */
export interface Progress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
  readonly round: number;
  readonly attempt: number;
}

/** One log entry of the server. */
export interface LogEntry {
  readonly level: string;
  readonly logger?: string;
  readonly data: unknown;
}

/** Bounds of time in milliseconds; undefined for none. */
export interface Timeouts {
  /** One attempt; reset by progress when `resetOnProgress` is on. Default 60 000. */
  readonly attemptMs: number | undefined;
  /** One attempt, never reset. Default 600 000. */
  readonly attemptMaxMs: number | undefined;
  /** The whole operation. Default: none. */
  readonly operationMs: number | undefined;
  /** One input handler. Default: none. */
  readonly inputMs: number | undefined;
  /** Whether progress starts `attemptMs` anew. Default false. */
  readonly resetOnProgress: boolean;
}

/** Knows the mirrored fields of a call. */
export interface MirrorSource {
  /** After -32020: the fields anew, or undefined when they can't be had. */
  refreshMirrored(): Promise<readonly MirroredField[] | undefined>;
}

/** What a call asks of the engine. */
export interface OperationSpec {
  readonly rules: OperationRules;
  /** Where an operation begins that goes on from a continuation. */
  readonly resumed: OperationState | undefined;
  /** The mirrored fields of the first attempt. */
  readonly mirrored: readonly MirroredField[];
  readonly declarations: Declarations;
  readonly timeouts: Timeouts;
  readonly applyDefaults: boolean;
  readonly signal: AbortSignal | undefined;
  /** The host's metadata: text when it is fixed, a function when it is made anew for each attempt. */
  readonly hostMeta: string | (() => string);
  readonly logLevel: LogLevel | undefined;
  readonly context: unknown;
  readonly onProgress: ((progress: Progress) => void) | undefined;
  readonly onLog: ((entry: LogEntry) => void) | undefined;
  /** What can find the mirrored fields anew. */
  readonly mirror: MirrorSource | undefined;
  /** The probe of a link: not held back by it, and not shown among the host's operations. */
  readonly isProbe: boolean;
  /** Told once, of a terminal phase. */
  readonly settled: (phase: SettledPhase, operation: PendingOperation) => void;
}

/** A phase in which an operation is over. */
export type SettledPhase = Extract<Phase, { at: "succeeded" | "suspended" | "failed" | "cancelled" }>;

/** What the engine offers to its parts and records. */
export interface Dispatcher {
  /** Feeds one event to an operation. Events that arrive while a reduction runs wait for their turn. */
  dispatch(operation: PendingOperation, event: OperationEvent): void;
}

/** What an attempt tells of. */
export interface AttemptOwner {
  notified(attempt: Attempt, frame: NotificationFrame): void;
  answered(attempt: Attempt, frame: ResponseFrame, envelope: Envelope | undefined): void;
  failed(attempt: Attempt, failure: ExchangeFailure): void;
}

/** One running operation. */
export class PendingOperation implements Due, Abortable, ListItem<PendingOperation> {
  previous: PendingOperation | undefined;
  next: PendingOperation | undefined;
  readonly id: number;
  readonly spec: OperationSpec;
  state: OperationState;
  dueAt = Number.POSITIVE_INFINITY;
  /** The attempt that is out. */
  attempt: Attempt | undefined;
  /** The protocol version that the last attempt declared; empty before the first was issued. */
  version = "";
  /** The handlers of the round that are running. */
  inputs: AbortController | undefined;
  /** The challenge that the next attempt answers. */
  challenge: AuthChallenge | undefined;
  /** True while a reduction and its effects run: further events wait in `queue`. */
  reducing = false;
  queue: OperationEvent[] | undefined;
  readonly startedAt: number;
  /** When the current phase began. */
  phaseAt: number;
  /** The last sign of life of the attempt that is out. */
  heardAt: number;
  /** The bound of the attempt that no progress moves. */
  attemptMaxAt = Number.POSITIVE_INFINITY;
  readonly operationDueAt: number;
  wireMs = 0;
  inputMs = 0;
  pauseMs = 0;
  readonly #dispatcher: Dispatcher;

  constructor(id: number, spec: OperationSpec, now: number, dispatcher: Dispatcher) {
    this.id = id;
    this.spec = spec;
    this.state = spec.resumed ?? createOperation(spec.rules, spec.mirrored);
    this.startedAt = now;
    this.phaseAt = now;
    this.heardAt = now;
    const { operationMs } = spec.timeouts;
    this.operationDueAt = operationMs === undefined ? Number.POSITIVE_INFINITY : now + operationMs;
    this.#dispatcher = dispatcher;
  }

  get method(): string {
    return this.spec.rules.method;
  }

  aborted(reason: unknown): void {
    this.#dispatcher.dispatch(this, { type: "cancel", error: cancelled(reason) });
  }

  /** Books the time of a phase that is being left. */
  leave(phase: Phase, now: number): void {
    const ms = now - this.phaseAt;
    if (phase.at === "awaiting" || phase.at === "recovering") this.wireMs += ms;
    else if (phase.at === "gathering") this.inputMs += ms;
    else if (phase.at === "pausing") this.pauseMs += ms;
    this.phaseAt = now;
  }

  /** Where the time went up to `now`. */
  spent(now: number): TimeSpent {
    const phase = this.state.phase.at;
    const ms = now - this.phaseAt;
    return {
      totalMs: now - this.startedAt,
      wireMs: this.wireMs + (phase === "awaiting" || phase === "recovering" ? ms : 0),
      inputMs: this.inputMs + (phase === "gathering" ? ms : 0),
      pauseMs: this.pauseMs + (phase === "pausing" ? ms : 0),
      silentMs: now - this.heardAt,
    };
  }

  info(wireId: WireId | undefined): OperationInfo {
    const { round, attempt } = this.state;
    return { id: this.id, method: this.method, round, attempt, ...(wireId !== undefined && { wireId }) };
  }
}

/** One attempt: the sink that its exchange delivers to. An attempt that is no longer the operation's has no effect. */
export class Attempt implements ExchangeSink {
  readonly operation: PendingOperation;
  readonly wireId: WireId;
  readonly round: number;
  readonly number: number;
  readonly sentAt: number;
  handle: Exchange | undefined;
  lastProgress = Number.NEGATIVE_INFINITY;
  readonly #owner: AttemptOwner;

  constructor(operation: PendingOperation, wireId: WireId, sentAt: number, owner: AttemptOwner) {
    this.operation = operation;
    this.wireId = wireId;
    this.round = operation.state.round;
    this.number = operation.state.attempt;
    this.sentAt = sentAt;
    this.#owner = owner;
  }

  notification(frame: NotificationFrame): void {
    this.#owner.notified(this, frame);
  }

  response(frame: ResponseFrame, envelope?: Envelope): void {
    this.#owner.answered(this, frame, envelope);
  }

  failure(failure: ExchangeFailure): void {
    this.#owner.failed(this, failure);
  }
}
