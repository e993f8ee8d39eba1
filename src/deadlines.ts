import type { Clock, TimerHandle } from "./clock.ts";

/** Something with a moment at which it wants to be called. */
export interface Due {
  /** A reading of the clock in milliseconds; Infinity for never. */
  dueAt: number;
}

/** Timers may fire a little early; a moment this close has come. */
const EARLY_MS = 1;

/**
 * One timer for all pending operations. Arming and disarming an operation is then a comparison, not a timer of its own,
 * which would cost more than the rest of a call over a fast transport.
 */
export class Deadlines<T extends Due> {
  readonly #clock: Clock;
  readonly #items: Iterable<T>;
  readonly #onDue: (item: T) => void;
  readonly #fire = () => this.#run();
  #timer: TimerHandle | undefined;
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, items: Iterable<T>, onDue: (item: T) => void) {
    this.#clock = clock;
    this.#items = items;
    this.#onDue = onDue;
  }

  /**
   * Sets when `item` is due. An item that is due later than the timer is found when the timer fires.
   *
   * @param now a reading of the clock that the caller has just taken
   */
  arm(item: T, dueAt: number, now: number): void {
    item.dueAt = dueAt;
    if (dueAt < this.#timerAt) this.#set(dueAt, now);
  }

  /** Stops the timer: nothing is pending any more. */
  idle(): void {
    if (this.#timer === undefined) return;
    this.#clock.clearTimer(this.#timer);
    this.#timer = undefined;
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  #set(dueAt: number, now: number): void {
    if (this.#timer !== undefined) this.#clock.clearTimer(this.#timer);
    this.#timerAt = dueAt;
    this.#timer = this.#clock.setTimer(this.#fire, Math.max(0, dueAt - now));
  }

  #run(): void {
    this.#timer = undefined;
    this.#timerAt = Number.POSITIVE_INFINITY;
    const latest = this.#clock.now() + EARLY_MS;
    const due: T[] = [];
    for (const item of this.#items) if (item.dueAt <= latest) due.push(item);
    for (const item of due) {
      if (item.dueAt > latest) continue;
      item.dueAt = Number.POSITIVE_INFINITY;
      this.#onDue(item);
    }
    let next = Number.POSITIVE_INFINITY;
    for (const item of this.#items) if (item.dueAt < next) next = item.dueAt;
    if (next < this.#timerAt) this.#set(next, this.#clock.now());
  }
}
