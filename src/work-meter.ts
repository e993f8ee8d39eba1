/**
 * Bounds the time that checking one value may take (SCH-01). Composition keywords and references can make a schema of a
 * few hundred bytes take hours on a small value.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic#composition-keyword-resource-use}
 */

/** The value took more work than the bound allows. */
export class WorkExceeded extends Error {}

/** Counts work, and looks at the time now and then. */
export interface WorkMeter {
  /** Begins the check of one value. */
  begin(): void;
  /** Adds work, in units of about a nanosecond; throws {@link WorkExceeded} when the time is up. */
  spend(units: number): void;
}

// The clock is first read after so much work, so that a small check never fails for the sake of a busy machine.
const FREE_UNITS = 5_000_000;
const STEP_UNITS = 500_000;

/** A meter that stops a check after `checkMs` milliseconds, reckoned from its start, once it has done real work. */
export function createWorkMeter(checkMs: number): WorkMeter {
  let spent = 0;
  let next = FREE_UNITS;
  let startedAt = 0;
  return {
    begin() {
      spent = 0;
      next = FREE_UNITS;
      startedAt = performance.now();
    },
    spend(units) {
      spent += units;
      if (spent < next) return;
      next = spent + STEP_UNITS;
      if (performance.now() - startedAt > checkMs) throw new WorkExceeded();
    },
  };
}
