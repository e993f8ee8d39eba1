/**
 * Fulfils one round's input requests through the host's handlers, all at once (MRTR-14). Each handler works on one
 * request and does not know where its answer goes.
 */

import { checkAnswer, formOf } from "./answers.ts";
import type { Clock } from "./clock.ts";
import { checkElicitUrl } from "./elicit-url.ts";
import { InputError, RallyError, TimeoutError, type TimeSpent } from "./errors.ts";
import { type Form, formDefaults } from "./form.ts";
import type { InputKind, InputRequest } from "./input-required.ts";
import { showKey } from "./show.ts";
import type { SchemaValidator } from "./validate.ts";
import type { JsonObject } from "./wire.ts";

/** What every input handler is given besides the request's params. */
export interface InputContext {
  /** Aborts when the answer is no longer wanted: cancel, deadline, close, or a sibling that failed. */
  readonly signal: AbortSignal;
  readonly operationId: number;
  /** The method of the call that needs the input, such as `tools/call`. */
  readonly method: string;
  /** The tool, prompt or URI of the call. */
  readonly name: string | undefined;
  /** The round whose question this is, from 1. */
  readonly round: number;
  /** The server's key for the question. */
  readonly key: string;
  /** Which server asks: show it to the user. */
  readonly peer: string;
  /** elicitForm: the schema's default values, to pre-fill a form. Empty otherwise. */
  readonly defaults: Readonly<Record<string, unknown>>;
  /** elicitUrl: the origin of the URL, as parsed; show it set apart. */
  readonly origin?: string;
  /** elicitUrl: the host name is written in punycode and may imitate another; warn the user. */
  readonly punycode?: boolean;
}

/** The params of a form elicitation. {@link https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#form-mode-elicitation-requests} */
export interface ElicitFormParams {
  readonly mode?: "form";
  readonly message: string;
  readonly requestedSchema: {
    readonly type: "object";
    readonly properties: Readonly<Record<string, JsonObject>>;
    readonly required?: readonly string[];
  };
  readonly [key: string]: unknown;
}

/** The params of a URL elicitation. The URL was checked (MRTR-16); open it only after the user agreed. */
export interface ElicitUrlParams {
  readonly mode: "url";
  readonly message: string;
  readonly url: string;
  readonly [key: string]: unknown;
}

/** The answer to an elicitation. `content` goes with `accept` in form mode only, and is dropped otherwise. */
export interface ElicitResult {
  readonly action: "accept" | "decline" | "cancel";
  readonly content?:
    | Readonly<Record<string, string | number | boolean | readonly string[]>>
    | null
    | undefined;
}

/** The params of `sampling/createMessage`. {@link https://modelcontextprotocol.io/specification/2026-07-28/client/sampling} */
export interface SampleParams {
  readonly messages: readonly JsonObject[];
  readonly maxTokens: number;
  readonly systemPrompt?: string;
  readonly [key: string]: unknown;
}

/** The answer to `sampling/createMessage`. */
export interface SampleResult {
  readonly role: "user" | "assistant";
  readonly content: JsonObject | readonly JsonObject[];
  readonly model: string;
  readonly stopReason?: string;
  readonly [key: string]: unknown;
}

/** The answer to `roots/list`. */
export interface ListRootsResult {
  readonly roots: readonly {
    readonly uri: string;
    readonly name?: string;
    readonly [key: string]: unknown;
  }[];
  readonly [key: string]: unknown;
}

type Answer<T> = T | Promise<T>;

/** Answers a form. */
export type ElicitFormHandler = (params: ElicitFormParams, context: InputContext) => Answer<ElicitResult>;
/** Asks the user to visit a URL. */
export type ElicitUrlHandler = (params: ElicitUrlParams, context: InputContext) => Answer<ElicitResult>;
/** Runs a model. */
export type SampleHandler = (params: SampleParams, context: InputContext) => Answer<SampleResult>;
/** Lists the roots. */
export type ListRootsHandler = (context: InputContext) => Answer<ListRootsResult>;

/** A sampling handler that can do more than plain messages: each feature is declared to the server. */
export interface SampleOptions {
  readonly handle: SampleHandler | "suspend";
  /** The handler understands `tools` and `toolChoice`. */
  readonly tools?: boolean;
  /** The handler understands `includeContext`. */
  readonly context?: boolean;
}

/**
 * The host's handlers. Which of them exist decides which capabilities every request declares (MRTR-13). `"suspend"` in
 * place of a function declares the kind and leaves the answer to the host; null or undefined removes a kind.
 */
export interface InputHandlers {
  readonly elicitForm?: ElicitFormHandler | "suspend" | null | undefined;
  readonly elicitUrl?: ElicitUrlHandler | "suspend" | null | undefined;
  readonly sample?: SampleHandler | SampleOptions | "suspend" | null | undefined;
  readonly listRoots?: ListRootsHandler | "suspend" | null | undefined;
}

/** What all handlers of one round share. */
export interface RoundContext {
  readonly handlers: InputHandlers;
  readonly controller: AbortController;
  readonly operationId: number;
  readonly method: string;
  readonly name: string | undefined;
  readonly round: number;
  readonly peer: string;
  readonly clock: Clock;
  /** The bound on each handler in milliseconds; undefined for none. */
  readonly inputMs: number | undefined;
  readonly applyDefaults: boolean;
  readonly validator: SchemaValidator;
  /** Where the operation's time went so far. */
  readonly spent: () => TimeSpent;
  /** Told of each answer: "accept", "decline", "cancel", "answered", "failed" or "left". */
  readonly onAnswer: ((key: string, answer: string, ms: number) => void) | undefined;
}

/** What the handlers of a round gave. */
export interface Gathered {
  /** The answers by key, in the order of the requests. */
  readonly answers: ReadonlyMap<string, JsonObject>;
  /** The keys that were left to the host. */
  readonly open: readonly string[];
  /** Whether any elicitation was declined or cancelled. */
  readonly declined: boolean;
}

/**
 * Runs the handlers of one round. Rejects with the first failure, after the siblings' signals have been aborted; a
 * partial answer is never given.
 */
export async function gatherInputs(
  requests: readonly InputRequest[],
  round: RoundContext,
): Promise<Gathered> {
  // Every URL is looked at before any handler runs: one bad request means that no one is asked anything.
  for (const request of requests) if (request.kind === "elicitUrl") urlContext(request);
  const running = requests.map((request) => answerOne(request, round));
  let settled: (JsonObject | undefined)[];
  try {
    settled = await Promise.all(running);
  } catch (error) {
    round.controller.abort(error);
    throw error;
  }
  const answers = new Map<string, JsonObject>();
  const open: string[] = [];
  let declined = false;
  for (const [index, { key }] of requests.entries()) {
    const answer = settled[index];
    if (answer === undefined) open.push(key);
    else answers.set(key, answer);
    if (answer?.action === "decline" || answer?.action === "cancel") declined = true;
  }
  return { answers, open, declined };
}

/** Joins answers to the text of `inputResponses`: never through a plain object, so that any key survives (MRTR-05). */
export function encodeResponses(answers: ReadonlyMap<string, JsonObject>): string {
  const members: string[] = [];
  for (const [key, answer] of answers) members.push(`${JSON.stringify(key)}:${JSON.stringify(answer)}`);
  return `{${members.join(",")}}`;
}

/** Undefined when the request is left to the host. */
async function answerOne(request: InputRequest, round: RoundContext): Promise<JsonObject | undefined> {
  const { key } = request;
  const startedAt = round.clock.now();
  const report = (answer: string) => round.onAnswer?.(key, answer, round.clock.now() - startedAt);
  const handler = findHandler(request.kind, round.handlers);
  if (handler === undefined) {
    report("left");
    return undefined;
  }
  try {
    const form = formOf(request);
    const call = callHandler(request, handler, round, form);
    const value = await (round.inputMs === undefined ? call : within(round.inputMs, call, round, request));
    const answer = await checkAnswer(request, value, round, form);
    report(typeof answer.action === "string" ? answer.action : "answered");
    return answer;
  } catch (error) {
    report("failed");
    if (RallyError.is(error)) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new InputError(
      `The handler inputs.${request.kind} failed on the key ${showKey(key)}: ${why}. Nothing was sent; the call ends here. The handler's own error is the cause.`,
      key,
      request.method,
      { cause: error },
    );
  }
}

type AnyHandler = (params: never, context: InputContext) => unknown;

function findHandler(kind: InputKind, handlers: InputHandlers): AnyHandler | undefined {
  const entry = handlers[kind];
  const handler = typeof entry === "object" && entry !== null ? entry.handle : entry;
  if (typeof handler !== "function") return undefined;
  return kind === "listRoots"
    ? (_params, context) => (handler as ListRootsHandler)(context)
    : (handler as AnyHandler);
}

async function callHandler(
  request: InputRequest,
  handler: AnyHandler,
  round: RoundContext,
  form: Form | undefined,
): Promise<unknown> {
  const { kind, key, params } = request;
  const context: InputContext = {
    signal: round.controller.signal,
    operationId: round.operationId,
    method: round.method,
    name: round.name,
    round: round.round,
    key,
    peer: round.peer,
    defaults: form === undefined ? {} : formDefaults(form),
    ...(kind === "elicitUrl" && urlContext(request)),
  };
  return handler(params as never, context);
}

function urlContext({ key, method, params }: InputRequest): { origin: string; punycode: boolean } {
  const checked = checkElicitUrl(params.url as string);
  if ("fault" in checked) {
    throw new InputError(
      `The server asked to visit a URL that must not be shown to a user (key ${showKey(key)}): ${checked.fault}. Nothing was opened and nothing more was sent.`,
      key,
      method,
      { path: "params.url" },
    );
  }
  return { origin: checked.url.origin, punycode: checked.punycode };
}

/** Bounds a handler; its promise may settle later and is then of no interest. */
function within(
  ms: number,
  call: Promise<unknown>,
  round: RoundContext,
  request: InputRequest,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const { clock } = round;
    const { signal } = round.controller;
    const timer = clock.setTimer(() => {
      reject(
        new TimeoutError(
          `The handler inputs.${request.kind} gave no answer for the key ${showKey(request.key)} within ${ms} ms (timeouts.inputMs). Nothing was sent.`,
          "input",
          ms,
          round.spent(),
        ),
      );
    }, ms);
    const forget = () => {
      signal.removeEventListener("abort", forget);
      clock.clearTimer(timer);
    };
    // A handler that hangs must not keep its timer once its answer is not wanted any more (TIM-02).
    signal.addEventListener("abort", forget);
    call.then(resolve, reject).finally(forget);
  });
}
