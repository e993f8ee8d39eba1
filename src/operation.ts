/**
 * The state machine of one logical operation, pure: `(state, event) -> { state, effects }`.
 *
 * It decides everything that happens to a call and does none of it: the engine runs the effects and feeds back what came
 * of them. No clock, no transport, no promise in here; the randomness of a pause comes in with the event.
 */

import { type Continuation, writeContinuation } from "./continuation.ts";
import {
  InputError,
  InputRepeatedError,
  ProtocolViolationError,
  type RallyError,
  RoundLimitError,
  type TransportError,
} from "./errors.ts";
import { type InputQuestion, type InputRequest, questionSignature, readQuestion } from "./input-required.ts";
import {
  type Effect,
  isTerminal,
  NO_RECOVERIES,
  type OperationEvent,
  type OperationRules,
  type OperationState,
  type Phase,
  type RecoveryKind,
  type RoundInputs,
  type Transition,
} from "./operation-state.ts";
import { mayNeedInput } from "./protocol.ts";
import { judgeReissue } from "./reissue.ts";
import { checkResult } from "./result-shapes.ts";
import { showKeys, showValue } from "./show.ts";
import type { JsonObject } from "./wire.ts";

const SEND: readonly Effect[] = ["send"];
const GATHER: readonly Effect[] = ["gather"];
const RECOVER: readonly Effect[] = ["recover"];
const PAUSE: readonly Effect[] = ["pause"];
const SETTLE: readonly Effect[] = ["settle"];
const LATE: readonly Effect[] = ["late"];
const CANCEL_SETTLE: readonly Effect[] = ["cancelAttempt", "settle"];
const ABORT_SETTLE: readonly Effect[] = ["abortInputs", "settle"];
const CANCEL_PAUSE: readonly Effect[] = ["cancelAttempt", "pause"];

const AWAITING: Phase = { at: "awaiting" };

/** The pause before a state-only retry: 250 ms at first, doubling, at most 5 s (MRTR-09). */
const PACE_MS = 250;
const MAX_PACE_MS = 5_000;

/** One step. See {@link OperationEvent} and {@link Effect}. */
export function reduce(state: OperationState, event: OperationEvent, rules: OperationRules): Transition {
  if (isTerminal(state.phase)) return { state, effects: LATE };
  switch (event.type) {
    case "cancel":
      return { state: at(state, { at: "cancelled", error: event.error }), effects: teardown(state) };
    case "stop":
      return { state: at(state, { at: "failed", error: event.error }), effects: teardown(state) };
    case "start":
      return state.phase.at === "idle" ? send(state) : { state, effects: LATE };
    case "timer":
      return state.phase.at === "pausing" ? send(state) : { state, effects: LATE };
    case "answered":
    case "left":
    case "inputFailed":
      return state.phase.at === "gathering"
        ? onInputs(state, state.phase.question, event, rules)
        : { state, effects: LATE };
    case "recovered":
      if (state.phase.at !== "recovering") return { state, effects: LATE };
      return send(event.mirrored === undefined ? state : { ...state, mirrored: event.mirrored });
    case "unrecovered":
      return state.phase.at === "recovering" ? fail(state, event.error) : { state, effects: LATE };
    default:
      return state.phase.at === "awaiting" ? onAnswer(state, event, rules) : { state, effects: LATE };
  }
}

type AnswerEvent = Extract<OperationEvent, { type: "result" | "rpcError" | "failure" | "attemptTimeout" }>;
type InputsEvent = Extract<OperationEvent, { type: "answered" | "left" | "inputFailed" }>;

function onAnswer(state: OperationState, event: AnswerEvent, rules: OperationRules): Transition {
  switch (event.type) {
    case "result":
      return onResult(state, event.result, rules);
    case "rpcError":
      return recoverOr(state, event.recovery, event.error) ?? fail(state, event.error);
    case "failure":
      return recoverOr(state, event.recovery, event.failure.error) ?? onFailure(state, event, rules);
    case "attemptTimeout": {
      if (!rules.reissue.timeouts || state.reissues >= rules.reissue.max || !mayRepeat(rules)) {
        return { state: at(state, { at: "failed", error: event.error }), effects: CANCEL_SETTLE };
      }
      const ms = rules.reissue.backoffMs * (0.5 + event.random / 2);
      return { state: startOver(state, rules, ms), effects: CANCEL_PAUSE };
    }
  }
}

function mayRepeat(rules: OperationRules): boolean {
  return rules.reissue.policy === "always" || (rules.reissue.policy === "safe" && rules.repeatable);
}

function onResult(state: OperationState, result: JsonObject, rules: OperationRules): Transition {
  const { resultType } = result;
  // Absent means complete, from any server; everything else is decided by resultType before any other field (MRTR-02).
  if (resultType === "complete" || resultType === undefined) return onComplete(state, result, rules);
  if (resultType === "input_required") return onQuestion(state, result, rules);
  if (typeof resultType === "string" && rules.extraResultTypes?.has(resultType)) {
    // What an extension's result holds is the extension's to say.
    return { state: at(state, { at: "succeeded", result }), effects: SETTLE };
  }
  const shown = showValue(resultType);
  return fail(
    state,
    violation(
      "result.resultType",
      `it is ${shown}, and this client knows only "complete" and "input_required"; a further type must come from an extension that the request declared`,
    ),
  );
}

function onComplete(state: OperationState, result: JsonObject, rules: OperationRules): Transition {
  const fault = checkResult(rules.method, result);
  if (fault !== undefined) return fail(state, violation(fault.field, fault.message));
  return { state: at(state, { at: "succeeded", result }), effects: SETTLE };
}

function onQuestion(state: OperationState, result: JsonObject, rules: OperationRules): Transition {
  if (!mayNeedInput(rules.method)) {
    return fail(
      state,
      violation(
        "result.resultType",
        `a server must not answer ${rules.method} with input_required; only tools/call, resources/read and prompts/get may be`,
      ),
    );
  }
  const question = readQuestion(result, rules.limits);
  if (question instanceof Error) return fail(state, question);
  const { requests } = question;
  for (const request of requests ?? []) {
    const undeclared = rules.undeclared(request);
    if (undeclared !== undefined) {
      return fail(state, new InputError(undeclared, request.key, request.method));
    }
  }
  if (state.answers >= rules.maxRounds) return fail(state, roundLimit(state, question, rules));
  if (rules.manual) return suspend(state, question, rules, requests?.map(({ key }) => key) ?? [], undefined);
  if (requests === undefined || requests.length === 0) {
    const next = nextRound(state, { responses: requests && "{}", requestState: question.requestState });
    const ms = Math.min(PACE_MS * 2 ** Math.min(state.paces, 16), MAX_PACE_MS);
    return {
      state: { ...next, paces: state.paces + 1, phase: { at: "pausing", why: "pace", ms } },
      effects: PAUSE,
    };
  }
  const repeated = countRepeat(state, requests);
  if (repeated === undefined) return { state: at(state, { at: "gathering", question }), effects: GATHER };
  if (repeated.times >= rules.maxRepeats) return fail(state, inputRepeated(requests, repeated.times));
  return {
    state: { ...state, declined: repeated.declined, phase: { at: "gathering", question } },
    effects: GATHER,
  };
}

/** Counts a question that the user has said no to before; undefined for one that is new (MRTR-21). */
function countRepeat(state: OperationState, requests: readonly InputRequest[]) {
  if (state.declined === undefined) return undefined;
  const signature = questionSignature(requests);
  const before = state.declined.get(signature);
  if (before === undefined) return undefined;
  return { times: before + 1, declined: new Map(state.declined).set(signature, before + 1) };
}

function onInputs(
  state: OperationState,
  question: InputQuestion,
  event: InputsEvent,
  rules: OperationRules,
): Transition {
  if (event.type === "inputFailed") {
    return { state: at(state, { at: "failed", error: event.error }), effects: ABORT_SETTLE };
  }
  if (event.type === "left") return suspend(state, question, rules, event.open, event.answers);
  const next = nextRound(state, { responses: event.responses, requestState: question.requestState });
  if (!event.declined) return send(next);
  const signature = questionSignature(question.requests ?? []);
  if (state.declined?.has(signature)) return send(next);
  return send({ ...next, declined: new Map(state.declined).set(signature, 0) });
}

function onFailure(
  state: OperationState,
  event: Extract<OperationEvent, { type: "failure" }>,
  rules: OperationRules,
): Transition {
  const { failure, random } = event;
  const { reissue, repeatable } = rules;
  const verdict = judgeReissue({ rules: reissue, failure, reissues: state.reissues, repeatable, random });
  switch (verdict.again) {
    case "no": {
      const lost = { ...state, uncertain: state.uncertain || failure.delivery === "unknown" };
      const phase: Phase = { at: "failed", error: failure.error, notReissued: verdict.why };
      return { state: at(lost, phase), effects: SETTLE };
    }
    case "same-round": {
      const phase: Phase = { at: "pausing", why: "backoff", ms: verdict.delayMs, error: failure.error };
      return { state: { ...state, reissues: state.reissues + 1, phase }, effects: PAUSE };
    }
    case "start-over":
      return { state: startOver(state, rules, verdict.delayMs, failure.error), effects: PAUSE };
  }
}

/** The round trip starts over from the original request: what the server asked for in it is void. */
function startOver(
  state: OperationState,
  rules: OperationRules,
  ms: number,
  error?: TransportError,
): OperationState {
  return {
    ...state,
    reissues: state.reissues + 1,
    round: 1,
    inputs: rules.first,
    recovered: NO_RECOVERIES,
    uncertain: true,
    phase: { at: "pausing", why: "backoff", ms, ...(error !== undefined && { error }) },
  };
}

function recoverOr(
  state: OperationState,
  kind: RecoveryKind | undefined,
  error: RallyError,
): Transition | undefined {
  if (kind === undefined || state.recovered.includes(kind)) return undefined;
  const recovered = [...state.recovered, kind];
  return { state: { ...state, recovered, phase: { at: "recovering", kind, error } }, effects: RECOVER };
}

function nextRound(state: OperationState, inputs: RoundInputs): OperationState {
  return { ...state, round: state.round + 1, answers: state.answers + 1, inputs, recovered: NO_RECOVERIES };
}

function send(state: OperationState): Transition {
  return { state: { ...state, attempt: state.attempt + 1, phase: AWAITING }, effects: SEND };
}

function suspend(
  state: OperationState,
  question: InputQuestion,
  rules: OperationRules,
  open: readonly string[],
  answers: ReadonlyMap<string, JsonObject> | undefined,
): Transition {
  const continuation = continuationOf(state, question, rules, answers);
  return { state: at(state, { at: "suspended", continuation, question, open }), effects: SETTLE };
}

/** The snapshot counts the open question as honoured: answering it is the next round. */
function continuationOf(
  state: OperationState,
  question: InputQuestion,
  rules: OperationRules,
  answers?: ReadonlyMap<string, JsonObject>,
): Continuation {
  return writeContinuation({
    peer: rules.peer,
    method: rules.method,
    params: rules.params,
    name: rules.name,
    mirrored: state.mirrored,
    rounds: state.answers + 1,
    requestState: question.requestState,
    requests: question.requests,
    answers,
  });
}

function roundLimit(state: OperationState, question: InputQuestion, rules: OperationRules): RoundLimitError {
  const keys = question.requests?.map(({ key }) => key) ?? [];
  const asked = keys.length === 0 ? "state only" : showKeys(keys);
  return new RoundLimitError(
    `The server asked for input again after ${state.answers} answers, and maxRounds is ${rules.maxRounds} (last asked: ${asked}). Raise maxRounds, or go on by hand with client.resume(error.continuation, …).`,
    state.answers,
    keys,
    continuationOf(state, question, rules),
  );
}

function inputRepeated(requests: readonly InputRequest[], times: number): InputRepeatedError {
  const keys = requests.map(({ key }) => key);
  return new InputRepeatedError(
    `The user said no, and the server asked the identical question (${showKeys(keys)}) again ${times} times. Raise maxRepeats to let it ask more often.`,
    keys,
    times,
  );
}

function teardown(state: OperationState): readonly Effect[] {
  if (state.phase.at === "awaiting") return CANCEL_SETTLE;
  return state.phase.at === "gathering" ? ABORT_SETTLE : SETTLE;
}

function fail(state: OperationState, error: RallyError): Transition {
  return { state: at(state, { at: "failed", error }), effects: SETTLE };
}

function at(state: OperationState, phase: Phase): OperationState {
  return { ...state, phase };
}

function violation(field: string, why: string): ProtocolViolationError {
  return new ProtocolViolationError(
    `The server broke the protocol at ${field}: ${why}. Nothing more was sent; the server has to be mended.`,
    field,
  );
}
