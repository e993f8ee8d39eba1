/** Where a command writes: results to stdout, everything else to stderr. With --json, stdout gets one document only. */

import type { CliIo } from "./io.ts";
import { sanitise, sanitiseJson, sanitiseLine } from "./sanitise.ts";
import { formatTable } from "./table.ts";

/** The output of one run. */
export class Output {
  /** Whether stdout is one JSON document. */
  readonly json: boolean;
  readonly #io: CliIo;
  readonly #colour: boolean;
  /** Called before anything is written, so that a bar which is being drawn can get out of the way. */
  beforeWrite: () => void = () => {};

  constructor(io: CliIo, json: boolean) {
    this.#io = io;
    this.json = json;
    this.#colour = io.stderr.isTTY === true && !io.env.NO_COLOR && io.env.TERM !== "dumb";
  }

  /** Whether results go to a terminal: text of a server is then made harmless. */
  get isTerminal(): boolean {
    return this.#io.stdout.isTTY === true;
  }

  /** Writes the one document of --json: indented on a terminal, one line elsewhere. */
  document(value: unknown): void {
    this.beforeWrite();
    const text = JSON.stringify(value, undefined, this.isTerminal ? 2 : undefined);
    this.#io.stdout.write(`${this.isTerminal ? sanitiseJson(text) : text}\n`);
  }

  /** Writes text of a server to stdout, harmless on a terminal and unchanged elsewhere. */
  text(text: string): void {
    this.beforeWrite();
    this.#io.stdout.write(this.isTerminal ? sanitise(text) : text);
  }

  /** Writes text of a server, and ends the line. */
  line(text: string): void {
    this.text(text.endsWith("\n") ? text : `${text}\n`);
  }

  /** Writes a table, or lines of tab-separated fields where stdout is no terminal. */
  table(headings: readonly string[], rows: readonly (readonly string[])[]): void {
    this.beforeWrite();
    this.#io.stdout.write(formatTable(headings, rows, this.#io.stdout));
  }

  /** Writes text of our own to stdout as it is: help, the version. */
  own(text: string): void {
    this.#io.stdout.write(text);
  }

  /** Writes one line of diagnostics. */
  note(text: string): void {
    this.beforeWrite();
    this.#io.stderr.write(`${sanitiseLine(text)}\n`);
  }

  /** Writes several lines of diagnostics. */
  notes(text: string): void {
    this.beforeWrite();
    this.#io.stderr.write(`${sanitise(text)}\n`);
  }

  /** Writes what went wrong. */
  problem(text: string): void {
    this.beforeWrite();
    const name = this.#colour ? "\u001b[1;31mmcp-rally:\u001b[0m" : "mcp-rally:";
    this.#io.stderr.write(`${name} ${sanitise(text)}\n`);
  }
}
