/**
 * The questions of a server as prompts on a terminal. The only module that imports the prompt library. Every text of the
 * server is sanitised before it is shown.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#user-interaction-model}
 */

import { styleText } from "node:util";
import { log, select, text } from "@clack/prompts";
import { checkElicitUrl } from "../elicit-url.ts";
import { type FormField, formDefaults } from "../form.ts";
import { createValidator } from "../index.ts";
import { setOwn } from "../problems.ts";
import { isObject, type JsonObject } from "../wire.ts";
import { typedMessage } from "./given-answers.ts";
import { contentSummary } from "./print.ts";
import { askField } from "./prompt-fields.ts";
import { LEFT, type Left, onPrompt, type PromptIo } from "./prompt-io.ts";
import { formOf, type Question } from "./question.ts";
import { clipLine, sanitise, sanitiseLine } from "./sanitise.ts";

/** Longer messages are cut: a question that fills the screen hides who asks it. */
const MESSAGE_CHARACTERS = 4000;

/** Asks one question. Rejects with the signal's reason when it aborts. */
export function askQuestion(question: Question, io: PromptIo): Promise<JsonObject | undefined> {
  switch (question.kind) {
    case "elicitForm":
      return askForm(question, io);
    case "elicitUrl":
      return askUrl(question, io);
    case "sample":
      return askSample(question, io);
    case "listRoots":
      return Promise.resolve(undefined);
  }
}

/** Says who asks, in our own words, before any of theirs. */
function introduce({ peer, method, name, key, params }: Question, wants: string, { output }: PromptIo): void {
  const call = name === undefined ? method : `${method} ${clipLine(name, 80)}`;
  const who = styleText("bold", clipLine(peer, 120));
  log.step(`${who} ${wants} (question ${clipLine(JSON.stringify(key), 60)} of ${call})`, { output });
  if (typeof params.message === "string" && params.message !== "") {
    log.message(sanitise(cut(params.message)), { output, spacing: 0 });
  }
}

function cut(message: string): string {
  if (message.length <= MESSAGE_CHARACTERS) return message;
  return `${message.slice(0, MESSAGE_CHARACTERS)}… (${message.length - MESSAGE_CHARACTERS} more characters)`;
}

type Decision = "send" | "change" | "decline" | "cancel";

async function askForm(question: Question, io: PromptIo): Promise<JsonObject> {
  introduce(question, "asks you to fill in a form", io);
  const form = formOf(question);
  const fields: FormField[] = [
    ...form.fields,
    ...form.alsoRequired.map((name): FormField => ({ kind: "other", name, required: true, schema: {} })),
  ];
  if (fields.length > 0) {
    const hint = "Enter goes on. Esc leaves the form: to decline it, or to cancel.";
    log.message(styleText("dim", hint), { output: io.output, spacing: 0 });
  }
  const content: JsonObject = formDefaults(form);
  for (;;) {
    const filled = await fillIn(fields, content, io);
    const decision = filled ? await review(fields, content, io) : await leave(io);
    if (decision === "change") continue;
    if (decision !== "send") return { action: decision };
    const problem = form.exact ? undefined : await findProblem(question.params.requestedSchema, content);
    if (problem === undefined) return { action: "accept", content };
    log.error(sanitiseLine(problem), { output: io.output });
  }
}

/** Asks the fields in order; false when the user left the form. What was filled in until then stays. */
async function fillIn(fields: readonly FormField[], content: JsonObject, io: PromptIo): Promise<boolean> {
  for (const field of fields) {
    const known = Object.hasOwn(content, field.name) ? content[field.name] : undefined;
    const value: unknown | Left = await askField(field, known, io);
    if (value === LEFT) return false;
    if (value === undefined) delete content[field.name];
    else setOwn<unknown>(content, field.name, value);
  }
  return true;
}

/** Shows everything before it is sent. */
async function review(fields: readonly FormField[], content: JsonObject, io: PromptIo): Promise<Decision> {
  if (fields.length > 1) {
    const lines = fields
      .filter(({ name }) => Object.hasOwn(content, name))
      .map(({ name, title }) => `${clipLine(title ?? name, 60)}: ${shown(content[name])}`);
    log.message(lines.length === 0 ? "(everything is left empty)" : lines, { output: io.output, spacing: 0 });
  }
  return decide("Send this answer?", "send", io, [
    { value: "send", label: "Send" },
    ...(fields.length > 0 ? [{ value: "change" as const, label: "Change it" }] : []),
    DECLINE,
    CANCEL,
  ]);
}

function shown(value: unknown): string {
  return clipLine(typeof value === "string" ? value : JSON.stringify(value), 200);
}

const DECLINE = { value: "decline", label: "Decline", hint: "tell the server no" } as const;
const CANCEL = { value: "cancel", label: "Cancel", hint: "give the server no answer" } as const;

function leave(io: PromptIo): Promise<Decision> {
  return decide("Leave the form?", "change", io, [
    { value: "change", label: "Back to the form" },
    DECLINE,
    CANCEL,
  ]);
}

/** Escape is the answer "cancel". */
async function decide<D extends Decision | "accept">(
  message: string,
  initialValue: D,
  io: PromptIo,
  options: { value: D; label: string; hint?: string }[],
): Promise<D | "cancel"> {
  const choice = await onPrompt(io, (common) =>
    select<string>({ message, initialValue, options, showInstructions: false, ...common }),
  );
  return choice === LEFT ? "cancel" : (choice as D);
}

/** Forms that go beyond the plain fields need the whole schema. */
async function findProblem(schema: unknown, content: JsonObject): Promise<string | undefined> {
  try {
    const problem = (await createValidator().compile(schema))(content);
    return problem && `${problem.path === "" ? "the answer" : problem.path} ${problem.message}`;
  } catch {
    // A schema that cannot be used is told of when the answer is checked before it is sent.
    return undefined;
  }
}

/** Shows the whole URL, its host by itself, and asks for consent. Opens nothing (MRTR-16). */
async function askUrl(question: Question, io: PromptIo): Promise<JsonObject> {
  introduce(question, "asks you to visit a page", io);
  const checked = checkElicitUrl(question.params.url as string);
  // It was checked before, and a URL that cannot be shown cannot be agreed to.
  if (!("url" in checked)) return { action: "cancel" };
  const { url, punycode, insecure } = checked;
  const { output } = io;
  log.message([`Host: ${styleText("bold", url.host)}`, `URL:  ${url.href}`], { output });
  if (punycode) {
    log.warn("The host name is written in punycode (xn--…): it may imitate the name of another site.", {
      output,
    });
  }
  if (insecure) log.warn("The page is on this machine, and not encrypted.", { output });
  const action = await decide("Nothing is opened for you. Do you agree to visit this page?", "decline", io, [
    { value: "accept", label: "Accept", hint: "open the URL in your browser yourself" },
    DECLINE,
    CANCEL,
  ]);
  return { action };
}

async function askSample(question: Question, io: PromptIo): Promise<JsonObject | undefined> {
  introduce(question, "asks for a message of a model; here you can write it", io);
  const { systemPrompt, messages, maxTokens } = question.params;
  const lines: string[] = [];
  if (typeof systemPrompt === "string") lines.push(`system: ${sanitise(cut(systemPrompt))}`);
  for (const message of Array.isArray(messages) ? messages : []) {
    if (!isObject(message)) continue;
    const blocks = Array.isArray(message.content) ? message.content : [message.content];
    for (const block of blocks) {
      if (isObject(block))
        lines.push(`${clipLine(String(message.role), 20)}: ${sanitise(cut(contentSummary(block)))}`);
    }
  }
  if (lines.length > 0) log.message(lines, { output: io.output, spacing: 0 });
  const message = `Your message (at most ${Number(maxTokens)} tokens; Esc to give none)`;
  const answer = await onPrompt(io, (common) => text({ message, ...common }));
  return answer === LEFT || !answer ? undefined : typedMessage(answer);
}
