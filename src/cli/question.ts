/** One question of a server, and how it is described to someone who has to answer it. */

import { checkElicitUrl } from "../elicit-url.ts";
import { type Form, type FormField, readForm } from "../form.ts";
import type { InputKind } from "../input-required.ts";
import type { JsonObject } from "../wire.ts";
import { clipLine, sanitiseLine } from "./sanitise.ts";

/** An input request in its surroundings. */
export interface Question {
  readonly key: string;
  readonly kind: InputKind;
  readonly params: JsonObject;
  /** Which server asks, during which call. */
  readonly peer: string;
  readonly method: string;
  readonly name: string | undefined;
  readonly signal: AbortSignal;
}

const KIND_NAMES: Readonly<Record<InputKind, string>> = {
  elicitForm: "form",
  elicitUrl: "URL to visit",
  sample: "message from a model",
  listRoots: "roots",
};

/** The form of a form question. */
export function formOf({ params }: Question): Form {
  return readForm(params.requestedSchema as JsonObject);
}

/** A field as one line of a description: `age  whole number, 18 to 99, required: Your age`. */
export function fieldLine(field: FormField): string {
  const about = field.title ?? field.description;
  return `${clipLine(field.name, 60)}  ${fieldType(field)}${field.required ? ", required" : ", optional"}${
    about === undefined ? "" : `: ${clipLine(about, 120)}`
  }`;
}

const SHOWN_OPTIONS = 8;

/** What a field takes, in words. */
export function fieldType(field: FormField): string {
  switch (field.kind) {
    case "text": {
      const { format, minLength, maxLength } = field;
      const long = boundsText(minLength, maxLength);
      return `${format ?? "text"}${long === "" ? "" : `, ${long} character${/\b1$/.test(long) ? "" : "s"}`}`;
    }
    case "number": {
      const range = boundsText(field.minimum, field.maximum);
      return `${field.integer ? "whole number" : "number"}${range === "" ? "" : `, ${range}`}`;
    }
    case "boolean":
      return "true or false";
    case "select":
      return `one of ${optionList(field.options)}`;
    case "multi-select": {
      const many = boundsText(field.minItems, field.maxItems);
      return `list of ${optionList(field.options)}${many === "" ? "" : `, ${many} of them`}`;
    }
    case "other":
      return `JSON that satisfies ${clipLine(JSON.stringify(field.schema) ?? "", 200)}`;
  }
}

function optionList(options: readonly { readonly value: string }[]): string {
  const shown = options.slice(0, SHOWN_OPTIONS).map(({ value }) => clipLine(JSON.stringify(value), 40));
  return `${shown.join(" | ")}${options.length > SHOWN_OPTIONS ? " | …" : ""}`;
}

/** `at least 2`, `2 to 5`; empty where there are no bounds. */
export function boundsText(least: number | undefined, most: number | undefined): string {
  if (least !== undefined && most !== undefined)
    return least === most ? String(least) : `${least} to ${most}`;
  if (least !== undefined) return `at least ${least}`;
  return most === undefined ? "" : `at most ${most}`;
}

/** A question that was not answered, as lines for a terminal: what is asked, and how to answer it. */
export function describeQuestion(question: Question): string[] {
  const { key, kind, params } = question;
  const message = typeof params.message === "string" ? `: ${clipLine(params.message, 300)}` : "";
  const lines = [`  ${sanitiseLine(JSON.stringify(key))} wants a ${KIND_NAMES[kind]}${message}`];
  if (kind === "elicitForm")
    for (const field of formOf(question).fields) lines.push(`    ${fieldLine(field)}`);
  if (kind === "elicitUrl") {
    const checked = checkElicitUrl(params.url as string);
    if ("url" in checked) lines.push(`    ${checked.url.href}`);
  }
  lines.push(`    --answer ${shellQuoted(`${argumentKey(key)}=${exampleAnswer(question)}`)}`);
  return lines;
}

function argumentKey(key: string): string {
  return key === "" || key.includes("=") || key.startsWith('"') ? JSON.stringify(key) : key;
}

function exampleAnswer(question: Question): string {
  switch (question.kind) {
    case "elicitForm":
      return JSON.stringify(
        Object.fromEntries(formOf(question).fields.map((field) => [field.name, exampleValue(field)])),
      );
    case "elicitUrl":
      return "accept";
    case "sample":
      return '"the message"';
    case "listRoots":
      return '["file:///path"]';
  }
}

function exampleValue(field: FormField): unknown {
  if (field.kind === "other") return null;
  if (field.default !== undefined) return field.default;
  switch (field.kind) {
    case "text":
      return "…";
    case "number":
      return field.minimum ?? Math.min(0, field.maximum ?? 0);
    case "boolean":
      return true;
    case "select":
      return field.options[0]?.value;
    case "multi-select":
      return field.options.slice(0, Math.max(1, field.minItems ?? 1)).map(({ value }) => value);
  }
}

/** Quotes a text for a POSIX shell. The keys and names in it are a server's, so nothing may be left for the shell to obey. */
function shellQuoted(text: string): string {
  return `'${sanitiseLine(text).replaceAll("'", "'\\''")}'`;
}
