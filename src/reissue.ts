/**
 * The policy of re-issue, pure: may an attempt that brought no answer be issued again, and when (MRTR-18).
 */

import { ConnectError } from "./errors.ts";
import type { ExchangeFailure } from "./transport.ts";

/** What the host chose. */
export interface ReissueRules {
  /**
   * always (the default): whatever was lost is issued again. safe: a `tools/call` only when it is known to be
   * repeatable. never: nothing that may have run.
   */
  readonly policy: "always" | "safe" | "never";
  /** The most re-issues in one operation. Default 2. */
  readonly max: number;
  /** The pause before the first re-issue in milliseconds, doubled for each further one, with jitter. Default 250. */
  readonly backoffMs: number;
  /** Whether an attempt that timed out may be issued again too. Default false: a timeout is final. */
  readonly timeouts: boolean;
}

/** The defaults of {@link ReissueRules}. */
export const DEFAULT_REISSUE: ReissueRules = { policy: "always", max: 2, backoffMs: 250, timeouts: false };

/** The verdict on a failed attempt. */
export type Verdict =
  | { readonly again: "no"; readonly why: string }
  /** The request never ran: the same round again, inputs and state kept. */
  | { readonly again: "same-round"; readonly delayMs: number }
  /** It may have run: the round trip starts over, inputs and state dropped. */
  | { readonly again: "start-over"; readonly delayMs: number };

/** What the verdict depends on. */
export interface ReissueCase {
  readonly rules: ReissueRules;
  readonly failure: ExchangeFailure;
  /** How often this operation was issued again before. */
  readonly reissues: number;
  /** Whether a second run does no harm: any method but `tools/call`, or a tool that is said to be repeatable. */
  readonly repeatable: boolean;
  /** A number in [0, 1) for the jitter. */
  readonly random: number;
}

/** The longest pause between two attempts, unless the server asks for a longer one. */
const MAX_BACKOFF_MS = 30_000;

/** The longest `Retry-After` that is waited for: a server that wants more is busy for longer than a call should last. */
const LONGEST_RETRY_AFTER_MS = 60_000;

/** Decides. A `Retry-After` is a floor under the pause; whether it fits before the deadline is the engine's to check. */
export function judgeReissue({ rules, failure, reissues, repeatable, random }: ReissueCase): Verdict {
  const { code } = failure.error;
  if (code === "closed") return no("the client was closed");
  if (failure.error instanceof ConnectError && failure.error.permanent) return no("trying again cannot help");
  if (code === "frame" || code === "limit")
    return no("an answer came and could not be used: the next would be the same");
  if (reissues >= rules.max) {
    return no(rules.max === 0 ? "the budget is 0" : `the budget of ${rules.max} re-issues is used up`);
  }
  const { retryAfterMs = 0 } = failure;
  if (retryAfterMs > LONGEST_RETRY_AFTER_MS) {
    return no(
      `the peer asks to wait ${Math.ceil(retryAfterMs / 1000)} s, and at most ${LONGEST_RETRY_AFTER_MS / 1000} s are waited for`,
    );
  }
  const delayMs = Math.max(backoff(rules.backoffMs, reissues, random), retryAfterMs);
  switch (failure.delivery) {
    case "not-sent":
      return { again: "same-round", delayMs };
    case "rejected":
      if (failure.retryAfterMs === undefined) return no("the peer refused it and named no time to try again");
      return { again: "same-round", delayMs };
    case "unknown":
      if (rules.policy === "never") return no('the policy is "never"');
      if (rules.policy === "safe" && !repeatable) {
        return no('the policy is "safe" and the tool is not known to be repeatable');
      }
      return { again: "start-over", delayMs };
  }
}

/** A growing pause with jitter: between half and the whole of `baseMs * 2^n`, held at `maxMs` (30 s by default). */
export function backoff(baseMs: number, n: number, random: number, maxMs = MAX_BACKOFF_MS): number {
  const full = Math.min(baseMs * 2 ** n, maxMs);
  return full / 2 + (full / 2) * random;
}

function no(why: string): Verdict {
  return { again: "no", why };
}
