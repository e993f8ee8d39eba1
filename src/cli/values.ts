/** Values on the command line: `--args`, `--arg` and the JSON in `--answer`. */

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { setOwn } from "../problems.ts";
import { isObject, type JsonObject, typeName } from "../wire.ts";
import type { Arguments } from "./arguments.ts";
import type { CliIo } from "./io.ts";
import { excerpt, findJsonFault } from "./json-fault.ts";
import { CommandLineError } from "./usage.ts";

/** Where a JSON text of the command line comes from, for messages. */
interface Origin {
  /** `--args`, `--answer confirm`. */
  readonly option: string;
  /** Show the text around a fault. Never for answers, which may be secrets (SAF-01). */
  readonly showText: boolean;
}

/** Parses a JSON text. @throws {CommandLineError} with the position of the fault. */
export function parseJson(text: string, { option, showText }: Origin): unknown {
  const fault = findJsonFault(text);
  if (fault === undefined) return JSON.parse(text);
  const { position, expected } = fault;
  const where =
    position >= text.length
      ? `it ends at position ${position}`
      : `at position ${position}${lineOf(text, position)}`;
  throw new CommandLineError(`${option} is not JSON: ${where}, expected ${expected}`, {
    path: option,
    details: { position, expected },
    excerpt: showText ? excerpt(text, position) : undefined,
  });
}

function lineOf(text: string, position: number): string {
  const before = text.slice(0, position).split("\n");
  return before.length === 1 ? "" : ` (line ${before.length}, column ${before.at(-1)!.length + 1})`;
}

/** A value, or with `@FILE` what a file holds, or with `@-` what stdin gives: so that a secret is on no command line. */
export async function readText(value: string, option: string, io: CliIo): Promise<string> {
  if (!value.startsWith("@")) return value;
  const name = value.slice(1);
  try {
    return name === "-" ? await readAll(io) : await readFile(resolve(io.cwd, name), "utf8");
  } catch (cause) {
    throw new CommandLineError(`${option}: cannot read ${name}: ${(cause as Error).message}`, {
      path: option,
      cause,
    });
  }
}

async function readAll({ stdin }: CliIo): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk as Uint8Array | string));
  return Buffer.concat(chunks).toString("utf8");
}

/** The arguments of a tool: `--args`, with every `--arg` laid over it. Undefined when there is neither. */
export async function readToolArguments(args: Arguments, io: CliIo): Promise<JsonObject | undefined> {
  const given = args.text("args");
  const pairs = args.texts("arg");
  if (given === undefined && pairs.length === 0) return undefined;
  const merged: JsonObject = {};
  if (given !== undefined) {
    const text = await readText(given, "--args", io);
    const value = parseJson(text, { option: "--args", showText: !given.startsWith("@") });
    if (!isObject(value)) {
      throw new CommandLineError(
        `--args must be a JSON object such as '{"city":"Brno"}', not ${typeName(value)}`,
        {
          path: "--args",
        },
      );
    }
    for (const [name, member] of Object.entries(value)) setOwn(merged, name, member);
  }
  for (const pair of pairs) {
    const { name, value } = readPair(pair);
    setOwn(merged, name, value);
  }
  return merged;
}

/** The arguments of a prompt, which are always text. */
export function readPromptArguments(args: Arguments): Record<string, string> | undefined {
  const pairs = args.texts("arg");
  if (pairs.length === 0) return undefined;
  const merged: Record<string, string> = {};
  for (const pair of pairs) {
    const { name, text } = splitPair(pair, "--arg");
    setOwn(merged, name, text);
  }
  return merged;
}

/**
 * One `--arg`. `name:=JSON` must be JSON. `name=value` is JSON where the value is JSON and text where it is not, so
 * `n=5`, `on=true` and `tags=["a"]` mean what they look like; a whole number too long to be kept exactly stays text.
 */
function readPair(pair: string): { name: string; value: unknown } {
  const { name, text } = splitPair(pair, "--arg");
  if (name.endsWith(":")) {
    const plain = name.slice(0, -1);
    return { name: plain, value: parseJson(text, { option: `--arg ${plain}`, showText: true }) };
  }
  if (/^-?\d+$/.test(text) && !Number.isSafeInteger(Number(text))) return { name, value: text };
  try {
    return { name, value: JSON.parse(text) };
  } catch {
    return { name, value: text };
  }
}

/** Splits `name=value` at the first equals sign. A name that holds one is written as a JSON string: `"a=b"=value`. */
export function splitPair(pair: string, option: string): { name: string; text: string } {
  const quoted = /^("(?:[^"\\]|\\.)*")(:?)=(.*)$/s.exec(pair);
  if (quoted !== null) {
    const name = parseJson(quoted[1]!, { option, showText: false }) as string;
    return { name: name + quoted[2]!, text: quoted[3]! };
  }
  const at = pair.indexOf("=");
  if (at < 1) {
    throw new CommandLineError(
      `${option} must be written as NAME=VALUE; there is ${at === 0 ? "no name" : "no ="}`,
      {
        path: option,
      },
    );
  }
  return { name: pair.slice(0, at), text: pair.slice(at + 1) };
}
