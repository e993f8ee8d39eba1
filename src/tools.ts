/**
 * What is known of the server's tools, from the lists that were read: which params to mirror (HDR-02), what the output
 * must satisfy (SCH-01), and whether a second run does harm. It outlives the list's ttl: a header map that is too old is
 * put right by -32020 and a refresh (HDR-03), one that is forgotten could not be.
 */

import { UsageError } from "./errors.ts";
import { type MirrorRule, planMirroring } from "./mirroring.ts";
import { isObject, type JsonObject, typeName } from "./wire.ts";

/** One tool, as far as a call needs to know it. */
export interface KnownTool {
  readonly name: string;
  /** The params to mirror; none when the definition was rejected. */
  readonly rules: readonly MirrorRule[];
  /** Why the definition was rejected. */
  readonly fault: string | undefined;
  /** As the server gave it; undefined for none. */
  readonly outputSchema: unknown;
  /** It declares `readOnlyHint` or `idempotentHint`: worth as much as the server is trusted. */
  readonly claimsRepeatable: boolean;
}

/** A tool in the book, and in which edition of it: editions only grow. */
export interface BookEntry {
  readonly tool: KnownTool;
  readonly edition: number;
}

// Far more than any server offers at a time; the oldest give way, so that a server that renames its tools costs no memory.
const MOST_TOOLS = 10_000;

/** The tools of one server, by name. */
export class ToolBook {
  readonly #rejected: (name: string, reason: string) => void;
  readonly #entries = new Map<string, BookEntry>();
  /** By the definition itself: a cached list is read once. */
  readonly #read = new WeakMap<object, KnownTool>();
  #edition = 0;

  /** @param rejected Told once of each definition that has to be left out of the list. */
  constructor(rejected: (name: string, reason: string) => void) {
    this.#rejected = rejected;
  }

  /** How many fresh pages were learned. */
  get edition(): number {
    return this.#edition;
  }

  /**
   * Takes in one page of `tools/list`. Entries that are no tools are passed over. A page from the cache (`fresh` is false)
   * adds what the book does not have, and changes nothing.
   */
  learn(page: JsonObject, fresh = true): void {
    const edition = fresh ? ++this.#edition : 0;
    const { tools } = page;
    if (!Array.isArray(tools)) return;
    for (const definition of tools) {
      const tool = this.#readOnce(definition);
      if (tool === undefined || (!fresh && this.#entries.has(tool.name))) continue;
      this.#entries.delete(tool.name);
      this.#entries.set(tool.name, { tool, edition });
      if (this.#entries.size > MOST_TOOLS) this.#entries.delete(this.#entries.keys().next().value!);
    }
  }

  /** Whether a definition of a list that was learned has to be left out. */
  isRejected(definition: unknown): boolean {
    return this.#readOnce(definition)?.fault !== undefined;
  }

  /** What the last list that named the tool said. */
  entry(name: string): BookEntry | undefined {
    return this.#entries.get(name);
  }

  /**
   * The tool that a call names: `given`, where the host gave a definition with the call, or else what the book says.
   *
   * @throws {UsageError} when `given` is of another tool, or its annotations are invalid.
   */
  find(name: string, given: unknown): KnownTool | undefined {
    if (given === undefined) return this.#entries.get(name)?.tool;
    if (!isObject(given) || typeof given.name !== "string") {
      throw new UsageError(
        `tool must be a definition as tools/list gives it, not ${isObject(given) ? "one without a name" : typeName(given)}`,
        { path: "tool" },
      );
    }
    if (given.name !== name) {
      throw new UsageError(
        `the call names ${shown(name)}, and tool is the definition of ${shown(given.name)}`,
        {
          path: "tool.name",
        },
      );
    }
    const tool = this.#read.get(given) ?? readTool(given);
    if (tool.fault !== undefined) {
      throw new UsageError(
        `the definition of ${shown(name)} cannot be used: ${tool.fault}. Nothing was sent.`,
        {
          path: "tool.inputSchema",
        },
      );
    }
    this.#read.set(given, tool);
    return tool;
  }

  #readOnce(definition: unknown): KnownTool | undefined {
    if (!isObject(definition) || typeof definition.name !== "string") return undefined;
    let tool = this.#read.get(definition);
    if (tool === undefined) {
      tool = readTool(definition);
      this.#read.set(definition, tool);
      if (tool.fault !== undefined) this.#rejected(tool.name, tool.fault);
    }
    return tool;
  }
}

function readTool(definition: JsonObject): KnownTool {
  const plan = planMirroring(definition.inputSchema);
  const { annotations, outputSchema } = definition;
  const { readOnlyHint, idempotentHint } = isObject(annotations) ? annotations : {};
  return {
    name: definition.name as string,
    rules: "rules" in plan ? plan.rules : [],
    fault: "fault" in plan ? plan.fault : undefined,
    // Servers that write absent members as null mean "none".
    outputSchema: outputSchema ?? undefined,
    claimsRepeatable: readOnlyHint === true || idempotentHint === true,
  };
}

function shown(name: string): string {
  return JSON.stringify(name.length > 120 ? `${name.slice(0, 117)}...` : name);
}
