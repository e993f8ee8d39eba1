/** One run of the command line: from the arguments to the exit code. */

import { mentions, nearest, readArguments } from "./arguments.ts";
import type { Command } from "./command.ts";
import { COMMANDS } from "./command-table.ts";
import { EXIT } from "./exit-codes.ts";
import { describeFailure } from "./failure.ts";
import { commandHelp, programHelp } from "./help.ts";
import { Interruption } from "./interruption.ts";
import type { CliIo } from "./io.ts";
import { Output } from "./output.ts";
import { CommandLineError } from "./usage.ts";
import { programVersion } from "./version.ts";

/**
 * Runs the command line and gives the exit code. Never rejects. When it resolves nothing is left: no process, no socket, no
 * timer, and the terminal is as it was.
 */
export async function main(argv: readonly string[], io: CliIo): Promise<number> {
  const output = new Output(io, mentions(argv, "--json"));
  const interruption = new Interruption(io);
  try {
    return await run(argv, io, output, interruption);
  } catch (error) {
    const failure = describeFailure(error, interruption.exitCode);
    if (output.json) output.document({ error: failure.document });
    else output.problem(failure.text);
    if (mentions(argv, "--debug") && error instanceof Error) output.notes(stacks(error));
    return failure.exitCode;
  } finally {
    interruption.end();
  }
}

async function run(
  argv: readonly string[],
  io: CliIo,
  output: Output,
  interruption: Interruption,
): Promise<number> {
  const [first, ...rest] = argv;
  if (first === undefined) {
    output.notes(programHelp(COMMANDS));
    return EXIT.usage;
  }
  if (first === "--version" || first === "-v" || first === "version") {
    output.own(`${await programVersion()}\n`);
    return EXIT.done;
  }
  if (first === "--help" || first === "-h" || first === "help") {
    const named = rest[0];
    output.own(
      named === undefined || named.startsWith("-") ? programHelp(COMMANDS) : commandHelp(find(named)),
    );
    return EXIT.done;
  }
  const command = find(first);
  if (mentions(rest, "--help", "-h")) {
    output.own(commandHelp(command));
    return EXIT.done;
  }
  const args = readArguments(command, rest);
  const { signal } = interruption;
  return command.run({ args, io, output, signal, interrupt: () => interruption.interrupt(EXIT.interrupted) });
}

function find(name: string): Command {
  const command = COMMANDS.find((known) => known.name === name);
  if (command !== undefined) return command;
  const names = COMMANDS.map((known) => known.name);
  const near = nearest(name, names);
  const hint = near === undefined ? "" : ` Did you mean ${near}?`;
  const what = name.startsWith("-")
    ? "the command comes first, and this is an option"
    : "there is no such command";
  throw new CommandLineError(
    `${what}: "${name.slice(0, 60)}".${hint} The commands are ${names.join(", ")}.`,
    {
      path: "command",
    },
  );
}

/** The stacks of an error and of its causes. */
function stacks(error: Error): string {
  const lines: string[] = [];
  for (let next: unknown = error; next instanceof Error && lines.length < 8; next = next.cause) {
    lines.push(next.stack ?? String(next));
  }
  return lines.join("\ncaused by: ");
}
