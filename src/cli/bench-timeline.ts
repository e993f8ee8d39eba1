/**
 * Where the time of measured calls went, told from the engine's events: in the exchange of each round (wire and server),
 * in answering its input requests, in pauses that the protocol asks for, and in the engine itself.
 */

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { DIAGNOSTICS_CHANNEL, type RallyEvent } from "../events.ts";

/** One round of one call, in milliseconds. */
export interface RoundTimes {
  readonly round: number;
  /** From handing the request to the transport until its answer was there. */
  readonly exchangeMs: number;
  /** Answering what the round before had asked. */
  readonly inputMs: number;
  /** A pause before the round: state-only answers are paced, and so is what is sent again. */
  readonly pauseMs: number;
  /** The rest: making the request, and reading and checking the answer. */
  readonly engineMs: number;
}

/** One call that is being measured. */
class Timeline {
  readonly rounds: RoundTimes[] = [];
  /** When the last thing happened whose time is booked. */
  #since: number;
  #sentAt: number | undefined;
  #inputMs = 0;
  #wasAsked = false;
  #wasLost = false;

  constructor(startedAt: number) {
    this.#since = startedAt;
  }

  take(event: RallyEvent): void {
    switch (event.type) {
      case "input.requested":
        this.#wasAsked = true;
        break;
      case "input.answered":
        // The handlers of a round run beside each other: the slowest one counts.
        this.#inputMs = Math.max(this.#inputMs, event.ms);
        break;
      case "attempt.sent":
        this.#sentAt = event.atMs;
        break;
      case "attempt.ended":
        if (event.outcome === "complete" || event.outcome === "input_required") {
          this.#book(event.round, event.atMs);
        } else {
          // A lost attempt is no part of a round's exchange; the pause before the next one begins here.
          this.#since = event.atMs;
          this.#wasLost = true;
        }
        break;
    }
  }

  /** The result reached the host. */
  end(at: number): readonly RoundTimes[] {
    const last = this.rounds.at(-1);
    if (last !== undefined) {
      this.rounds[this.rounds.length - 1] = { ...last, engineMs: last.engineMs + at - this.#since };
    }
    return this.rounds;
  }

  #book(round: number, endedAt: number): void {
    const sentAt = this.#sentAt ?? endedAt;
    const before = Math.max(0, sentAt - this.#since);
    const isPaced = this.#wasLost || (round > 1 && !this.#wasAsked);
    const inputMs = Math.min(this.#inputMs, before);
    this.rounds.push({
      round,
      exchangeMs: endedAt - sentAt,
      inputMs,
      pauseMs: isPaced ? before : 0,
      engineMs: isPaced ? 0 : before - inputMs,
    });
    this.#since = endedAt;
    this.#inputMs = 0;
    this.#wasAsked = false;
    this.#wasLost = false;
  }
}

/** Listens to the events of this process, which has one client. */
export class Timelines {
  readonly #running = new Map<number, Timeline>();
  #next: Timeline | undefined;
  readonly #listener = (message: unknown): void => {
    const event = message as RallyEvent;
    if (!("operationId" in event)) return;
    if (event.type === "operation.started" && this.#next !== undefined) {
      this.#running.set(event.operationId, this.#next);
      this.#next = undefined;
    }
    this.#running.get(event.operationId)?.take(event);
    if (event.type === "operation.ended") this.#running.delete(event.operationId);
  };

  constructor() {
    subscribe(DIAGNOSTICS_CHANNEL, this.#listener);
  }

  /** Measures one call. An operation begins before the call that starts it has returned. */
  async measure<T>(call: () => Promise<T>): Promise<{ value: T; ms: number; rounds: readonly RoundTimes[] }> {
    const startedAt = performance.now();
    const timeline = new Timeline(startedAt);
    this.#next = timeline;
    const result = call();
    this.#next = undefined;
    const value = await result;
    const endedAt = performance.now();
    return { value, ms: endedAt - startedAt, rounds: timeline.end(endedAt) };
  }

  /** Stops listening. */
  end(): void {
    unsubscribe(DIAGNOSTICS_CHANNEL, this.#listener);
  }
}
