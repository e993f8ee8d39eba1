/** Asks the user, one question at a time. The prompt library is loaded when the first question has to be asked. */

import { Writable } from "node:stream";
import type { JsonObject } from "../wire.ts";
import type { CommandContext } from "./command.ts";
import { type CliIo, type CliOutput, DEFAULT_COLUMNS } from "./io.ts";
import type { Output } from "./output.ts";
import type { Question } from "./question.ts";

/** Asks on the terminal. Several questions of one round wait for each other. */
export class Prompter {
  readonly #io: CliIo;
  readonly #output: Output;
  readonly #signal: AbortSignal;
  readonly #interrupt: () => void;
  #turn: Promise<unknown> = Promise.resolve();

  constructor({ io, output, signal, interrupt }: Omit<CommandContext, "args">) {
    this.#io = io;
    this.#output = output;
    this.#signal = signal;
    this.#interrupt = interrupt;
  }

  /** The user's answer as a whole result; undefined when there is none. Rejects when the question's signal aborts. */
  ask(question: Question): Promise<JsonObject | undefined> {
    const answer = this.#turn.then(() => this.#askNow(question));
    this.#turn = answer.catch(() => undefined);
    return answer;
  }

  /** Resolves when nothing is being asked. */
  async end(): Promise<void> {
    await this.#turn;
  }

  async #askNow(question: Question): Promise<JsonObject | undefined> {
    const { stdin, stderr } = this.#io;
    const signal = AbortSignal.any([question.signal, this.#signal]);
    signal.throwIfAborted();
    const { askQuestion } = await import("./prompts.ts");
    signal.throwIfAborted();
    this.#output.beforeWrite();
    // While a prompt reads keys one by one, the terminal makes no signal of Ctrl-C; and a terminal that went away would
    // leave the prompt waiting for ever.
    let leftByCtrlC = false;
    const onKey = (_text: string | undefined, key: { ctrl?: boolean; name?: string } | undefined) => {
      leftByCtrlC = key?.ctrl === true && key.name === "c";
    };
    const left = () => {
      if (leftByCtrlC) this.#interrupt();
    };
    stdin.on("keypress", onKey);
    stdin.once("end", this.#interrupt);
    stdin.once("close", this.#interrupt);
    try {
      return await askQuestion(question, { input: stdin, output: sized(stderr), signal, left });
    } finally {
      stdin.removeListener("keypress", onKey);
      stdin.removeListener("end", this.#interrupt);
      stdin.removeListener("close", this.#interrupt);
      stdin.pause();
    }
  }
}

/** A terminal that does not know its size says 0, and a text wrapped to 0 columns cannot be read. */
function sized(output: CliOutput): CliOutput {
  if (output.columns !== 0) return output;
  const forward = new Writable({
    write: (chunk, encoding, done) => {
      output.write(chunk, encoding, done);
    },
  });
  return Object.assign(forward, { isTTY: true, columns: DEFAULT_COLUMNS });
}
