/** How long to wait before a link is opened again: growing, jittered, and forgiven only after sustained uptime. */

import { type Clock, systemClock } from "../src/clock.ts";

/** Bounds of a {@link Backoff}. */
export interface BackoffOptions {
  /** The wait before the second restart in a row, in milliseconds; it doubles from there. The first restart waits for nothing. Default 250. */
  readonly initialMs?: number | undefined;
  /** The longest wait, in milliseconds. Default 30 000. */
  readonly maxMs?: number | undefined;
  /** How long a link must have been up for the count to begin anew, in milliseconds. Default 10 000. */
  readonly sustainedMs?: number | undefined;
}

/** Counts the openings of one link. Jitter takes a wait down by up to a half, so that many clients do not return at once. */
export class Backoff {
  readonly #initialMs: number;
  readonly #maxMs: number;
  readonly #sustainedMs: number;
  readonly #clock: Clock;
  readonly #random: () => number;
  #openings = 0;
  #upAt: number | undefined;

  constructor(options: BackoffOptions = {}, clock: Clock = systemClock, random: () => number = Math.random) {
    this.#initialMs = options.initialMs ?? 250;
    this.#maxMs = options.maxMs ?? 30_000;
    this.#sustainedMs = options.sustainedMs ?? 10_000;
    this.#clock = clock;
    this.#random = random;
  }

  /** Counts one more opening and says how many milliseconds to wait before it. */
  next(): number {
    const restarts = this.#openings++;
    if (restarts < 2) return 0;
    const full = Math.min(this.#maxMs, this.#initialMs * 2 ** (restarts - 2));
    return full * (1 - this.#random() / 2);
  }

  /** The link is up. */
  up(): void {
    this.#upAt = this.#clock.now();
  }

  /** The link is down, or did not come up. */
  down(): void {
    if (this.#upAt !== undefined && this.#clock.now() - this.#upAt >= this.#sustainedMs) this.#openings = 1;
    this.#upAt = undefined;
  }
}
