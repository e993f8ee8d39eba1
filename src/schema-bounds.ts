/**
 * Bounds on a schema, looked at before anything else is done with it (SCH-01, LIM-01).
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic#composition-keyword-resource-use}
 */

import { SchemaError } from "./errors.ts";

/** How large a schema may be. */
export interface SchemaBounds {
  /** Bytes of its JSON text. Default 256 KiB. */
  readonly bytes: number;
  /** Levels of nesting, arrays and objects alike. Default 128. */
  readonly depth: number;
  /** Objects in it, which is at least the number of its subschemas. Default 500. */
  readonly subschemas: number;
  /** Members of all its objects together, which is at least the number of its keywords. Default 5,000. */
  readonly keywords: number;
}

/** The bounds that hold unless the host gives others. Compiling a usual schema of this size takes about 0.1 s. */
export const SCHEMA_BOUNDS: SchemaBounds = { bytes: 262_144, depth: 128, subschemas: 500, keywords: 5_000 };

/**
 * Throws a {@link SchemaError} that names the bound when `schema` passes one. Walks without recursion and stops at the
 * bound, so neither a deep, a cyclic nor an endlessly shared structure can do harm.
 */
export function checkSchemaBounds(schema: unknown, bounds: SchemaBounds): void {
  let bytes = 0;
  let subschemas = 0;
  let keywords = 0;
  const open: { readonly value: unknown; readonly depth: number }[] = [{ value: schema, depth: 1 }];
  for (let entry = open.pop(); entry !== undefined; entry = open.pop()) {
    const { value, depth } = entry;
    bytes +=
      typeof value === "string" ? value.length + 2 : typeof value === "number" ? String(value).length + 1 : 2;
    if (typeof value === "object" && value !== null) {
      if (depth > bounds.depth) throw passed("depth", bounds.depth, "levels of nesting");
      if (Array.isArray(value)) {
        if (bytes + value.length * 2 > bounds.bytes) throw passed("bytes", bounds.bytes, "bytes");
        for (const item of value) open.push({ value: item, depth: depth + 1 });
      } else {
        if (++subschemas > bounds.subschemas) throw passed("subschemas", bounds.subschemas, "subschemas");
        const keys = Object.keys(value);
        keywords += keys.length;
        if (keywords > bounds.keywords) throw passed("keywords", bounds.keywords, "keywords");
        for (const key of keys) {
          bytes += key.length + 3;
          open.push({ value: (value as Record<string, unknown>)[key], depth: depth + 1 });
        }
      }
    }
    if (bytes > bounds.bytes) throw passed("bytes", bounds.bytes, "bytes");
  }
}

/** The error for a schema that passes a bound. */
export function passed(bound: keyof SchemaBounds, allowed: number, unit: string): SchemaError {
  return new SchemaError(
    `The schema is too large to be checked safely: it has more than ${allowed} ${unit} (bound "${bound}"). Make the schema smaller, or give the client a validator with a higher bound (createValidator) if you trust its server.`,
    "",
  );
}
