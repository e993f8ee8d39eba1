/** Puts right what a server refused, without the host: another version, other headers, another token (MRTR-19). */

import type { RallyError, RpcError } from "./errors.ts";
import type { Negotiation } from "./negotiation.ts";
import type { Dispatcher, PendingOperation } from "./pending.ts";

/** Does what the phase names, and feeds back whether the next attempt can go out. */
export function recover(operation: PendingOperation, negotiation: Negotiation, engine: Dispatcher): void {
  const { phase } = operation.state;
  if (phase.at !== "recovering") return;
  switch (phase.kind) {
    case "unauthorized":
    case "scope":
      // The transport asks the host's token function again, with the challenge, when the next attempt goes out.
      return engine.dispatch(operation, { type: "recovered" });
    case "version": {
      const error = negotiation.renegotiate(phase.error as RpcError, operation.version);
      return engine.dispatch(operation, error ? { type: "unrecovered", error } : { type: "recovered" });
    }
    case "headers":
      return refreshMirrored(operation, phase.error, engine);
  }
}

function refreshMirrored(operation: PendingOperation, original: RallyError, engine: Dispatcher): void {
  const unrecovered = () => engine.dispatch(operation, { type: "unrecovered", error: original });
  const refreshed = operation.spec.mirror?.refreshMirrored();
  if (refreshed === undefined) return unrecovered();
  refreshed.then((mirrored) => {
    if (mirrored === undefined) unrecovered();
    else engine.dispatch(operation, { type: "recovered", mirrored });
  }, unrecovered);
}
