/**
 * The schema validator: JSON Schema 2020-12, and draft-07 when a schema says so, by ajv, which is loaded when the first
 * schema has to be checked. A schema comes from a peer and is treated as hostile: it is bounded in size, its patterns run
 * in linear time, the time of a check is bounded, and no reference is ever fetched (SCH-01).
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic#json-schema-usage}
 */

import type { AjvKit, Dialect } from "./ajv-kit.ts";
import { SchemaError } from "./errors.ts";
import type { Problem } from "./problems.ts";
import { checkSchemaBounds, passed, SCHEMA_BOUNDS, type SchemaBounds } from "./schema-bounds.ts";
import { clip } from "./show.ts";
import { isObject, typeName } from "./wire.ts";

/**
 * Checks one value: the first problem, or undefined when the value satisfies the schema. Throws a {@link SchemaError} when
 * the value cannot be checked within bounds.
 */
export type SchemaCheck = (value: unknown) => Problem | undefined;

/**
 * What the client needs of a validator. A host may give its own as the `validator` option, for instance where code
 * generation is forbidden; it must be safe against hostile schemas by itself.
 */
export interface SchemaValidator {
  /**
   * Prepares a schema. Called for every check with the same schema object, so it should remember what it prepared. Throws
   * or rejects with a {@link SchemaError} when the schema cannot be used; only the call at hand fails then.
   */
  compile(schema: unknown): SchemaCheck | Promise<SchemaCheck>;
}

/** Options of {@link createValidator}. */
export interface ValidatorOptions {
  /** How large a schema may be; what is left out keeps its default. */
  readonly bounds?: Partial<SchemaBounds>;
  /** The longest that the check of one value may take, in milliseconds. Default 100. */
  readonly checkMs?: number;
  /** How many compiled schemas are kept, by their text. Default 256. */
  readonly cacheSize?: number;
}

/** What a schema text came to: a check, or why there is none. */
type Compiled = { readonly check: SchemaCheck } | { readonly message: string; readonly path: string };

const DIALECTS: ReadonlyMap<string, Dialect> = new Map([
  ["json-schema.org/draft/2020-12/schema", "2020-12"],
  ["json-schema.org/draft-07/schema", "draft-07"],
]);

/**
 * Creates a validator. Schemas are remembered by object, so do not change one after its first use, and by text.
 *
 * @example
 * const check = await createValidator().compile(tool.outputSchema);
 * const problem = check(result.structuredContent);
 */
export function createValidator(options: ValidatorOptions = {}): SchemaValidator {
  const bounds: SchemaBounds = { ...SCHEMA_BOUNDS, ...options.bounds };
  const checkMs = options.checkMs ?? 100;
  const cacheSize = options.cacheSize ?? 256;
  const byObject = new WeakMap<object, SchemaCheck>();
  const byText = new Map<string, Compiled>();
  let kit: AjvKit | undefined;

  function remember(text: string, compiled: Compiled): Compiled {
    byText.set(text, compiled);
    if (byText.size > cacheSize) byText.delete(byText.keys().next().value!);
    return compiled;
  }

  function recall(text: string): Compiled | undefined {
    const known = byText.get(text);
    if (known !== undefined) {
      byText.delete(text);
      byText.set(text, known);
    }
    return known;
  }

  function build(text: string, ready: AjvKit): Compiled {
    try {
      const schema: unknown = JSON.parse(text);
      return remember(text, { check: ready.compile(schema, readDialect(schema), checkMs) });
    } catch (error) {
      if (ready.wantsLinear(error)) throw error;
      const known = error instanceof SchemaError ? error : unusable(error);
      // The error itself is not kept: each call gets one of its own, with its own stack and operation.
      return remember(text, { message: known.message, path: known.path });
    }
  }

  async function load(text: string, source: unknown): Promise<SchemaCheck> {
    kit ??= await loadAjvKit();
    let compiled: Compiled;
    try {
      compiled = recall(text) ?? build(text, kit);
    } catch {
      await kit.loadLinear();
      compiled = recall(text) ?? build(text, kit);
    }
    return finish(compiled, source);
  }

  function finish(compiled: Compiled, source: unknown): SchemaCheck {
    if ("message" in compiled) throw new SchemaError(compiled.message, compiled.path);
    if (typeof source === "object" && source !== null) byObject.set(source, compiled.check);
    return compiled.check;
  }

  return {
    compile(schema) {
      if (typeof schema === "object" && schema !== null) {
        const known = byObject.get(schema);
        if (known !== undefined) return known;
      } else if (typeof schema !== "boolean") {
        throw new SchemaError(`A schema must be an object or a boolean, not ${typeName(schema)}.`, "");
      }
      checkSchemaBounds(schema, bounds);
      const text = encode(schema, bounds);
      const compiled = recall(text);
      return compiled === undefined ? load(text, schema) : finish(compiled, schema);
    },
  };
}

function encode(schema: unknown, bounds: SchemaBounds): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(schema);
  } catch (cause) {
    throw new SchemaError(`The schema is no JSON: ${(cause as Error).message}.`, "", { cause });
  }
  if (typeof text !== "string") throw new SchemaError("The schema is no JSON.", "");
  if (text.length * 3 > bounds.bytes && new TextEncoder().encode(text).length > bounds.bytes) {
    throw passed("bytes", bounds.bytes, "bytes");
  }
  return text;
}

/** The dialect of a schema: what `$schema` says, or 2020-12. */
function readDialect(schema: unknown): Dialect {
  if (!isObject(schema) || schema.$schema === undefined) return "2020-12";
  const named = schema.$schema;
  const dialect =
    typeof named === "string" ? DIALECTS.get(named.replace(/^https?:\/\//, "").replace(/#$/, "")) : undefined;
  if (dialect !== undefined) return dialect;
  throw new SchemaError(
    `The schema's dialect ${clip(JSON.stringify(named) ?? "", 300)} is not supported; supported are JSON Schema 2020-12 (also without "$schema") and draft-07.`,
    "$schema",
  );
}

function unusable(error: unknown): SchemaError {
  if (error instanceof RangeError) {
    return new SchemaError("The schema nests or refers to itself too deeply to be compiled.", "");
  }
  return new SchemaError(`The schema cannot be used: ${clip((error as Error).message, 300)}.`, "");
}

let loading: Promise<AjvKit> | undefined;

function loadAjvKit(): Promise<AjvKit> {
  loading ??= import("./ajv-kit.ts").then(({ createAjvKit }) => createAjvKit());
  return loading;
}
