/** Checks what a handler, or a host in manual mode, answers before any of it is sent (MRTR-15). */

import { InputError } from "./errors.ts";
import { checkForm, type Form, formDefaults, readForm } from "./form.ts";
import type { InputRequest } from "./input-required.ts";
import { checkCreateMessageResult, checkElicitResult, checkListRootsResult } from "./input-values.ts";
import { type Problem, setOwn } from "./problems.ts";
import { showKey } from "./show.ts";
import type { SchemaValidator } from "./validate.ts";
import type { JsonObject } from "./wire.ts";

/** What the checks depend on. */
export interface AnswerChecks {
  /** Used only where a form's schema goes beyond the subset of the specification. */
  readonly validator: SchemaValidator;
  /** Fill the schema's defaults into accepted content that lacks them. */
  readonly applyDefaults: boolean;
}

/**
 * The answer as it goes to the server: a value of its own, so that what the host does to its objects afterwards changes
 * nothing. An answer that does not fit its request is an {@link InputError} with the path; nothing is sent then.
 */
export async function checkAnswer(
  request: InputRequest,
  value: unknown,
  checks: AnswerChecks,
  form: Form | undefined = formOf(request),
): Promise<JsonObject> {
  switch (request.kind) {
    case "elicitForm":
      return checkFormAnswer(request, form!, value, checks);
    case "elicitUrl": {
      const checked = checkElicitResult(value, "url");
      if (checked.problem !== undefined) throw misfit(request, checked.problem);
      return checked.value;
    }
    case "sample": {
      const tools = request.params.tools !== undefined;
      return copyChecked(request, value, checkCreateMessageResult(value, { tools }));
    }
    case "listRoots":
      return copyChecked(request, value, checkListRootsResult(value));
  }
}

/** The form of a form elicitation; undefined for any other request. Whoever has it gives it to {@link checkAnswer}. */
export function formOf({ kind, params }: InputRequest): Form | undefined {
  return kind === "elicitForm" ? readForm(params.requestedSchema as JsonObject) : undefined;
}

async function checkFormAnswer(
  request: InputRequest,
  form: Form,
  value: unknown,
  checks: AnswerChecks,
): Promise<JsonObject> {
  const schema = request.params.requestedSchema as JsonObject;
  const checked = checkElicitResult(value, "form", checks.applyDefaults ? undefined : form);
  if (checked.problem !== undefined) throw misfit(request, checked.problem);
  const answer = checked.value;
  if (answer.content === undefined) return answer;
  const content = checks.applyDefaults ? withDefaults(answer.content, form) : answer.content;
  const problem = checks.applyDefaults ? checkForm(form, content) : undefined;
  if (problem !== undefined) throw misfit(request, problem);
  if (!form.exact) await checkFully(request, schema, content, checks.validator);
  return { ...answer, content };
}

/** A schema beyond the flat form of the specification needs a full validator; its paths are relative to the value. */
async function checkFully(
  request: InputRequest,
  schema: JsonObject,
  content: JsonObject,
  validator: SchemaValidator,
): Promise<void> {
  const problem = (await validator.compile(schema))(content);
  if (problem === undefined) return;
  const { path, message } = problem;
  const within = path === "" || path.startsWith("[") ? `content${path}` : `content.${path}`;
  throw misfit(request, { path: within, message });
}

/** The schema's defaults in place of what the content lacks. */
function withDefaults(content: JsonObject, form: Form): JsonObject {
  const filled: JsonObject = formDefaults(form);
  for (const [key, member] of Object.entries(content)) setOwn<unknown>(filled, key, member);
  return filled;
}

function copyChecked(request: InputRequest, value: unknown, problem: Problem | undefined): JsonObject {
  if (problem !== undefined) throw misfit(request, problem);
  return JSON.parse(JSON.stringify(value)) as JsonObject;
}

function misfit({ key, method, kind }: InputRequest, { path, message }: Problem): InputError {
  const where = path === "" ? "the answer" : path;
  return new InputError(
    `The answer of inputs.${kind} to the key ${showKey(key)} does not fit: ${where} ${message}. Nothing was sent; the call ends here.`,
    key,
    method,
    { path },
  );
}
