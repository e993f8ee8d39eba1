/**
 * The probe of a link: `server/discover` as its first exchange, and what comes of it for those that wait at the gate
 * (VER-02).
 */

import { copyError } from "./engine-errors.ts";
import { FrameError, type RallyError, TransportError } from "./errors.ts";
import type { Negotiation } from "./negotiation.ts";
import type { OperationEvent } from "./operation-state.ts";
import type { Dispatcher, OperationSpec, PendingOperation } from "./pending.ts";
import type { AnomalyKind } from "./transport.ts";
import { isObject, type JsonObject } from "./wire.ts";

/** How links are probed. */
export interface ProbeOptions {
  /** Makes the spec of a probe. */
  readonly probeSpec: (settled: OperationSpec["settled"]) => OperationSpec;
  /** The bound on a probe in milliseconds. */
  readonly probeMs: number;
  /** Told of a probe's discovery; says what keeps the client from going on. */
  readonly onDiscovery: (result: JsonObject) => RallyError | undefined;
}

/** What the engine lends to this. */
export interface LinkProbeParts {
  readonly engine: Dispatcher & { start(spec: OperationSpec): void };
  readonly gate: { passed(): void; refused(error: RallyError): void };
  readonly negotiation: Negotiation;
  readonly options: ProbeOptions;
}

/** The probes of one client. */
export class LinkProbe {
  /** The probe that is out: one at a time, for the link. Kept by the engine, as it begins and ends. */
  operation: PendingOperation | undefined;
  readonly #parts: LinkProbeParts;

  constructor(parts: LinkProbeParts) {
    this.#parts = parts;
  }

  /** Sends one, and tells the gate what came of it. */
  start(): void {
    const { engine, gate, negotiation, options } = this.#parts;
    const { probeSpec, probeMs, onDiscovery } = options;
    engine.start(
      probeSpec((phase) => {
        if (phase.at === "succeeded") {
          const error = onDiscovery(phase.result);
          if (error === undefined) gate.passed();
          else gate.refused(error);
        } else if (phase.at !== "suspended") {
          gate.refused(negotiation.judgeProbe(phase.error, probeMs));
        }
      }),
    );
  }

  /**
   * Nothing but the probe is out on a link that is being probed: an answer to nothing, or a message that breaks off, is
   * meant for it. Waiting for a better one would only take `probeMs`. A banner or a log line is no message.
   */
  anomaly(kind: AnomalyKind, detail: unknown): void {
    if (this.operation === undefined) return;
    const isBroken = kind === "bad-frame" && isObject(detail) && detail.isMessage === true;
    if (!isBroken && kind !== "unknown-id") return;
    const error = new FrameError(
      isBroken
        ? "the answer to server/discover is no valid message"
        : "the answer to server/discover carries an id that is not the request's",
    );
    this.#parts.engine.dispatch(this.operation, { type: "stop", error });
  }
}

/** What happens to an operation whose link could not be had, or has an old server. Each gets an error of its own. */
export function linkRefused(error: RallyError): OperationEvent {
  const own = copyError(error);
  if (!(own instanceof TransportError)) return { type: "stop", error: own };
  // What was lost is the probe: the operation itself has not left.
  own.delivery = "not-sent";
  if (own.code === "closed") return { type: "stop", error: own };
  return { type: "failure", failure: { delivery: "not-sent", error: own }, random: Math.random() };
}
