/**
 * The fields of an elicitation's form, and the check of one value of one field.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema}
 */

import { FORM_FORMATS, type FormFormat } from "./formats.ts";
import { typeName } from "./wire.ts";

/** One choice of a select field. */
export interface FormOption {
  readonly value: string;
  /** What to show; the value itself when the schema gives no title. */
  readonly title: string;
}

/** What every field has. */
export interface FieldBase {
  /** The property name. Any string, also `__proto__` or the empty one. */
  readonly name: string;
  readonly required: boolean;
  readonly title?: string;
  readonly description?: string;
}

/** Free text. */
export interface TextField extends FieldBase {
  readonly kind: "text";
  /** The fewest and the most characters, counted in code points as JSON Schema does. */
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly format?: FormFormat;
  readonly default?: string;
}

/** A number. */
export interface NumberField extends FieldBase {
  readonly kind: "number";
  /** Whether only whole numbers will do. */
  readonly integer: boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: number;
}

/** Yes or no. */
export interface BooleanField extends FieldBase {
  readonly kind: "boolean";
  readonly default?: boolean;
}

/** One of several strings. */
export interface SelectField extends FieldBase {
  readonly kind: "select";
  readonly options: readonly FormOption[];
  readonly default?: string;
}

/** Any number of several strings, within bounds. */
export interface MultiSelectField extends FieldBase {
  readonly kind: "multi-select";
  readonly options: readonly FormOption[];
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly default?: readonly string[];
}

/** A property outside the subset that the specification allows: show its schema as JSON, and check with a validator. */
export interface OtherField extends FieldBase {
  readonly kind: "other";
  readonly schema: unknown;
}

/** One field of a form, in the order of the schema's properties. */
export type FormField = TextField | NumberField | BooleanField | SelectField | MultiSelectField | OtherField;

/** What is wrong with one value of one field, such as "must be 18 or more"; undefined when it fits. */
export function checkField(field: FormField, value: unknown): string | undefined {
  switch (field.kind) {
    case "text":
      return typeof value === "string" ? checkText(field, value) : wrongType("a string", value);
    case "number":
      return typeof value === "number" ? checkNumber(field, value) : wrongType("a number", value);
    case "boolean":
      return typeof value === "boolean" ? undefined : wrongType("true or false", value);
    case "select":
      if (typeof value !== "string") return wrongType("a string", value);
      return field.options.some((option) => option.value === value)
        ? undefined
        : `must be ${oneOf(field.options)}`;
    case "multi-select":
      return Array.isArray(value) ? checkSelection(field, value) : wrongType("an array of strings", value);
    case "other":
      return undefined;
  }
}

function checkText({ minLength, maxLength, format }: TextField, text: string): string | undefined {
  // A code point is one or two code units, so the length in units decides most cases without a count.
  if (
    minLength !== undefined &&
    (text.length < minLength || (text.length < minLength * 2 && points(text) < minLength))
  ) {
    return `must be at least ${count(minLength, "character")} long`;
  }
  if (maxLength !== undefined && text.length > maxLength && points(text) > maxLength) {
    return `must be at most ${count(maxLength, "character")} long`;
  }
  if (format !== undefined && !FORM_FORMATS[format](text)) return FORMAT_MESSAGES[format];
  return undefined;
}

const FORMAT_MESSAGES: Readonly<Record<FormFormat, string>> = {
  email: "must be an email address",
  uri: "must be an absolute URI, such as https://example.com/",
  date: "must be a date, such as 2026-07-28",
  "date-time": "must be a date and time with an offset, such as 2026-07-28T12:00:00Z",
};

function points(text: string): number {
  let length = text.length;
  for (let index = 0; index < text.length - 1; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0xd800 || unit > 0xdbff) continue;
    const next = text.charCodeAt(index + 1);
    if (next >= 0xdc00 && next <= 0xdfff) {
      length--;
      index++;
    }
  }
  return length;
}

function checkNumber({ integer, minimum, maximum }: NumberField, value: number): string | undefined {
  if (!Number.isFinite(value)) return "must be a finite number";
  if (integer && !Number.isInteger(value)) return "must be a whole number";
  if (minimum !== undefined && value < minimum) return `must be ${minimum} or more`;
  if (maximum !== undefined && value > maximum) return `must be ${maximum} or less`;
  return undefined;
}

function checkSelection(field: MultiSelectField, values: readonly unknown[]): string | undefined {
  const { options, minItems, maxItems } = field;
  if (minItems !== undefined && values.length < minItems)
    return `must have at least ${count(minItems, "item")}`;
  if (maxItems !== undefined && values.length > maxItems)
    return `must have at most ${count(maxItems, "item")}`;
  const known = new Set<unknown>(options.map(({ value }) => value));
  return values.every((value) => known.has(value)) ? undefined : `must hold only ${oneOf(options)}`;
}

function wrongType(wanted: string, value: unknown): string {
  return `must be ${wanted}, not ${typeName(value)}`;
}

function count(many: number, what: string): string {
  return `${many} ${what}${many === 1 ? "" : "s"}`;
}

const SHOWN_OPTIONS = 12;

function oneOf(options: readonly FormOption[]): string {
  const shown = options.slice(0, SHOWN_OPTIONS).map(({ value }) => JSON.stringify(value.slice(0, 60)));
  const more = options.length - shown.length;
  return `one of ${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
