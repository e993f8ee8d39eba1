/** What becomes of a call: the promise of it, and the outcome of manual mode. */

import type { Continuation } from "./continuation.ts";
import { SuspendedError } from "./errors.ts";
import type { Result } from "./mcp-types.ts";
import type { SettledPhase } from "./pending.ts";
import { showKeys } from "./show.ts";
import type { JsonObject } from "./wire.ts";

/** What `begin` and `resume` give. */
export type Outcome<R = Result> =
  | { readonly status: "complete"; readonly result: R }
  | {
      readonly status: "input_required";
      /** The input requests by key; absent when the server gave only state. */
      readonly inputRequests?: Readonly<
        Record<string, { readonly method: string; readonly params?: JsonObject }>
      >;
      /** Plain JSON for {@link Client.resume}. It holds secrets. */
      readonly continuation: Continuation;
    };

/** A promise whose rejection is the caller's to handle, and never an unhandled one before the caller had the chance. */
export function promised<R>(
  start: (resolve: (value: R) => void, reject: (error: unknown) => void) => void,
): Promise<R> {
  let resolve!: (value: R) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<R>((onResult, onError) => {
    resolve = onResult;
    reject = onError;
  });
  start(resolve, (error) => {
    // Where `close()` ends a call before its caller could attach a handler, Node would end the process (SAF-02).
    promise.catch(ignore);
    reject(error);
  });
  return promise;
}

/** Takes a rejection that someone else is told of. */
export function ignore(): void {}

/** The outcome of an operation that was suspended. */
export function outcomeOf({ continuation }: Extract<SettledPhase, { at: "suspended" }>): Outcome {
  const { inputRequests } = continuation;
  return { status: "input_required", ...(inputRequests !== undefined && { inputRequests }), continuation };
}

/** The error of a call that was suspended, where only a result could be given. */
export function suspendedError(
  phase: Extract<SettledPhase, { at: "suspended" }>,
  method: string,
): SuspendedError {
  return new SuspendedError(
    `${method} needs an input that was left to the host (${showKeys(phase.open)}). Answer it with client.resume(error.continuation, { key: answer }).`,
    phase.open,
    phase.continuation,
  );
}
