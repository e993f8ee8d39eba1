/** The help texts, made from the command table, so that they cannot differ from what is read. */

import type { Command, OptionSpec } from "./command.ts";

/** The help of the program. */
export function programHelp(commands: readonly Command[]): string {
  const widest = Math.max(...commands.map(({ name }) => name.length));
  return `Usage: mcp-rally <command> <target> …

Talks to servers of the Model Context Protocol, revision 2026-07-28.

Commands:
${commands.map(({ name, summary }) => `  ${name.padEnd(widest)}  ${summary}`).join("\n")}

<target> is one of
  https://…, http://…, wss://…, ws://…   the URL of a server
  --config FILE --server NAME            an entry of mcpServers in a JSON file
  -- COMMAND ARG…                        a command to start, at the end of the line

Exit codes: 0 done, 1 the tool reported an error, 2 the command line is wrong, 3 input was asked for and not
given, 4 the protocol or the server failed, 130 interrupted.

mcp-rally <command> --help tells more; mcp-rally --version prints the version.
`;
}

/** The help of one command. */
export function commandHelp({
  name,
  summary,
  positionals,
  options,
  notes = [],
  examples = [],
}: Command): string {
  const rows = Object.entries(options).map(
    ([option, spec]) => [optionName(option, spec), spec.help] as const,
  );
  const widest = Math.min(26, Math.max(...rows.map(([left]) => left.length)));
  const lines = rows.map(([left, help]) =>
    left.length > widest
      ? `  ${left}\n  ${" ".repeat(widest)}  ${help}`
      : `  ${left.padEnd(widest)}  ${help}`,
  );
  const parts = [
    `Usage: mcp-rally ${name} ${positionals.join(" ")} [options]\n\n${summary}.`,
    `Options:\n${lines.join("\n")}`,
    ...notes,
  ];
  if (examples.length > 0)
    parts.push(`Examples:\n${examples.map((line) => `  mcp-rally ${line}`).join("\n")}`);
  return `${parts.join("\n\n")}\n`;
}

function optionName(name: string, { takes, short, multiple }: OptionSpec): string {
  const names = short === undefined ? `--${name}` : `-${short}, --${name}`;
  return `${names}${takes === undefined ? "" : ` ${takes}`}${multiple === true ? " …" : ""}`;
}
