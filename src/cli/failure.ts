/** What went wrong: the exit code, the JSON form, and the words for a terminal. */

import { RallyError } from "../errors.ts";
import { CODE } from "../protocol.ts";
import type { JsonObject } from "../wire.ts";
import { EXIT } from "./exit-codes.ts";
import { describeQuestion, type Question } from "./question.ts";
import { CommandLineError } from "./usage.ts";

/** A server asked for input that was not given. */
export class InputNeededError extends Error {
  readonly questions: readonly Question[];
  /** The capabilities that the server said it needs, where it asked nothing yet. */
  readonly required: unknown;

  constructor(message: string, questions: readonly Question[], required?: unknown, cause?: unknown) {
    super(message, { cause });
    this.questions = questions;
    this.required = required;
  }
}

/** A failure, ready to be reported. */
export interface Failure {
  readonly exitCode: number;
  /** The value of `error` in the JSON document. */
  readonly document: JsonObject & { readonly code: string; readonly message: string };
  /** The text for stderr. */
  readonly text: string;
}

/** Describes whatever a command threw. `interrupted` is the exit code of an interrupt, if there was one. */
export function describeFailure(error: unknown, interrupted: number | undefined): Failure {
  if (interrupted !== undefined) {
    const message = "interrupted; what was running was cancelled";
    return { exitCode: interrupted, document: { code: "cancelled", message }, text: message };
  }
  if (error instanceof InputNeededError) return describeInputNeeded(error);
  if (RallyError.is(error)) return describeRallyError(error);
  const message = error instanceof Error ? error.message : String(error);
  return {
    exitCode: EXIT.failed,
    document: { code: "internal", message },
    text: `unexpected error: ${message}. This is a fault of mcp-rally; --debug shows where it is`,
  };
}

function describeInputNeeded({ message, questions, required }: InputNeededError): Failure {
  const inputRequests = Object.fromEntries(
    questions.map(({ key, ...question }) => [key, requestOf(question)]),
  );
  return {
    exitCode: EXIT.inputNeeded,
    document: {
      code: "input-needed",
      message,
      keys: questions.map(({ key }) => key),
      ...(questions.length > 0 && { inputRequests }),
      ...(required !== undefined && { requiredCapabilities: required }),
    },
    text: [message, ...questions.flatMap((question) => describeQuestion(question))].join("\n"),
  };
}

function requestOf({ kind, params }: Omit<Question, "key">): JsonObject {
  const method =
    kind === "sample" ? "sampling/createMessage" : kind === "listRoots" ? "roots/list" : "elicitation/create";
  return kind === "listRoots" ? { method } : { method, params };
}

/** The members of an error that a program can use. All others stay in: what is not named here is not printed (SAF-01). */
const DETAILS = [
  "rpcCode",
  "data",
  "status",
  "requiredCapabilities",
  "supported",
  "wanted",
  "delivery",
  "exitCode",
  "signal",
  "stderr",
  "closeCode",
  "body",
  "field",
  "key",
  "method",
  "path",
  "keys",
  "repeats",
  "rounds",
  "tool",
  "scope",
  "limitMs",
  "spent",
  "limit",
  "allowed",
  "operation",
] as const;

function describeRallyError(error: RallyError): Failure {
  const members = error as unknown as Record<string, unknown>;
  const details: JsonObject = {};
  for (const name of DETAILS) if (members[name] !== undefined) details[name] = members[name];
  const own = error instanceof CommandLineError ? error.details : {};
  return {
    exitCode: exitCodeOf(error),
    document: { code: error.code, message: error.message, ...details, ...own },
    text: textOf(error, members),
  };
}

function exitCodeOf({ code }: RallyError): number {
  switch (code) {
    case "usage":
      return EXIT.usage;
    case "suspended":
    case "input-repeated":
    case "capability-required":
      return EXIT.inputNeeded;
    default:
      return EXIT.failed;
  }
}

function textOf(error: RallyError, members: Record<string, unknown>): string {
  const lines = [error.message];
  if (error instanceof CommandLineError && error.excerpt !== undefined) lines.push(error.excerpt);
  if (error.code === "rpc") {
    lines[0] = `the server answered with an error: ${error.message} (code ${String(members.rpcCode)})`;
  }
  if (typeof members.stderr === "string" && members.stderr.trim() !== "") {
    lines.push("The end of what it wrote to stderr:", ...lastLines(members.stderr));
  }
  const hint = hintFor(error, members);
  if (hint !== undefined) lines.push(hint);
  return lines.join("\n");
}

const SHOWN_LINES = 12;

function lastLines(text: string): string[] {
  return text
    .trimEnd()
    .split("\n")
    .slice(-SHOWN_LINES)
    .map((line) => `  ${line}`);
}

/** The engine's messages name its own options; these are their names on the command line. */
function hintFor(
  { code }: RallyError,
  { rpcCode, status, scope }: Record<string, unknown>,
): string | undefined {
  switch (code) {
    case "rpc":
      return rpcCode === CODE.methodNotFound ? "The server does not have this feature." : undefined;
    case "timeout":
      return scope === "operation"
        ? "On the command line the bound is --timeout."
        : "On the command line the bound is --attempt-timeout.";
    case "round-limit":
      return "On the command line the limit is --max-rounds; --suspend FILE keeps what was reached.";
    case "http-status":
      return status === 401 || status === 403
        ? "Give a token with --token-env VAR, or a header with --header."
        : undefined;
    default:
      return undefined;
  }
}
