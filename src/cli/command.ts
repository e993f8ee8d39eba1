/** What a command is: one file in `commands/` each, listed in `command-table.ts`. */

import type { Arguments } from "./arguments.ts";
import type { CliIo } from "./io.ts";
import type { Output } from "./output.ts";

/** One option of a command. */
export interface OptionSpec {
  /** What the option's value is, such as MS; absent for an option without a value. */
  readonly takes?: string;
  /** May be given more than once. */
  readonly multiple?: boolean;
  readonly short?: string;
  readonly help: string;
}

/** Options by name, without the dashes. */
export type OptionTable = Readonly<Record<string, OptionSpec>>;

/** The marker among a command's positionals that stands for the server, however it is given. */
export const TARGET = "<target>";

/** One command of the command line. */
export interface Command {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** The names of the positionals in order, {@link TARGET} among them. */
  readonly positionals: readonly string[];
  readonly options: OptionTable;
  /** Paragraphs for `--help`, below the options. */
  readonly notes?: readonly string[];
  /** Command lines for `--help`, without the program's name. */
  readonly examples?: readonly string[];
  /** Runs it, and gives the exit code. What it throws is reported, and decides the exit code. */
  run(context: CommandContext): Promise<number>;
}

/** What a command runs with. */
export interface CommandContext {
  readonly args: Arguments;
  readonly io: CliIo;
  readonly output: Output;
  /** Aborts when the user interrupts. */
  readonly signal: AbortSignal;
  /** Interrupts, as Ctrl-C does: for a prompt, where the terminal sends no signal. */
  interrupt(): void;
}
