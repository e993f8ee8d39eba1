/** One prompt for each kind of form field. */

import { styleText } from "node:util";
import { confirm, log, multiselect, select, text } from "@clack/prompts";
import { checkField, type FormField, type MultiSelectField, type SelectField } from "../form.ts";
import { LEFT, type Left, onPrompt, type PromptIo } from "./prompt-io.ts";
import { boundsText, fieldType } from "./question.ts";
import { clipLine } from "./sanitise.ts";

const SHOWN_OPTIONS = 10;
const EMPTY = "";

/** Asks for one field, beginning with `known`. Undefined: the field is left empty. */
export function askField(field: FormField, known: unknown, io: PromptIo): Promise<unknown | Left> {
  switch (field.kind) {
    case "text":
    case "number":
    case "other":
      return askText(field, known, io);
    case "boolean":
      return askBoolean(field, known, io);
    case "select":
      return askSelect(field, known, io);
    case "multi-select":
      return askMultiSelect(field, known, io);
  }
}

/** One line: the prompts of the library do not indent a second one. */
function heading(field: FormField, hint?: string): string {
  const title = `${clipLine(field.title ?? field.name, 120)}${field.required ? "" : ", optional"}`;
  const about = field.description === undefined ? [] : [clipLine(field.description, 400)];
  const small = [...about, ...(hint === undefined ? [] : [hint])].join("; ");
  return small === "" ? title : `${title} ${styleText("dim", `(${small})`)}`;
}

type TypedField = Extract<FormField, { kind: "text" | "number" | "other" }>;

async function askText(field: TypedField, known: unknown, io: PromptIo): Promise<unknown> {
  const type = fieldType(field);
  const typed = await onPrompt(io, (common) =>
    text({
      message: heading(field, type === "text" ? undefined : type),
      initialValue: known === undefined ? "" : field.kind === "text" ? String(known) : JSON.stringify(known),
      validate: (value) => problemWith(field, value ?? ""),
      ...common,
    }),
  );
  if (typed === LEFT) return LEFT;
  const read = readTyped(field, typed ?? "");
  return "value" in read ? read.value : undefined;
}

/** What is wrong with a typed text, for the line below the prompt. */
function problemWith(field: TypedField, typed: string): string | undefined {
  const read = readTyped(field, typed);
  if ("problem" in read) return read.problem;
  if (read.value === undefined) return field.required ? "This is required (Esc leaves the form)" : undefined;
  const problem = checkField(field, read.value);
  return problem === undefined ? undefined : clipLine(`This ${problem}`, 200);
}

function readTyped(field: TypedField, typed: string): { value: unknown } | { problem: string } {
  if (typed.trim() === "" && !(field.kind === "text" && typed !== "")) return { value: undefined };
  switch (field.kind) {
    case "text":
      return { value: typed };
    case "number": {
      const number = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(typed.trim())
        ? Number(typed)
        : Number.NaN;
      return Number.isFinite(number) ? { value: number } : { problem: "This must be a number" };
    }
    case "other":
      try {
        return { value: JSON.parse(typed) };
      } catch {
        return { problem: 'This must be JSON, such as "text", 5, true or ["a"]' };
      }
  }
}

/** A required yes or no begins at no: a server's question must not be agreed to by pressing Enter alone. */
async function askBoolean(field: FormField, known: unknown, io: PromptIo): Promise<unknown> {
  const message = heading(field);
  if (field.required)
    return onPrompt(io, (common) => confirm({ message, initialValue: known === true, ...common }));
  const choice = await onPrompt(io, (common) =>
    select<string>({
      message,
      initialValue: known === undefined ? EMPTY : String(known),
      options: [
        { value: "true", label: "Yes" },
        { value: "false", label: "No" },
        { value: EMPTY, label: "(leave empty)" },
      ],
      showInstructions: false,
      ...common,
    }),
  );
  return choice === LEFT ? LEFT : choice === EMPTY ? undefined : choice === "true";
}

/** Choices go by their number, because a server's values may be any strings. */
async function askSelect(field: SelectField, known: unknown, io: PromptIo): Promise<unknown> {
  const { options } = field;
  const choice = await onPrompt(io, (common) =>
    select<number>({
      message: heading(field),
      initialValue: options.findIndex(({ value }) => value === known),
      options: [
        ...(field.required ? [] : [{ value: -1, label: "(leave empty)" }]),
        ...options.map((option, index) => choiceOf(option, index)),
      ],
      maxItems: SHOWN_OPTIONS,
      showInstructions: false,
      ...common,
    }),
  );
  return choice === LEFT ? LEFT : options[choice]?.value;
}

async function askMultiSelect(field: MultiSelectField, known: unknown, io: PromptIo): Promise<unknown> {
  const { options } = field;
  const many = boundsText(field.minItems, field.maxItems);
  let chosen = options.flatMap(({ value }, index) =>
    Array.isArray(known) && known.includes(value) ? [index] : [],
  );
  for (;;) {
    const choice = await onPrompt(io, (common) =>
      multiselect<number>({
        message: heading(field, many === "" ? "space chooses" : `space chooses, ${many}`),
        initialValues: chosen,
        options: options.map((option, index) => choiceOf(option, index)),
        required: false,
        maxItems: SHOWN_OPTIONS,
        showInstructions: false,
        ...common,
      }),
    );
    if (choice === LEFT) return LEFT;
    chosen = choice;
    const values = [...choice].sort((one, other) => one - other).map((index) => options[index]!.value);
    if (values.length === 0 && !field.required) return undefined;
    const problem = checkField(field, values);
    if (problem === undefined) return values;
    log.error(clipLine(`This ${problem}`, 200), { output: io.output });
  }
}

function choiceOf({ value, title }: { value: string; title: string }, index: number) {
  const label = clipLine(title, 100) || "(empty text)";
  return title === value ? { value: index, label } : { value: index, label, hint: clipLine(value, 60) };
}
