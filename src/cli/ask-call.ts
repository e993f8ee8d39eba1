/** The part that `call`, `read` and `prompt` share: a request that the server may answer with questions. */

import type { Client } from "../client.ts";
import type { CallOptions } from "../client-options.ts";
import { CapabilityRequiredError, InputError, RoundLimitError } from "../errors.ts";
import type { Result } from "../mcp-types.ts";
import { isObject } from "../wire.ts";
import { type Asker, createAsker, NoAnswer } from "./asker.ts";
import type { CommandContext } from "./command.ts";
import { type ContinuationFile, planFile, writeContinuationFile } from "./continuation-file.ts";
import { EXIT } from "./exit-codes.ts";
import { InputNeededError } from "./failure.ts";
import { withClient } from "./open-client.ts";
import { describeQuestion } from "./question.ts";
import { followRounds, type RoundsEnd } from "./rounds.ts";
import { CommandLineError } from "./usage.ts";

/** One request, in the forms that the two modes need. */
export interface AskedCall<R extends Result> {
  /** What it is, for messages: `the tool deploy`. */
  readonly what: string;
  readonly method: string;
  readonly params: object;
  run(client: Client, options: CallOptions): Promise<R>;
  /** Prints the result, and gives the exit code. */
  print(result: R): number;
}

/** Makes the request, answers what can be answered, and prints how it ended. Gives the exit code. */
export async function askCall<R extends Result>(
  context: CommandContext,
  call: AskedCall<R>,
): Promise<number> {
  const { args, io, signal } = context;
  const suspend = args.text("suspend");
  if (suspend === undefined && args.has("force")) {
    throw new CommandLineError("--force goes with --suspend FILE", { path: "--force" });
  }
  const file = suspend === undefined ? undefined : await planFile(suspend, args.has("force"), io);
  const asker = await createAsker(context, { suspends: file !== undefined, prompts: file === undefined });
  return answering(context, asker, call.what, async () => {
    if (file === undefined) {
      return call.print(
        await withClient(context, asker.handlers(), (client, options) => call.run(client, options)),
      );
    }
    return withClient(context, asker.markers(), async (client, options) => {
      const end = await keepingState(file, context, async () =>
        followRounds(
          await client.begin(call.method, call.params, options),
          asker,
          signal,
          (continuation, answers) => client.resume(continuation, answers, options),
        ),
      );
      return finish(end, file, context, (result) => call.print(result as R));
    });
  });
}

/** Runs a call, turns its failures for want of input into words for this command line, and ends the prompts. */
export async function answering(
  { output, signal }: CommandContext,
  asker: Asker,
  what: string,
  run: () => Promise<number>,
): Promise<number> {
  try {
    const exitCode = await run();
    // A call that was kept may yet ask for the others.
    if (exitCode === EXIT.inputNeeded) return exitCode;
    for (const key of asker.given.unused) {
      output.note(
        `mcp-rally: warning: the server never asked for ${JSON.stringify(key)}, so its --answer was not used`,
      );
    }
    return exitCode;
  } catch (error) {
    throw signal.aborted ? error : inCommandLineTerms(error, asker, what);
  } finally {
    await asker.end();
  }
}

function inCommandLineTerms(error: unknown, asker: Asker, what: string): unknown {
  if (error instanceof InputError) {
    if (error.cause instanceof CommandLineError) return error.cause;
    if (error.cause instanceof NoAnswer) return inputNeeded(asker, what, error);
    if (asker.given.gave(error.key) && error.path !== "params.url") {
      return new CommandLineError(
        `the --answer for ${JSON.stringify(error.key)} does not fit: ${error.message}`,
        {
          path: "--answer",
          details: { key: error.key, ...(error.path !== undefined && { answerPath: error.path }) },
          cause: error,
        },
      );
    }
    // A question of a kind that was not declared: there is no path, for nothing was answered.
    if (error.path === undefined && error.cause === undefined) {
      return new InputNeededError(
        `${what} asks for ${KIND_WORDS[error.method] ?? error.method} under the key ${JSON.stringify(error.key)}, and this command line has no way to answer it. ${HOW}`,
        [],
        undefined,
        error,
      );
    }
  }
  if (error instanceof CapabilityRequiredError && isObject(error.requiredCapabilities)) {
    const names = Object.keys(error.requiredCapabilities);
    if (names.some((name) => ["elicitation", "sampling", "roots"].includes(name))) {
      return new InputNeededError(
        `${what} needs input (${names.join(", ")}), and this command line has no way to give it. ${HOW}`,
        [],
        error.requiredCapabilities,
        error,
      );
    }
  }
  return error;
}

const KIND_WORDS: Readonly<Record<string, string>> = {
  "elicitation/create": "an elicitation",
  "sampling/createMessage": "a message from a model",
  "roots/list": "roots",
};

const HOW =
  "Run it on a terminal to be asked, or give --answer KEY=JSON, --decline or --root DIR, or see the questions first with --suspend FILE.";

function inputNeeded(asker: Asker, what: string, cause: unknown): InputNeededError {
  const keys = asker.missing.map(({ key }) => JSON.stringify(key)).join(", ");
  return new InputNeededError(
    `${what} needs input that was not given: ${keys}. Nothing more was sent. Give each an --answer, or use --decline, or run it on a terminal, or keep the call for later with --suspend FILE.`,
    asker.missing,
    undefined,
    cause,
  );
}

/** The rounds that were used up are no reason to lose the state: it is kept, and the limit still reported. */
export async function keepingState(
  file: ContinuationFile,
  { output }: CommandContext,
  run: () => Promise<RoundsEnd>,
): Promise<RoundsEnd> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof RoundLimitError) {
      await writeContinuationFile(file, error.continuation as never);
      output.note(`mcp-rally: the call is kept in ${file.name}`);
    }
    throw error;
  }
}

/** Prints a complete result, or keeps a call that is still open. */
export async function finish(
  end: RoundsEnd,
  file: ContinuationFile,
  { output }: CommandContext,
  print: (result: Result) => number,
): Promise<number> {
  if ("result" in end) return print(end.result);
  await writeContinuationFile(file, end.continuation);
  const { open } = end;
  if (output.json) {
    const { inputRequests } = end.continuation;
    output.document({ suspended: { file: file.name, keys: open.map(({ key }) => key), inputRequests } });
  } else {
    const lines = [`mcp-rally: the call waits for input, and is kept in ${file.name}:`];
    for (const question of open) lines.push(...describeQuestion(question));
    lines.push(`Go on with: mcp-rally resume ${file.name} <target> --answer KEY=JSON`);
    output.notes(lines.join("\n"));
  }
  return EXIT.inputNeeded;
}
