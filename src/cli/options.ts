/** The options that several commands share. */

import type { CallOptions } from "../client-options.ts";
import type { LogLevel } from "../protocol.ts";
import type { Arguments } from "./arguments.ts";
import type { OptionTable } from "./command.ts";
import { CommandLineError } from "./usage.ts";

/** For every command that talks to a server. */
export const SERVER_OPTIONS: OptionTable = {
  config: { takes: "FILE", help: "Read the server from a JSON file with mcpServers; see --server" },
  server: { takes: "NAME", help: "The entry of --config; not needed when there is only one" },
  header: {
    takes: "'NAME: VALUE'",
    multiple: true,
    help: `Send a header; \${VAR} in it is read from the environment`,
  },
  "token-env": { takes: "VAR", help: "Send the value of this environment variable as the bearer token" },
  timeout: { takes: "MS", help: "The longest the whole call may take" },
  "attempt-timeout": { takes: "MS", help: "The longest one attempt may take; default 60000" },
  reissue: { takes: "always|safe|never", help: "Send a request again whose answer was lost; default always" },
  trace: { help: "One line on stderr for every attempt" },
  json: { help: "Print one JSON document, and nothing else, on stdout" },
  debug: { help: "Show stacks of errors, and what a started server writes to stderr" },
  help: { short: "h", help: "Show this help" },
};

/** For the commands whose call may be asked for input. */
export const INPUT_OPTIONS: OptionTable = {
  answer: { takes: "KEY=JSON", multiple: true, help: "Answer an input request; see below" },
  decline: { help: "Decline every elicitation that has no --answer" },
  root: {
    takes: "DIR",
    multiple: true,
    help: "A directory (or file: URI) to give when the server asks for roots",
  },
  sample: { help: "On a terminal: answer sampling requests yourself, in place of a model" },
  suspend: {
    takes: "FILE",
    help: "Ask nothing: write what is open to FILE (0600) and exit with 3; see resume",
  },
  force: { help: "Let --suspend overwrite FILE" },
  "no-input": { help: "Ask nothing, even on a terminal" },
  "max-rounds": { takes: "N", help: "The most rounds of input to go along with; default 10" },
  peer: { takes: "NAME", help: "The name that a suspended call is bound to; default: where the server is" },
  "log-level": { takes: "LEVEL", help: "Show the server's log entries from this level on, on stderr" },
};

/** The paragraphs on answers for `--help`. */
export const INPUT_NOTES: readonly string[] = [
  `--answer KEY=JSON gives the answer to the input request KEY. For a form, JSON is its content, such as
'confirm={"ok":true}', or a whole result, such as '{"action":"decline"}'; accept, decline and cancel alone are
whole results too. For sampling it is a result, or a string; for roots an array of URIs. KEY=@FILE reads the
JSON from a file and KEY=@- from stdin, which keeps secrets off the command line.`,
  `On a terminal, what has no --answer is asked. Elsewhere the call ends with exit code 3, and says which keys
and fields want an answer.`,
];

const LOG_LEVELS: readonly string[] = [
  "debug",
  "info",
  "notice",
  "warning",
  "error",
  "critical",
  "alert",
  "emergency",
];

/** The call options that the shared options stand for. @throws {CommandLineError} */
export function readCallOptions(args: Arguments): CallOptions {
  return {
    operationMs: args.milliseconds("timeout"),
    attemptMs: args.milliseconds("attempt-timeout"),
    reissue: readChoice(args, "reissue", ["always", "safe", "never"]) as
      | "always"
      | "safe"
      | "never"
      | undefined,
    maxRounds: args.count("max-rounds"),
    logLevel: readChoice(args, "log-level", LOG_LEVELS) as LogLevel | undefined,
  };
}

function readChoice(args: Arguments, name: string, choices: readonly string[]): string | undefined {
  const text = args.text(name);
  if (text === undefined || choices.includes(text)) return text;
  throw new CommandLineError(`--${name} must be one of ${choices.join(", ")}, not "${text.slice(0, 40)}"`, {
    path: `--${name}`,
  });
}
