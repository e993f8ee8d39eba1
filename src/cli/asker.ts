/** Answers a server's questions for one command line: from what was given, or by asking the user. */

import { stat } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { InputKind } from "../input-required.ts";
import type { ElicitResult, InputContext, InputHandlers, ListRootsResult, SampleResult } from "../inputs.ts";
import type { JsonObject } from "../wire.ts";
import type { Arguments } from "./arguments.ts";
import type { CommandContext } from "./command.ts";
import { type GivenAnswers, readAnswers } from "./given-answers.ts";
import { type CliIo, isInteractive } from "./io.ts";
import { Prompter } from "./prompter.ts";
import type { Question } from "./question.ts";
import { CommandLineError } from "./usage.ts";

/** Thrown by a handler that has no answer; what it had no answer to is in the asker's `missing`. */
export class NoAnswer extends Error {}

const KINDS: readonly InputKind[] = ["elicitForm", "elicitUrl", "sample", "listRoots"];

/** Where answers come from, in this order: `--answer`, `--decline`, `--root`, the user at a terminal. */
export class Asker {
  /** The questions that had no answer. */
  readonly missing: Question[] = [];
  readonly given: GivenAnswers;
  readonly #decline: boolean;
  readonly #roots: JsonObject | undefined;
  readonly #prompter: Prompter | undefined;
  readonly #samples: boolean;
  /** Every kind may be asked, because what is not answered is kept for later. */
  readonly #suspends: boolean;

  constructor(
    given: GivenAnswers,
    options: {
      readonly decline: boolean;
      readonly roots: JsonObject | undefined;
      readonly prompter: Prompter | undefined;
      readonly samples: boolean;
      readonly suspends: boolean;
    },
  ) {
    this.given = given;
    this.#decline = options.decline;
    this.#roots = options.roots;
    this.#prompter = options.prompter;
    this.#samples = options.samples;
    this.#suspends = options.suspends;
  }

  /** Whether questions of a kind can be answered, or kept: only then is it declared to the server (MRTR-13). */
  declares(kind: InputKind): boolean {
    if (this.#suspends || this.given.fits(kind)) return true;
    switch (kind) {
      case "elicitForm":
      case "elicitUrl":
        return this.#decline || this.#prompter !== undefined;
      case "sample":
        return this.#samples && this.#prompter !== undefined;
      case "listRoots":
        return this.#roots !== undefined;
    }
  }

  /** The markers of manual mode: they declare, and answer nothing. */
  markers(): InputHandlers {
    return Object.fromEntries(KINDS.filter((kind) => this.declares(kind)).map((kind) => [kind, "suspend"]));
  }

  /** The handlers of a call that is answered as it runs. */
  handlers(): InputHandlers {
    const ask = (kind: InputKind) => async (params: unknown, context: InputContext) => {
      const { key, peer, method, name, signal } = context;
      const question: Question = { key, kind, params: params as JsonObject, peer, method, name, signal };
      const answer = await this.answer(question);
      if (answer === undefined) throw new NoAnswer("no answer was given");
      return answer as unknown;
    };
    return {
      ...(this.declares("elicitForm") && {
        elicitForm: (params, context) => ask("elicitForm")(params, context) as Promise<ElicitResult>,
      }),
      ...(this.declares("elicitUrl") && {
        elicitUrl: (params, context) => ask("elicitUrl")(params, context) as Promise<ElicitResult>,
      }),
      ...(this.declares("sample") && {
        sample: (params, context) => ask("sample")(params, context) as Promise<SampleResult>,
      }),
      ...(this.declares("listRoots") && {
        listRoots: (context) => ask("listRoots")({}, context) as Promise<ListRootsResult>,
      }),
    };
  }

  /** Answers one question; undefined, and noted in `missing`, when there is no answer. */
  async answer(question: Question): Promise<JsonObject | undefined> {
    const { key, kind } = question;
    const given = this.given.find(key, kind);
    if (given !== undefined) return given;
    if (this.#decline && (kind === "elicitForm" || kind === "elicitUrl")) return { action: "decline" };
    if (kind === "listRoots" && this.#roots !== undefined) return this.#roots;
    if (this.#prompter !== undefined && kind !== "listRoots" && (kind !== "sample" || this.#samples)) {
      return this.#prompter.ask(question);
    }
    this.missing.push(question);
    return undefined;
  }

  /** Resolves when no prompt is on the screen any more. */
  async end(): Promise<void> {
    await this.#prompter?.end();
  }
}

/** Makes the asker of a command line. `suspends`: what has no answer is kept, so nobody is asked by `call`. */
export async function createAsker(
  context: CommandContext,
  { suspends, prompts }: { readonly suspends: boolean; readonly prompts: boolean },
): Promise<Asker> {
  const { args, io } = context;
  const given = await readAnswers(args, io);
  const asks = prompts && isInteractive(io) && !args.has("no-input");
  if (args.has("sample") && !asks) {
    throw new CommandLineError(
      "--sample needs a terminal to ask on; elsewhere answer sampling with --answer KEY=JSON",
      { path: "--sample" },
    );
  }
  return new Asker(given, {
    decline: args.has("decline"),
    roots: await readRoots(args, io),
    prompter: asks ? new Prompter(context) : undefined,
    samples: args.has("sample"),
    suspends,
  });
}

async function readRoots(args: Arguments, io: CliIo): Promise<JsonObject | undefined> {
  const given = args.texts("root");
  if (given.length === 0) return undefined;
  const roots = [];
  for (const root of given) {
    if (/^file:\/\//i.test(root)) {
      roots.push({ uri: root });
      continue;
    }
    const path = resolve(io.cwd, root);
    const found = await stat(path).catch(() => undefined);
    if (found === undefined)
      throw new CommandLineError(`--root ${root}: there is no such directory`, { path: "--root" });
    roots.push({ uri: pathToFileURL(path).href, name: basename(path) });
  }
  return { roots };
}
