/** Reads the arguments of one command against its option table; every fault says what was expected. */

import { parseArgs } from "node:util";
import { type Command, type OptionTable, TARGET } from "./command.ts";
import { CommandLineError } from "./usage.ts";

/** The arguments of one command, read. */
export class Arguments {
  /** The command after `--`, which is a server to start; undefined when there was no `--`. */
  readonly server: readonly string[] | undefined;
  readonly #values: ReadonlyMap<string, readonly string[]>;
  readonly #positionals: ReadonlyMap<string, string>;

  constructor(
    values: ReadonlyMap<string, readonly string[]>,
    positionals: ReadonlyMap<string, string>,
    server: readonly string[] | undefined,
  ) {
    this.#values = values;
    this.#positionals = positionals;
    this.server = server;
  }

  /** Whether an option was given. */
  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** The value of an option; of the last, if it was given more than once. */
  text(name: string): string | undefined {
    return this.#values.get(name)?.at(-1);
  }

  /** Every value of an option, in order. */
  texts(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }

  /** A whole number that is not negative. */
  count(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(Number(text))) {
      throw new CommandLineError(
        `--${name} must be a whole number that is not negative, not "${text.slice(0, 40)}"`,
        {
          path: `--${name}`,
        },
      );
    }
    return Number(text);
  }

  /** A time in milliseconds, more than 0. */
  milliseconds(name: string): number | undefined {
    const count = this.count(name);
    if (count === 0) {
      throw new CommandLineError(`--${name} must be more than 0 milliseconds; leave it out for no bound`, {
        path: `--${name}`,
      });
    }
    return count;
  }

  /** A positional by its name in the command's list; a missing one is an error beforehand. */
  positional(name: string): string {
    return this.#positionals.get(name)!;
  }

  /** The target, where it was given as a positional. */
  get target(): string | undefined {
    return this.#positionals.get(TARGET);
  }
}

/** Reads `argv`, which begins after the command's name. @throws {CommandLineError} */
export function readArguments(command: Command, argv: readonly string[]): Arguments {
  const { own, server } = splitAtDashes(argv);
  const { values, positionals } = readTokens(command, own);
  const targetIsGiven = server !== undefined || values.has("config");
  return new Arguments(
    values,
    namePositionals(command, positionals, targetIsGiven, server !== undefined),
    server,
  );
}

/** Whether the arguments ask for an option, even where the rest of them cannot be read. */
export function mentions(argv: readonly string[], ...names: readonly string[]): boolean {
  return splitAtDashes(argv).own.some((argument) => names.includes(argument));
}

function splitAtDashes(argv: readonly string[]): {
  own: readonly string[];
  server: readonly string[] | undefined;
} {
  const at = argv.indexOf("--");
  return at === -1
    ? { own: argv, server: undefined }
    : { own: argv.slice(0, at), server: argv.slice(at + 1) };
}

function readTokens(command: Command, argv: readonly string[]) {
  const { options: table } = command;
  const { tokens } = parseArgs({
    args: [...argv],
    options: parseOptions(table),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const values = new Map<string, string[]>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const { name, rawName, value, inlineValue } = token;
    const spec = Object.hasOwn(table, name) ? table[name]! : undefined;
    if (spec === undefined) throw unknownOption(command, rawName);
    if (spec.takes === undefined) {
      if (inlineValue === true) throw new CommandLineError(`--${name} takes no value`, { path: `--${name}` });
      values.set(name, []);
      continue;
    }
    // A value that looks like an option is one that was forgotten; a negative number is a value.
    if (value === undefined || (inlineValue !== true && /^-[^\d]/.test(value))) {
      throw new CommandLineError(
        `--${name} needs a value (${spec.takes}); write --${name}=VALUE if it begins with a dash`,
        { path: `--${name}` },
      );
    }
    const earlier = spec.multiple === true ? values.get(name) : undefined;
    values.set(name, [...(earlier ?? []), value]);
  }
  return { values, positionals };
}

function parseOptions(table: OptionTable) {
  return Object.fromEntries(
    Object.entries(table).map(([name, { takes, short }]) => [
      name,
      {
        type: takes === undefined ? ("boolean" as const) : ("string" as const),
        ...(short !== undefined && { short }),
      },
    ]),
  );
}

function unknownOption({ name: command, options }: Command, rawName: string): CommandLineError {
  const near = nearest(rawName.replace(/^-+/, ""), Object.keys(options));
  const hint = near === undefined ? "" : ` Did you mean --${near}?`;
  return new CommandLineError(
    `unknown option "${rawName.slice(0, 60)}".${hint} Options of a server's own command go after --. See: mcp-rally ${command} --help`,
    { path: rawName },
  );
}

function namePositionals(
  command: Command,
  given: readonly string[],
  targetIsGiven: boolean,
  byDashes: boolean,
): ReadonlyMap<string, string> {
  const wanted = command.positionals.filter((name) => !(name === TARGET && targetIsGiven));
  if (given.length > wanted.length) {
    if (targetIsGiven && given.length === wanted.length + 1) {
      const other = byDashes ? "a command after --" : "--config";
      throw new CommandLineError(
        `there is one argument too many: the server is given by ${other}, so what is left is ${list(wanted)}`,
      );
    }
    throw new CommandLineError(
      `there are ${given.length} arguments, and ${command.name} takes ${list(wanted)}; put quotes around a value with spaces`,
    );
  }
  if (given.length < wanted.length) {
    const how = wanted.includes(TARGET)
      ? `; ${TARGET} is a URL, or --config FILE --server NAME, or -- and a command`
      : "";
    const were =
      given.length === 0 ? "nothing was" : given.length === 1 ? "one argument was" : "two arguments were";
    throw new CommandLineError(
      `${command.name} needs ${list(wanted)}, and ${were} given${how}. See: mcp-rally ${command.name} --help`,
    );
  }
  return new Map(wanted.map((name, index) => [name, given[index]!]));
}

function list(names: readonly string[]): string {
  return names.length === 0 ? "nothing" : names.join(" and ");
}

/** The name that is most like `name`, if one is like it at all. */
export function nearest(name: string, names: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = Math.max(1, Math.floor(name.length / 3)) + 1;
  for (const candidate of names) {
    const distance = candidate.startsWith(name) && name.length > 1 ? 1 : editDistance(name, candidate);
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i++) {
    const next = [i];
    for (let j = 1; j <= right.length; j++) {
      const swap = row[j - 1]! + (left[i - 1] === right[j - 1] ? 0 : 1);
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, swap));
    }
    row = next;
  }
  return row[right.length]!;
}
