/** The answers that a command line gives beforehand: which kinds of question they can answer, and how. */

import type { InputKind } from "../input-required.ts";
import { isObject, type JsonObject } from "../wire.ts";
import type { Arguments } from "./arguments.ts";
import type { CliIo } from "./io.ts";
import { CommandLineError } from "./usage.ts";
import { parseJson, readText, splitPair } from "./values.ts";

const ACTIONS: ReadonlySet<unknown> = new Set(["accept", "decline", "cancel"]);

/** Answers by the server's key. */
export class GivenAnswers {
  readonly #answers: ReadonlyMap<string, unknown>;
  readonly #used = new Set<string>();

  constructor(answers: ReadonlyMap<string, unknown>) {
    this.#answers = answers;
  }

  /** Whether some answer fits questions of this kind: only then is the kind declared to the server. */
  fits(kind: InputKind): boolean {
    for (const value of this.#answers.values()) if (kindsOf(value).includes(kind)) return true;
    return false;
  }

  /** The answer to a question, as a whole result; undefined when none was given. */
  find(key: string, kind: InputKind): JsonObject | undefined {
    if (!this.#answers.has(key)) return undefined;
    this.#used.add(key);
    const value = this.#answers.get(key);
    const result = toResult(kind, value);
    if (result === undefined) {
      throw new CommandLineError(`--answer ${JSON.stringify(key)} must be ${WANTED[kind]}`, {
        path: "--answer",
      });
    }
    return result;
  }

  /** Whether the answer to `key` came from the command line. */
  gave(key: string): boolean {
    return this.#used.has(key);
  }

  /** The keys that no question had. */
  get unused(): readonly string[] {
    return [...this.#answers.keys()].filter((key) => !this.#used.has(key));
  }
}

/** Reads every `--answer`. @throws {CommandLineError} with the position of a fault, never with the text (SAF-01) */
export async function readAnswers(args: Arguments, io: CliIo): Promise<GivenAnswers> {
  const answers = new Map<string, unknown>();
  for (const pair of args.texts("answer")) {
    const { name: key, text: value } = splitPair(pair, "--answer");
    if (answers.has(key)) {
      throw new CommandLineError(`--answer gives the key ${JSON.stringify(key)} twice`, { path: "--answer" });
    }
    const text = await readText(value, `--answer ${key}`, io);
    answers.set(
      key,
      ACTIONS.has(text) ? text : parseJson(text, { option: `--answer ${key}`, showText: false }),
    );
  }
  return new GivenAnswers(answers);
}

function kindsOf(value: unknown): readonly InputKind[] {
  if (Array.isArray(value) || (isObject(value) && Array.isArray(value.roots))) return ["listRoots"];
  if (isObject(value)) {
    return typeof value.role === "string" && value.content !== undefined
      ? ["sample"]
      : ["elicitForm", "elicitUrl"];
  }
  return ACTIONS.has(value) ? ["elicitForm", "elicitUrl"] : ["sample"];
}

const WANTED: Readonly<Record<InputKind, string>> = {
  elicitForm: 'the content of the form, such as {"ok":true}, or a result, such as {"action":"decline"}',
  elicitUrl: "accept, decline or cancel",
  sample: 'a result with "role", "content" and "model", or a string',
  listRoots: 'an array of URIs, or {"roots":[{"uri":"file:///…"}]}',
};

function toResult(kind: InputKind, value: unknown): JsonObject | undefined {
  switch (kind) {
    case "elicitForm":
      if (ACTIONS.has(value)) return { action: value };
      if (!isObject(value)) return undefined;
      return isWholeResult(value) ? value : { action: "accept", content: value };
    case "elicitUrl":
      if (ACTIONS.has(value)) return { action: value };
      return isObject(value) && ACTIONS.has(value.action) ? value : undefined;
    case "sample":
      if (typeof value === "string") return typedMessage(value);
      return isObject(value) ? value : undefined;
    case "listRoots":
      if (Array.isArray(value))
        return { roots: value.map((root) => (typeof root === "string" ? { uri: root } : root)) };
      return isObject(value) ? value : undefined;
  }
}

/** `{"action":"accept","content":{…}}` and no other members: a form that has a field named action may need the whole. */
function isWholeResult(value: JsonObject): boolean {
  return (
    ACTIONS.has(value.action) &&
    Object.keys(value).every((key) => ["action", "content", "_meta"].includes(key))
  );
}

/** A sampling result that a person typed. */
export function typedMessage(text: string): JsonObject {
  return { role: "assistant", content: { type: "text", text }, model: "user", stopReason: "endTurn" };
}
