/** Ctrl-C: the first one cancels what is running, in good order; the second one ends the process at once. */

import type { CliIo } from "./io.ts";

const SHOW_CURSOR = "\u001b[?25h";

/** Listens for signals from its creation to its end. */
export class Interruption {
  readonly #io: CliIo;
  readonly #controller = new AbortController();
  readonly #stop: () => void;
  #exitCode: number | undefined;

  constructor(io: CliIo) {
    this.#io = io;
    this.#stop = io.onSignal((exitCode) => this.interrupt(exitCode));
  }

  /** Aborts at the first interrupt. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The exit code of the interrupt; undefined when there was none. */
  get exitCode(): number | undefined {
    return this.#exitCode;
  }

  /** Interrupts, or ends the process when that was done before. */
  interrupt(exitCode: number): void {
    if (this.#exitCode !== undefined) {
      this.#restoreTerminal();
      this.#io.exit(this.#exitCode);
      return;
    }
    this.#exitCode = exitCode;
    this.#controller.abort(new Error("interrupted by the user"));
  }

  /** Stops listening. */
  end(): void {
    this.#stop();
  }

  /** A prompt that is cut off leaves the terminal raw and without a cursor. */
  #restoreTerminal(): void {
    const { stdin, stderr } = this.#io;
    if (stdin.isTTY === true) stdin.setRawMode?.(false);
    if (stderr.isTTY === true) stderr.write(SHOW_CURSOR);
  }
}
