/** Runs the handlers of an operation's open round, and feeds back what came of them. */

import type { Clock } from "./clock.ts";
import { answersChanged } from "./engine-errors.ts";
import type { RallyError } from "./errors.ts";
import { encodeResponses, type Gathered, gatherInputs } from "./inputs.ts";
import type { OperationEvent } from "./operation.ts";
import type { PendingOperation } from "./pending.ts";
import type { Reporter } from "./reporter.ts";
import type { SchemaValidator } from "./validate.ts";

/** What the engine lends to this. */
export interface InputRoundsParts {
  readonly clock: Clock;
  readonly validator: SchemaValidator;
  readonly report: Reporter;
  readonly dispatch: (operation: PendingOperation, event: OperationEvent) => void;
}

/** The input rounds of all operations. A round that is over, for whatever reason, has no effect any more. */
export class InputRounds {
  readonly #parts: InputRoundsParts;

  constructor(parts: InputRoundsParts) {
    this.#parts = parts;
  }

  /** Asks the host's handlers what the phase asks. */
  open(operation: PendingOperation): void {
    const { phase, round } = operation.state;
    if (phase.at !== "gathering") return;
    const { clock, validator, report, dispatch } = this.#parts;
    const controller = new AbortController();
    operation.inputs = controller;
    const requests = phase.question.requests ?? [];
    report.asked(operation, requests);
    const { declarations, rules, timeouts, applyDefaults } = operation.spec;
    gatherInputs(requests, {
      handlers: declarations.handlers,
      controller,
      operationId: operation.id,
      method: rules.method,
      name: rules.name,
      round,
      peer: rules.peer,
      clock,
      inputMs: timeouts.inputMs,
      applyDefaults,
      validator,
      spent: () => operation.spent(clock.now()),
      // What a handler says after its round is over is no news of this operation.
      onAnswer: (key, answer, ms) => {
        if (operation.inputs === controller) report.inputAnswered(operation, key, answer, ms);
      },
    }).then(
      (gathered) => this.#gathered(operation, controller, gathered),
      (error: RallyError) => {
        if (operation.inputs === controller) dispatch(operation, { type: "inputFailed", error });
      },
    );
  }

  /** Tells the handlers that are running that their answers are not wanted any more. */
  abort(operation: PendingOperation): void {
    const { inputs, state } = operation;
    operation.inputs = undefined;
    inputs?.abort("error" in state.phase ? state.phase.error : undefined);
  }

  #gathered(operation: PendingOperation, controller: AbortController, gathered: Gathered): void {
    if (operation.inputs !== controller) return;
    operation.inputs = undefined;
    const { dispatch } = this.#parts;
    const { answers, open, declined } = gathered;
    if (open.length > 0) return dispatch(operation, { type: "left", open, answers });
    let responses: string;
    try {
      responses = encodeResponses(answers);
    } catch (cause) {
      // The answers were checked; a host that changed one since then loses its own call and no other.
      return dispatch(operation, { type: "inputFailed", error: answersChanged(cause) });
    }
    dispatch(operation, { type: "answered", responses, declined });
  }
}
