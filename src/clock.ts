/** What a timer function gave; opaque to everyone but the clock that made it. */
export type TimerHandle = unknown;

/**
 * Time as the engine sees it. The engine takes every reading and every timer from here, so a test can hold the time still.
 */
export interface Clock {
  /** A monotonic reading in milliseconds. Only differences mean anything. */
  now(): number;
  /** The time of day in milliseconds since 1970: for `Retry-After` dates alone, never for durations. */
  wallNow(): number;
  /** Calls `callback` once after about `ms` milliseconds; longer than 2^31-1 ms is held at that bound. */
  setTimer(callback: () => void, ms: number): TimerHandle;
  /** Forgets a timer; a timer that has fired or is unknown does no harm. */
  clearTimer(handle: TimerHandle): void;
}

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The real clock: `performance.now`, `setTimeout` and `clearTimeout` of the platform. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wallNow: () => Date.now(),
  setTimer: (callback, ms) => setTimeout(callback, Math.min(ms, LONGEST_TIMER_MS)),
  clearTimer: (handle) => clearTimeout(handle as ReturnType<typeof setTimeout>),
};
