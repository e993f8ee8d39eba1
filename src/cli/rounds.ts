/** Manual mode for a command line: round after round, until the call is complete or a question stays open. */

import type { Continuation } from "../continuation.ts";
import { checkElicitUrl } from "../elicit-url.ts";
import { InputError } from "../errors.ts";
import { type InputRequest, readQuestion } from "../input-required.ts";
import type { Result } from "../mcp-types.ts";
import type { Outcome } from "../outcome.ts";
import { setOwn } from "../problems.ts";
import { showKey } from "../show.ts";
import type { JsonObject } from "../wire.ts";
import type { Asker } from "./asker.ts";
import type { Question } from "./question.ts";

/** How it ended. */
export type RoundsEnd =
  | { readonly result: Result }
  | { readonly continuation: Continuation; readonly open: readonly Question[] };

const NO_LIMITS = { inputRequests: Number.POSITIVE_INFINITY, requestStateBytes: Number.POSITIVE_INFINITY };
const PACE_MS = 250;
const MAX_PACE_MS = 5000;

/** Goes on from `outcome`, answering through `asker`. An answer is given for all keys of a round, or for none. */
export async function followRounds(
  outcome: Outcome,
  asker: Asker,
  signal: AbortSignal,
  resume: (continuation: Continuation, answers: JsonObject) => Promise<Outcome>,
): Promise<RoundsEnd> {
  let current = outcome;
  for (let round = 0; current.status === "input_required"; round++) {
    const { continuation } = current;
    const answers = await answerRound(continuation, asker, signal);
    if ("open" in answers) return { continuation, open: answers.open };
    // A server that gave state alone, or asked nothing, wants to be asked again, a little later (MRTR-09).
    if (Object.keys(answers.given).length === 0)
      await pause(Math.min(PACE_MS * 2 ** Math.min(round, 16), MAX_PACE_MS), signal);
    current = await resume(continuation, answers.given);
  }
  return { result: current.result };
}

async function answerRound(
  continuation: Continuation,
  asker: Asker,
  signal: AbortSignal,
): Promise<{ readonly given: JsonObject } | { readonly open: readonly Question[] }> {
  const { inputRequests, peer, method, name } = continuation;
  const question = readQuestion({ inputRequests: inputRequests ?? {} }, NO_LIMITS);
  if (question instanceof Error) throw question;
  const given: JsonObject = {};
  const open: Question[] = [];
  for (const request of question.requests ?? []) {
    const { key, kind, params } = request;
    if (kind === "elicitUrl") refuseBadUrl(request);
    const asked: Question = { key, kind, params, peer, method, name, signal };
    const answer = await asker.answer(asked);
    if (answer === undefined) open.push(asked);
    else setOwn<unknown>(given, key, answer);
  }
  return open.length === 0 ? { given } : { open };
}

/** In manual mode the engine asks no one, so the URL has to be looked at here (MRTR-16). */
function refuseBadUrl({ key, method, params }: InputRequest): void {
  const checked = checkElicitUrl(params.url as string);
  if (!("fault" in checked)) return;
  throw new InputError(
    `the server asked to visit a URL that must not be shown to a user (key ${showKey(key)}): ${checked.fault}; nothing was opened and nothing more was sent`,
    key,
    method,
    { path: "params.url" },
  );
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    function onAbort() {
      clearTimeout(timer);
      reject(signal.reason);
    }
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}
