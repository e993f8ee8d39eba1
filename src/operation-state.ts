/**
 * What one logical operation is: what is fixed when it starts, where it can be, what can happen to it, and what is to be
 * done then. The step from one state to the next is the reducer's, in operation.ts.
 *
 * Counters (`attempt`, `answers`, `reissues`, `paces`) only grow: no round and no restart resets them, so nothing loops for
 * ever.
 */

import type { Continuation } from "./continuation.ts";
import type { RallyError, TransportError } from "./errors.ts";
import type { InputQuestion, InputRequest, QuestionLimits } from "./input-required.ts";
import type { ReissueRules } from "./reissue.ts";
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
  /** The attempt brought no answer. */
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

/** The recoveries of a round in which none was needed. */
export const NO_RECOVERIES: readonly RecoveryKind[] = [];

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
    recovered: NO_RECOVERIES,
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
    recovered: NO_RECOVERIES,
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
