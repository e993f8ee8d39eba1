/**
 * The state machine of one logical operation, pure: `(state, event) -> { state, effects }`.
 *
 * It decides everything that happens to a call and does none of it: the engine runs the effects and feeds back what came
 * of them. No clock, no transport, no promise in here; the randomness of a pause comes in with the event.
 *
 * Counters (`attempt`, `answers`, `reissues`, `paces`) only grow: no round and no restart resets them, so nothing loops for ever.
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
import {
  type InputQuestion,
  type InputRequest,
  type QuestionLimits,
  questionSignature,
  readQuestion,
} from "./input-required.ts";
import { mayNeedInput } from "./protocol.ts";
import { judgeReissue, type ReissueRules } from "./reissue.ts";
import { checkResult } from "./result-shapes.ts";
import { showKeys, showValue } from "./show.ts";
import type { ExchangeFailure, MirroredField } from "./transport.ts";
import type { JsonObject } from "./wire.ts";

/** Answers that are put right without the host: each at most once in a round (MRTR-19). */
export type RecoveryKind = "version" | "headers" | "unauthorized" | "scope";

/** What is fixed when an operation starts. */
export interface OperationRules {
  readonly method: string;
  readonly params: string;
  readonly name: string | undefined;
  readonly peer: string;
  /** Recognised values of resultType beyond the core two: those of the extensions declared on this operation. */
  readonly extraResultTypes: ReadonlySet<string> | undefined;
  /** Which kinds, modes and features the request declares (MRTR-13): undefined says what is undeclared about a request. */
  readonly undeclared: (request: InputRequest) => string | undefined;
  readonly maxRounds: number;
  readonly maxRepeats: number;
  readonly limits: QuestionLimits;
  readonly reissue: ReissueRules;
  /** Whether a second run does no harm. */
  readonly repeatable: boolean;
  /** Manual mode: every question ends the operation with a continuation, no handler runs. */
  readonly manual: boolean;
  /** R and S of the first round: what the caller put into its params. */
  readonly first: RoundInputs;
}

/** What a round's request carries besides the original params. */
export interface RoundInputs {
  /** R: the text of `inputResponses`; undefined leaves the key out. */
  readonly responses: string | undefined;
  /** S: undefined leaves the key out. */
  readonly requestState: string | undefined;
}

/** Why a pause is made. */
export type PauseKind = "pace" | "backoff";

/**
 * Where an operation is.
 *
 * - idle: made, nothing sent.
 * - awaiting: an attempt is out.
 * - recovering: an answer is being put right (another version, other headers, another token); nothing is out.
 * - gathering: the host's handlers are answering the round's input requests.
 * - pausing: waiting before the next attempt.
 * - succeeded, suspended, failed, cancelled: over; no event changes these.
 */
export type Phase =
  | { readonly at: "idle" }
  | { readonly at: "awaiting" }
  | { readonly at: "recovering"; readonly kind: RecoveryKind; readonly error: RallyError }
  | { readonly at: "gathering"; readonly question: InputQuestion }
  | { readonly at: "pausing"; readonly why: PauseKind; readonly ms: number; readonly error?: TransportError }
  | { readonly at: "succeeded"; readonly result: JsonObject }
  | {
      readonly at: "suspended";
      readonly continuation: Continuation;
      readonly question: InputQuestion;
      /** The keys that still want an answer. */
      readonly open: readonly string[];
    }
  | {
      readonly at: "failed";
      readonly error: RallyError;
      /** A lost attempt: why it was not issued again. */
      readonly notReissued?: string;
    }
  | { readonly at: "cancelled"; readonly error: RallyError };

/** The whole state of one operation. */
export interface OperationState {
  readonly phase: Phase;
  /** The current round, from 1. A restart goes back to 1. */
  readonly round: number;
  /** Attempts sent so far. */
  readonly attempt: number;
  /** `input_required` answers honoured so far. */
  readonly answers: number;
  /** Attempts issued again so far. */
  readonly reissues: number;
  /** Pauses made so far because the server asked nothing. */
  readonly paces: number;
  /** What the current round's request carries. */
  readonly inputs: RoundInputs;
  /** Recoveries used in this round. */
  readonly recovered: readonly RecoveryKind[];
  /** Questions that the user declined or cancelled, with how often each came again. */
  readonly declined: ReadonlyMap<string, number> | undefined;
  readonly mirrored: readonly MirroredField[];
  /** An attempt was lost that may have run: whatever comes after, the outcome is no longer certain. */
  readonly uncertain: boolean;
}

/** What can happen to an operation. */
export type OperationEvent =
  | { readonly type: "start" }
  /** The attempt was answered by a result. */
  | { readonly type: "result"; readonly result: JsonObject }
  /** The attempt was answered by a JSON-RPC error; `recovery` says which kind of recovery could put it right. */
  | { readonly type: "rpcError"; readonly error: RallyError; readonly recovery?: RecoveryKind | undefined }
  /** The attempt brought no answer. `error` is what to fail with, where that is not the failure's own error. */
  | {
      readonly type: "failure";
      readonly failure: ExchangeFailure;
      readonly random: number;
      readonly recovery?: RecoveryKind | undefined;
    }
  | { readonly type: "recovered"; readonly mirrored?: readonly MirroredField[] }
  | { readonly type: "unrecovered"; readonly error: RallyError }
  /** Every input request of the round has its answer. */
  | { readonly type: "answered"; readonly responses: string; readonly declined: boolean }
  /** Some input requests were left to the host; the others have their answers. */
  | {
      readonly type: "left";
      readonly open: readonly string[];
      readonly answers: ReadonlyMap<string, JsonObject>;
    }
  | { readonly type: "inputFailed"; readonly error: RallyError }
  /** The pause is over. */
  | { readonly type: "timer" }
  /** The attempt took too long. */
  | { readonly type: "attemptTimeout"; readonly error: RallyError; readonly random: number }
  /** The caller cancelled. */
  | { readonly type: "cancel"; readonly error: RallyError }
  /** The deadline passed, the client closed, or the engine can't go on: final, whatever the state. */
  | { readonly type: "stop"; readonly error: RallyError };

/** What the engine is to do, in this order. */
export type Effect =
  /** Issue an attempt for the state's round, with its inputs. */
  | "send"
  /** Abandon the attempt that is out. */
  | "cancelAttempt"
  /** Run the host's handlers for the question of the phase. */
  | "gather"
  /** Abort the handlers that are running. */
  | "abortInputs"
  /** Put right what the phase names. */
  | "recover"
  /** Call back after the phase's `ms`. */
  | "pause"
  /** Tell the host: the phase is terminal. */
  | "settle"
  /** The event came too late to matter. */
  | "late";

/** The outcome of one reduction. */
export interface Transition {
  readonly state: OperationState;
  readonly effects: readonly Effect[];
}

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
const NONE: readonly RecoveryKind[] = [];

/** The pause before a state-only retry: 250 ms at first, doubling, at most 5 s (MRTR-09). */
export const PACE_MS = 250;
const MAX_PACE_MS = 5_000;

/** A new operation at its first round. */
export function createOperation(rules: OperationRules, mirrored: readonly MirroredField[]): OperationState {
  return {
    phase: { at: "idle" },
    round: 1,
    attempt: 0,
    answers: 0,
    reissues: 0,
    paces: 0,
    inputs: rules.first,
    recovered: NONE,
    declined: undefined,
    mirrored,
    uncertain: false,
  };
}

/** An operation that goes on from a continuation: its next request is the retry of the round that was open. */
export function resumeOperation(
  rounds: number,
  inputs: RoundInputs,
  mirrored: readonly MirroredField[],
): OperationState {
  return {
    phase: { at: "idle" },
    round: rounds + 1,
    attempt: 0,
    answers: rounds,
    reissues: 0,
    paces: 0,
    inputs,
    recovered: NONE,
    declined: undefined,
    mirrored,
    uncertain: false,
  };
}

/** Whether an operation in this phase is over. */
export function isTerminal(phase: Phase): boolean {
  return (
    phase.at === "succeeded" || phase.at === "failed" || phase.at === "cancelled" || phase.at === "suspended"
  );
}

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
    recovered: NONE,
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
  return { ...state, round: state.round + 1, answers: state.answers + 1, inputs, recovered: NONE };
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
