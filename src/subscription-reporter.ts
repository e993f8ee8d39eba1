/** Turns what happens to one subscription into events. Where no one listens, no event is built. */

import type { Clock } from "./clock.ts";
import type { EventBus } from "./events.ts";
import type { Listen } from "./listen-request.ts";
import type { SubscriptionPhase } from "./subscription-state.ts";
import type { AnomalyKind } from "./transport.ts";
import type { WireId } from "./wire.ts";

/** Something of a listen request that is out of place. */
export interface ListenAnomaly {
  readonly kind: AnomalyKind;
  readonly detail: object;
  /** Tells anomalies of one kind apart. */
  readonly variant?: string;
}

/** The voice of one subscription. */
export class SubscriptionReporter {
  readonly #id: number;
  readonly #bus: EventBus;
  readonly #clock: Clock;

  constructor(id: number, bus: EventBus, clock: Clock) {
    this.#id = id;
    this.#bus = bus;
    this.#clock = clock;
  }

  /** The subscription came to `phase`. `code` is that of the error that it was lost by. */
  changed(
    phase: SubscriptionPhase,
    wireId: WireId | undefined,
    refused: readonly string[],
    code: string | undefined,
  ): void {
    if (!this.#bus.watched) return;
    const { at } = phase;
    const errorCode = at === "closed" && phase.end.reason === "failed" ? phase.end.error.code : code;
    this.#bus.publish({
      type: "subscription.changed",
      subscriptionId: this.#id,
      state: at,
      ...(wireId !== undefined && { wireId }),
      ...(at === "open" && { refused }),
      ...(at === "lost" && { delayMs: phase.delayMs }),
      ...(at === "closed" && { reason: phase.end.reason }),
      ...(errorCode !== undefined && { code: errorCode }),
      atMs: this.#clock.now(),
    });
  }

  /** Each kind of anomaly, and each variant of it, is told once for each listen request. */
  anomaly(listen: Listen, { kind, detail, variant = "" }: ListenAnomaly): void {
    const key = `${kind} ${variant}`;
    if (listen.told.has(key) || !this.#bus.watched) return;
    listen.told.add(key);
    const atMs = this.#clock.now();
    this.#bus.publish({ type: "wire.anomaly", kind, detail, atMs });
  }
}
