/** Clocks for tests: one that runs fast, for real transports, and one that only moves when it is told to. */

import type { Clock, TimerHandle } from "../../src/clock.ts";

/** The real clock, `factor` times as fast: a pause of 250 ms takes 5 ms of the test's time at a factor of 50. */
export function fastClock(factor = 50): Clock {
  return {
    now: () => performance.now() * factor,
    wallNow: () => Date.now(),
    setTimer: (callback, ms) => setTimeout(callback, Math.min(ms / factor, 2 ** 31 - 1)),
    clearTimer: (handle) => clearTimeout(handle as ReturnType<typeof setTimeout>),
  };
}

/** A clock that stands still until `advance`. */
export interface ManualClock extends Clock {
  /** How many timers are armed. */
  readonly timers: number;
  /** Moves on by `ms`, fires what falls due on the way, in order, and lets what it set off come to rest. */
  advance(ms: number): Promise<void>;
}

/** Makes a {@link ManualClock} that begins at 1000 ms. */
export function manualClock(): ManualClock {
  const timers = new Map<number, { at: number; callback: () => void }>();
  let now = 1000;
  let last = 0;
  return {
    now: () => now,
    wallNow: () => now,
    setTimer(callback, ms): TimerHandle {
      timers.set(++last, { at: now + Math.max(0, ms), callback });
      return last;
    },
    clearTimer: (handle) => void timers.delete(handle as number),
    get timers() {
      return timers.size;
    },
    async advance(ms) {
      const end = now + ms;
      await settled();
      for (;;) {
        const due = [...timers].filter(([, timer]) => timer.at <= end).sort((a, b) => a[1].at - b[1].at)[0];
        if (due === undefined) break;
        const [handle, { at, callback }] = due;
        timers.delete(handle);
        now = Math.max(now, at);
        callback();
        await settled();
      }
      now = end;
    },
  };
}

/** Waits until the promises that are under way have come to rest: a turn of the event loop. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
