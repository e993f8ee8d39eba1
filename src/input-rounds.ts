/** Runs the handlers of an operation's open round, and feeds back what came of them. */

import type { Clock } from "./clock.ts";
import { answersChanged, inputCodeMissing } from "./engine-errors.ts";
import type { RallyError } from "./errors.ts";
import { loadedInputCode, loadInputCode } from "./input-code.ts";
import type { InputRequest } from "./input-required.ts";
import type { Gathered } from "./inputs.ts";
import { ignore } from "./outcome.ts";
import type { Dispatcher, PendingOperation } from "./pending.ts";
import type { Reporter } from "./reporter.ts";
import type { SchemaValidator } from "./validate.ts";

/** What the engine lends to this. */
export interface InputRoundsParts {
  readonly engine: Dispatcher;
  readonly clock: Clock;
  readonly validator: SchemaValidator;
  readonly report: Reporter;
}

type InputCode = Awaited<ReturnType<typeof loadInputCode>>;

/** The input rounds of all operations. A round that is over, for whatever reason, has no effect any more. */
export class InputRounds {
  readonly #parts: InputRoundsParts;

  constructor(parts: InputRoundsParts) {
    this.#parts = parts;
  }

  /** Told of an operation that begins: if it may be asked something, the code for it is loaded while the request is out. */
  expect({ spec }: PendingOperation): void {
    // What keeps it from loading is the concern of the call that needs it.
    if (spec.declarations.hasHandlers && loadedInputCode() === undefined) loadInputCode().catch(ignore);
  }

  /** Asks the host's handlers what the phase asks. */
  open(operation: PendingOperation): void {
    const { phase } = operation.state;
    if (phase.at !== "gathering") return;
    const controller = new AbortController();
    operation.inputs = controller;
    const requests = phase.question.requests ?? [];
    this.#parts.report.asked(operation, requests);
    const code = loadedInputCode();
    if (code !== undefined) return this.#gather(code, operation, controller, requests);
    loadInputCode().then(
      (loaded) => {
        if (operation.inputs === controller) this.#gather(loaded, operation, controller, requests);
      },
      (cause) => this.#failed(operation, controller, inputCodeMissing(requests[0], cause)),
    );
  }

  #gather(
    { gatherInputs, encodeResponses }: InputCode,
    operation: PendingOperation,
    controller: AbortController,
    requests: readonly InputRequest[],
  ): void {
    const { clock, validator, report } = this.#parts;
    const { declarations, rules, timeouts, applyDefaults } = operation.spec;
    gatherInputs(requests, {
      handlers: declarations.handlers,
      controller,
      operationId: operation.id,
      method: rules.method,
      name: rules.name,
      round: operation.state.round,
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
      (gathered) => this.#gathered(operation, controller, gathered, encodeResponses),
      (error: RallyError) => this.#failed(operation, controller, error),
    );
  }

  /** Tells the handlers that are running that their answers are not wanted any more. */
  abort(operation: PendingOperation): void {
    const { inputs, state } = operation;
    operation.inputs = undefined;
    inputs?.abort("error" in state.phase ? state.phase.error : undefined);
  }

  #failed(operation: PendingOperation, controller: AbortController, error: RallyError): void {
    if (operation.inputs === controller) {
      this.#parts.engine.dispatch(operation, { type: "inputFailed", error });
    }
  }

  #gathered(
    operation: PendingOperation,
    controller: AbortController,
    gathered: Gathered,
    encodeResponses: InputCode["encodeResponses"],
  ): void {
    if (operation.inputs !== controller) return;
    operation.inputs = undefined;
    const { engine } = this.#parts;
    const { answers, open, declined } = gathered;
    if (open.length > 0) return engine.dispatch(operation, { type: "left", open, answers });
    let responses: string;
    try {
      responses = encodeResponses(answers);
    } catch (cause) {
      // The answers were checked; a host that changed one since then loses its own call and no other.
      return engine.dispatch(operation, { type: "inputFailed", error: answersChanged(cause) });
    }
    engine.dispatch(operation, { type: "answered", responses, declined });
  }
}
