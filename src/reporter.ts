/**
 * Turns what the engine does into events. Where no one listens, no event is built. Probes are the engine's own affair and
 * make no events.
 */

import type { Clock } from "./clock.ts";
import type { AttemptOutcome, EventBus } from "./events.ts";
import type { InputRequest } from "./input-required.ts";
import type { Attempt, PendingOperation, SettledPhase } from "./pending.ts";
import { clip } from "./show.ts";
import type { AnomalyKind, Delivery, LinkState } from "./transport.ts";
import { isObject, typeName } from "./wire.ts";

/** How an attempt ended, in the words of its event. */
export interface AttemptEnd {
  readonly outcome: AttemptOutcome;
  readonly rpcCode?: number;
  readonly code?: string;
  readonly delivery?: Delivery;
}

/** The engine's voice. */
export class Reporter {
  readonly #bus: EventBus;
  readonly #clock: Clock;

  constructor(bus: EventBus, clock: Clock) {
    this.#bus = bus;
    this.#clock = clock;
  }

  /** Whether anyone listens. */
  get watched(): boolean {
    return this.#bus.watched;
  }

  started(operation: PendingOperation): void {
    if (!this.#listens(operation)) return;
    const { name } = operation.spec.rules;
    const stamp = this.#stamp(operation);
    this.#bus.publish({ type: "operation.started", ...stamp, ...(name !== undefined && { name }) });
  }

  settled(operation: PendingOperation, phase: SettledPhase): void {
    if (!this.#listens(operation)) return;
    const { round, attempt } = operation.state;
    const stamp = this.#stamp(operation);
    this.#bus.publish({
      type: "operation.ended",
      ...stamp,
      outcome: phase.at,
      ...("error" in phase && { code: phase.error.code }),
      rounds: round,
      attempts: attempt,
      ms: stamp.atMs - operation.startedAt,
    });
  }

  late(operation: PendingOperation, what: string): void {
    if (this.#listens(operation)) {
      this.#bus.publish({ type: "operation.late", ...this.#stamp(operation), what });
    }
  }

  round(operation: PendingOperation): void {
    if (!this.#listens(operation)) return;
    const { round } = operation.state;
    this.#bus.publish({ type: "round.started", ...this.#stamp(operation), round });
  }

  sent(attempt: Attempt, characters: number): void {
    if (!this.#listens(attempt.operation)) return;
    this.#bus.publish({ type: "attempt.sent", ...this.#stampAttempt(attempt), characters });
  }

  notified(attempt: Attempt, notification: string): void {
    if (!this.#listens(attempt.operation)) return;
    this.#bus.publish({ type: "attempt.notified", ...this.#stampAttempt(attempt), notification });
  }

  attemptEnded(attempt: Attempt, end: AttemptEnd): void {
    if (!this.#listens(attempt.operation)) return;
    const stamp = this.#stampAttempt(attempt);
    this.#bus.publish({ type: "attempt.ended", ...stamp, ...end, ms: stamp.atMs - attempt.sentAt });
  }

  asked(operation: PendingOperation, requests: readonly InputRequest[]): void {
    if (!this.#listens(operation)) return;
    const stamp = { ...this.#stamp(operation), round: operation.state.round };
    for (const { key, method } of requests) {
      this.#bus.publish({ type: "input.requested", ...stamp, key, inputMethod: method });
    }
  }

  inputAnswered(operation: PendingOperation, key: string, answer: string, ms: number): void {
    if (!this.#listens(operation)) return;
    const { round } = operation.state;
    this.#bus.publish({ type: "input.answered", ...this.#stamp(operation), round, key, answer, ms });
  }

  link(state: LinkState, cause: Error | undefined): void {
    if (!this.#bus.watched) return;
    this.#bus.publish({ type: "link.changed", state, ...(cause && { cause }), atMs: this.#clock.now() });
  }

  anomaly(kind: AnomalyKind, detail: unknown): void {
    if (!this.#bus.watched) return;
    this.#bus.publish({ type: "wire.anomaly", kind, detail: shownDetail(detail), atMs: this.#clock.now() });
  }

  #listens(operation: PendingOperation): boolean {
    return this.#bus.watched && !operation.spec.isProbe;
  }

  #stamp(operation: PendingOperation) {
    return { operationId: operation.id, method: operation.method, atMs: this.#clock.now() };
  }

  #stampAttempt(attempt: Attempt) {
    const { operation, round, number, wireId } = attempt;
    return { ...this.#stamp(operation), round, attempt: number, wireId };
  }
}

/**
 * What a transport says of an anomaly, one level deep: a transport of the host's own may hand over a whole frame, and what
 * is inside a result or params may be a secret (SAF-01).
 */
function shownDetail(detail: unknown): unknown {
  if (!isObject(detail) || detail instanceof Error) return shownMember(detail);
  return Object.fromEntries(Object.entries(detail).map(([key, member]) => [key, shownMember(member)]));
}

function shownMember(value: unknown): unknown {
  if (typeof value === "string") return clip(value);
  if (typeof value !== "object" || value === null || value instanceof Error) return value;
  return typeName(value);
}
