/**
 * The form of an elicitation: a flat JSON Schema read into fields that a user interface can show, and the check of what
 * the user filled in (MRTR-15). A form, seen before or not, is read and checked in microseconds, without a schema compiler.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema}
 */

import { checkField, type FieldBase, type FormField, type FormOption } from "./form-fields.ts";
import { FORM_FORMATS, type FormFormat } from "./formats.ts";
import { joinPath, type Problem, setOwn } from "./problems.ts";
import { isObject, type JsonObject } from "./wire.ts";

export type {
  BooleanField,
  FormField,
  FormOption,
  MultiSelectField,
  NumberField,
  OtherField,
  SelectField,
  TextField,
} from "./form-fields.ts";
export { checkField } from "./form-fields.ts";

/** A form as it was read. */
export interface Form {
  readonly fields: readonly FormField[];
  /** Names in `required` that are no property of the schema: they must be there all the same. */
  readonly alsoRequired: readonly string[];
  /** Whether the schema allows no other properties than its own. */
  readonly closed: boolean;
  /**
   * True when {@link checkForm} checks all that the schema says. False when the schema uses anything beyond the subset:
   * what `checkForm` finds is then still wrong, but a full validator has to look as well.
   */
  readonly exact: boolean;
}

// Keywords that constrain nothing. A keyword that is not known here nor read below makes the form inexact.
const ANNOTATIONS: ReadonlySet<string> = new Set([
  "title",
  "description",
  "default",
  "$comment",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
]);
const DIALECTS = /^https?:\/\/json-schema\.org\/(?:draft\/2020-12\/schema|draft-07\/schema)#?$/;

/** What reading a schema gathers on the way. */
interface Reading {
  exact: boolean;
}

/**
 * Reads a `requestedSchema`. Never throws: what is outside the subset, or malformed, becomes a field of kind "other" or
 * makes the form inexact.
 *
 * @example
 * const form = readForm(params.requestedSchema);
 * const problem = form.exact ? checkForm(form, content) : await checkWithValidator(params.requestedSchema, content);
 */
export function readForm(schema: JsonObject): Form {
  const reading: Reading = { exact: true };
  const { properties, required } = schema;
  const names = readRequired(required, reading);
  const fields: FormField[] = [];
  if (isObject(properties)) {
    for (const name of Object.keys(properties)) {
      fields.push(readField(name, properties[name], names.delete(name), reading));
    }
  } else reading.exact &&= properties === undefined;
  for (const keyword of Object.keys(schema)) {
    switch (keyword) {
      case "properties":
      case "required":
        break;
      case "type":
        reading.exact &&= schema.type === "object";
        break;
      case "$schema":
        reading.exact &&= typeof schema.$schema === "string" && DIALECTS.test(schema.$schema);
        break;
      case "additionalProperties":
        reading.exact &&= typeof schema.additionalProperties === "boolean";
        break;
      default:
        reading.exact &&= ANNOTATIONS.has(keyword);
    }
  }
  const closed = schema.additionalProperties === false;
  return { fields, alsoRequired: [...names], closed, exact: reading.exact };
}

function readRequired(required: unknown, reading: Reading): Set<string> {
  const names = new Set<string>();
  if (required === undefined) return names;
  if (!Array.isArray(required)) {
    reading.exact = false;
    return names;
  }
  for (const name of required) {
    if (typeof name === "string" && !names.has(name)) names.add(name);
    else reading.exact = false;
  }
  return names;
}

function readField(name: string, schema: unknown, required: boolean, reading: Reading): FormField {
  if (!isObject(schema)) {
    reading.exact = false;
    return { kind: "other", name, required, schema };
  }
  const base: FieldBase = {
    name,
    required,
    ...(typeof schema.title === "string" && { title: schema.title }),
    ...(typeof schema.description === "string" && { description: schema.description }),
  };
  const field = readKind(base, schema, reading);
  if (field === undefined) {
    reading.exact = false;
    return { kind: "other", ...base, schema };
  }
  const given = schema.default;
  // A default that does not fit its own field would only be refused later, so it is not offered.
  return given === undefined || checkField(field, given) !== undefined
    ? field
    : ({ ...field, default: Array.isArray(given) ? [...given] : given } as FormField);
}

function readKind(base: FieldBase, schema: JsonObject, reading: Reading): FormField | undefined {
  switch (schema.type) {
    case "string":
      return readStringField(base, schema, reading);
    case "number":
    case "integer": {
      expectKeywords(schema, NUMBER_KEYWORDS, reading);
      return {
        kind: "number",
        ...base,
        integer: schema.type === "integer",
        ...readBound("minimum", schema.minimum, isFiniteNumber, reading),
        ...readBound("maximum", schema.maximum, isFiniteNumber, reading),
      };
    }
    case "boolean":
      expectKeywords(schema, TYPE_ONLY, reading);
      return { kind: "boolean", ...base };
    case "array":
      return readMultiSelect(base, schema, reading);
    default:
      return undefined;
  }
}

const TYPE_ONLY: ReadonlySet<string> = new Set(["type"]);
const NUMBER_KEYWORDS: ReadonlySet<string> = new Set(["type", "minimum", "maximum"]);
const TEXT_KEYWORDS: ReadonlySet<string> = new Set(["type", "minLength", "maxLength", "format"]);
const ENUM_KEYWORDS: ReadonlySet<string> = new Set(["type", "enum", "enumNames"]);
const ONE_OF_KEYWORDS: ReadonlySet<string> = new Set(["type", "oneOf"]);
const ARRAY_KEYWORDS: ReadonlySet<string> = new Set(["type", "items", "minItems", "maxItems"]);
const ITEM_ENUM_KEYWORDS: ReadonlySet<string> = new Set(["type", "enum"]);
const ITEM_ANY_OF_KEYWORDS: ReadonlySet<string> = new Set(["type", "anyOf"]);

function expectKeywords(schema: JsonObject, known: ReadonlySet<string>, reading: Reading): void {
  for (const keyword of Object.keys(schema)) {
    if (!known.has(keyword) && !ANNOTATIONS.has(keyword)) reading.exact = false;
  }
}

function readBound<K extends string>(
  name: K,
  value: unknown,
  fits: (value: unknown) => value is number,
  reading: Reading,
): { [P in K]?: number } {
  if (fits(value)) return { [name]: value } as { [P in K]: number };
  if (value !== undefined) reading.exact = false;
  return {};
}

function isFiniteNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function readStringField(base: FieldBase, schema: JsonObject, reading: Reading): FormField | undefined {
  if (schema.enum !== undefined) {
    expectKeywords(schema, ENUM_KEYWORDS, reading);
    const options = readEnum(schema.enum, schema.enumNames);
    return options && { kind: "select", ...base, options };
  }
  if (schema.oneOf !== undefined) {
    expectKeywords(schema, ONE_OF_KEYWORDS, reading);
    const options = readTitled(schema.oneOf, reading);
    // With "oneOf" a value that is listed twice matches two schemas, and so none.
    if (options !== undefined && new Set(options.map(({ value }) => value)).size < options.length)
      reading.exact = false;
    return options && { kind: "select", ...base, options };
  }
  expectKeywords(schema, TEXT_KEYWORDS, reading);
  const { format } = schema;
  const known = typeof format === "string" && Object.hasOwn(FORM_FORMATS, format);
  if (format !== undefined && !known) reading.exact = false;
  return {
    kind: "text",
    ...base,
    ...readBound("minLength", schema.minLength, isCount, reading),
    ...readBound("maxLength", schema.maxLength, isCount, reading),
    ...(known && { format: format as FormFormat }),
  };
}

function readMultiSelect(base: FieldBase, schema: JsonObject, reading: Reading): FormField | undefined {
  expectKeywords(schema, ARRAY_KEYWORDS, reading);
  const { items } = schema;
  if (!isObject(items) || (items.type !== undefined && items.type !== "string")) return undefined;
  let options: readonly FormOption[] | undefined;
  if (items.enum !== undefined) {
    expectKeywords(items, ITEM_ENUM_KEYWORDS, reading);
    options = readEnum(items.enum, undefined);
  } else if (items.anyOf !== undefined) {
    expectKeywords(items, ITEM_ANY_OF_KEYWORDS, reading);
    options = readTitled(items.anyOf, reading);
  }
  return (
    options && {
      kind: "multi-select",
      ...base,
      options,
      ...readBound("minItems", schema.minItems, isCount, reading),
      ...readBound("maxItems", schema.maxItems, isCount, reading),
    }
  );
}

function readEnum(values: unknown, names: unknown): readonly FormOption[] | undefined {
  if (!Array.isArray(values) || values.length === 0) return undefined;
  const titles: readonly unknown[] = Array.isArray(names) ? names : [];
  const options: FormOption[] = [];
  for (const [index, value] of values.entries()) {
    if (typeof value !== "string") return undefined;
    const title = titles[index];
    options.push({ value, title: typeof title === "string" ? title : value });
  }
  // A duplicate in "enum" is against the meta-schema; the validator is left to say so.
  return new Set(values).size === values.length ? options : undefined;
}

function readTitled(entries: unknown, reading: Reading): readonly FormOption[] | undefined {
  if (!Array.isArray(entries) || entries.length === 0) return undefined;
  const options: FormOption[] = [];
  for (const entry of entries) {
    if (!isObject(entry) || typeof entry.const !== "string") return undefined;
    expectKeywords(entry, CONST_KEYWORDS, reading);
    options.push({ value: entry.const, title: typeof entry.title === "string" ? entry.title : entry.const });
  }
  return options;
}

const CONST_KEYWORDS: ReadonlySet<string> = new Set(["const"]);

/** The default values of a form, as own properties of a fresh object: to pre-fill it. Empty when there are none. */
export function formDefaults(form: Form): Record<string, string | number | boolean | string[]> {
  const defaults: Record<string, string | number | boolean | string[]> = {};
  for (const field of form.fields) {
    if (field.kind === "other" || field.default === undefined) continue;
    const value = field.default;
    setOwn(defaults, field.name, typeof value === "object" ? [...value] : value);
  }
  return defaults;
}

/** The first thing that is wrong with `content`; undefined when nothing is. Paths begin with `content`. */
export function checkForm(form: Form, content: JsonObject): Problem | undefined {
  for (const field of form.fields) {
    const message = Object.hasOwn(content, field.name)
      ? checkField(field, content[field.name])
      : field.required
        ? MISSING
        : undefined;
    if (message !== undefined) return { path: joinPath("content", field.name), message };
  }
  for (const name of form.alsoRequired) {
    if (!Object.hasOwn(content, name)) return { path: joinPath("content", name), message: MISSING };
  }
  if (!form.closed) return undefined;
  const known = new Set(form.fields.map(({ name }) => name));
  const other = Object.keys(content).find((name) => !known.has(name));
  return other === undefined
    ? undefined
    : { path: joinPath("content", other), message: "is not a field of this form" };
}

const MISSING = "is required and missing";
