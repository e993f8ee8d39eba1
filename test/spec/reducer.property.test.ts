import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CancelledError, ConnectionLostError, InputError, RpcError, TimeoutError } from "../../src/errors.ts";
import type { InputRequest } from "../../src/input-required.ts";
import { reduce } from "../../src/operation.ts";
import {
  createOperation,
  type Effect,
  isTerminal,
  type OperationEvent,
  type OperationRules,
  type OperationState,
  resumeOperation,
} from "../../src/operation-state.ts";
import { elicitForm, listRoots } from "../../src/testing/replies.ts";
import type { Delivery } from "../../src/transport.ts";
import type { JsonObject } from "../../src/wire.ts";

// The reducer under any sequence of events.

const SPENT = { totalMs: 0, wireMs: 0, inputMs: 0, pauseMs: 0, silentMs: 0 };
const unit = fc.double({ min: 0, max: 0.999, noNaN: true });
const recovery = fc.constantFrom("version", "headers", "unauthorized", "scope", undefined);
const requestState = fc.option(fc.string({ unit: "binary" }), { nil: undefined });
const inputRequests = fc.oneof(
  fc.constant(undefined),
  fc.constant({}),
  fc.dictionary(fc.string(), fc.constantFrom(elicitForm("A?"), elicitForm("B?"), listRoots()), {
    minKeys: 1,
    maxKeys: 3,
  }),
  fc.constantFrom(
    null,
    "oops",
    { k: { method: "x" } },
    { k: { method: "sampling/createMessage", params: {} } },
  ),
);
const result = fc.oneof(
  fc.constantFrom(
    { content: [] },
    { resultType: "complete", content: [] },
    { resultType: "complete" },
    { resultType: 7 },
  ),
  fc.record(
    { resultType: fc.constant("input_required"), inputRequests, requestState },
    { requiredKeys: ["resultType"] },
  ),
);
const failure = fc.record({
  delivery: fc.constantFrom<Delivery>("not-sent", "rejected", "unknown"),
  retryAfterMs: fc.option(fc.nat(5000), { nil: undefined }),
});

type Events = fc.Arbitrary<OperationEvent>;

const answers: Events = fc.oneof(
  {
    weight: 6,
    arbitrary: result.map((value): OperationEvent => ({ type: "result", result: value as JsonObject })),
  },
  recovery.map(
    (kind): OperationEvent => ({ type: "rpcError", error: new RpcError("no", -1), recovery: kind }),
  ),
  {
    weight: 3,
    arbitrary: fc.tuple(failure, unit, recovery).map(
      ([{ delivery, retryAfterMs }, random, kind]): OperationEvent => ({
        type: "failure",
        failure: {
          delivery,
          error: new ConnectionLostError("lost", delivery),
          ...(retryAfterMs !== undefined && { retryAfterMs }),
        },
        random,
        recovery: kind,
      }),
    ),
  },
  unit.map(
    (random): OperationEvent => ({
      type: "attemptTimeout",
      error: new TimeoutError("late", "attempt", 1, SPENT),
      random,
    }),
  ),
);
const inputs: Events = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.constantFrom('{"a":{}}', "{}"), fc.boolean())
      .map(([responses, declined]): OperationEvent => ({ type: "answered", responses, declined })),
  },
  fc.constant<OperationEvent>({ type: "left", open: ["a"], answers: new Map() }),
  fc.constant<OperationEvent>({ type: "inputFailed", error: new InputError("no", "a", "roots/list") }),
);
const recoveries: Events = fc.constantFrom<OperationEvent>(
  { type: "recovered" },
  { type: "recovered", mirrored: [] },
  { type: "unrecovered", error: new RpcError("no", -1) },
);
const timer: Events = fc.constant<OperationEvent>({ type: "timer" });
const wild: Events = fc.oneof(
  fc.constantFrom<OperationEvent>(
    { type: "start" },
    { type: "cancel", error: new CancelledError("enough") },
    { type: "stop", error: new TimeoutError("late", "operation", 1, SPENT) },
  ),
  answers,
  inputs,
  recoveries,
  timer,
);

/** What happens next: mostly something that fits the phase, at times anything at all. */
const step = fc.record({ isWild: fc.nat(9).map((n) => n === 0), wild, answers, inputs, recoveries, timer });
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

function pick(step: Step, { phase }: OperationState): OperationEvent {
  if (step.isWild) return step.wild;
  switch (phase.at) {
    case "awaiting":
      return step.answers;
    case "gathering":
      return step.inputs;
    case "recovering":
      return step.recoveries;
    case "pausing":
      return step.timer;
    default:
      return step.wild;
  }
}

const rules: fc.Arbitrary<OperationRules> = fc
  .record({
    method: fc.constantFrom("tools/call", "prompts/get", "tools/list"),
    maxRounds: fc.nat(4),
    maxRepeats: fc.nat(3),
    max: fc.nat(3),
    policy: fc.constantFrom("always" as const, "safe" as const, "never" as const),
    timeouts: fc.boolean(),
    repeatable: fc.boolean(),
    manual: fc.boolean(),
    firstState: requestState,
  })
  .map(({ max, policy, timeouts, firstState, ...rest }) => ({
    ...rest,
    params: '"name":"t"',
    name: "t",
    peer: "peer",
    extraResultTypes: undefined,
    undeclared: ({ kind }: InputRequest) => (kind === "sample" ? "sampling is not declared" : undefined),
    limits: { inputRequests: 2, requestStateBytes: 1000 },
    reissue: { policy, max, timeouts, backoffMs: 10 },
    first: { responses: undefined, requestState: firstState },
  }));

const start = fc.boolean();
const EFFECTS: ReadonlySet<Effect> = new Set([
  "send",
  "cancelAttempt",
  "gather",
  "abortInputs",
  "recover",
  "pause",
  "settle",
  "late",
]);
/** Which effects begin something, and so may not come once an operation is over. */
const OPENING: ReadonlySet<Effect> = new Set(["send", "gather", "recover", "pause"]);
const RECOVERY_KINDS = 4;

interface Run {
  readonly states: OperationState[];
  readonly effects: (readonly Effect[])[];
  readonly events: OperationEvent[];
}

function run(initial: OperationState, steps: readonly Step[], ruled: OperationRules): Run {
  const all: Run = { states: [initial], effects: [], events: [] };
  let state = initial;
  for (const each of [undefined, ...steps]) {
    const event: OperationEvent = each === undefined ? { type: "start" } : pick(each, state);
    // Frozen before it is reduced: a write would throw.
    const transition = reduce(Object.freeze(state), event, ruled);
    state = transition.state;
    all.events.push(event);
    all.states.push(state);
    all.effects.push(transition.effects);
  }
  return all;
}

function property(check: (run: Run, ruled: OperationRules) => void): void {
  fc.assert(
    fc.property(rules, start, fc.array(step, { maxLength: 30 }), (ruled, resumed, steps) => {
      const initial = resumed
        ? resumeOperation(1, { responses: "{}", requestState: "resumed" }, [])
        : createOperation(ruled, []);
      check(run(initial, steps, ruled), ruled);
    }),
    { numRuns: 500 },
  );
}

describe("the reducer, under any events", () => {
  it("MRTR-07 SAF-02: gives a defined transition for every event in every phase, and changes no state in place", () => {
    property(({ states, effects }) => {
      for (const each of effects.flat()) expect(EFFECTS.has(each)).toBe(true);
      expect(effects).toHaveLength(states.length - 1);
    });
  });

  it("MRTR-17 CAN-01: settles once, opens nothing afterwards, and leaves a terminal state unchanged", () => {
    property(({ states, effects }) => {
      expect(effects.flat().filter((effect) => effect === "settle").length).toBeLessThanOrEqual(1);
      for (const [at, given] of effects.entries()) {
        const before = states[at]!;
        const after = states[at + 1]!;
        if (isTerminal(before.phase)) {
          expect(after).toBe(before);
          expect(given).toEqual(["late"]);
        } else if (isTerminal(after.phase)) {
          expect(given.at(-1)).toBe("settle");
          expect(given.some((effect) => OPENING.has(effect))).toBe(false);
        } else {
          expect(given).not.toContain("settle");
        }
      }
    });
  });

  it("MRTR-17: leaves no attempt and no handler running when it ends, or goes on without them", () => {
    property(({ states, effects, events }) => {
      for (const [at, given] of effects.entries()) {
        const before = states[at]!.phase.at;
        const after = states[at + 1]!.phase;
        const { type } = events[at]!;
        const ends = type === "cancel" || type === "stop" || type === "attemptTimeout";
        if (before === "awaiting" && ends) expect(given[0]).toBe("cancelAttempt");
        if (before === "gathering" && isTerminal(after) && after.at !== "suspended")
          expect(given[0]).toBe("abortInputs");
      }
    });
  });

  it("MRTR-11: only counts up, and a round goes up by one or back to the first", () => {
    property(({ states }) => {
      for (let at = 1; at < states.length; at++) {
        const before = states[at - 1]!;
        const after = states[at]!;
        for (const counter of ["attempt", "answers", "reissues", "paces"] as const) {
          expect(after[counter] - before[counter]).toBeGreaterThanOrEqual(0);
          expect(after[counter] - before[counter]).toBeLessThanOrEqual(1);
        }
        expect([before.round, before.round + 1, 1]).toContain(after.round);
      }
    });
  });

  it("MRTR-11 MRTR-18 MRTR-19: sends a bounded number of requests, whatever happens", () => {
    property(({ states, effects }, { maxRounds, reissue }) => {
      const sends = effects.flat().filter((effect) => effect === "send").length;
      const last = states.at(-1)!;
      const first = states[0]!;
      expect(last.answers).toBeLessThanOrEqual(Math.max(maxRounds, first.answers));
      expect(last.reissues).toBeLessThanOrEqual(reissue.max);
      const rounds = 1 + (last.answers - first.answers) + last.reissues;
      const recoveries = effects.flat().filter((effect) => effect === "recover").length;
      expect(sends).toBe(last.attempt);
      expect(sends).toBeLessThanOrEqual(rounds + recoveries);
      expect(recoveries).toBeLessThanOrEqual(RECOVERY_KINDS * rounds);
    });
  });

  it("MRTR-08 MRTR-18: requestState goes into the next round alone, is kept in a repeat of the round, and dropped at a restart", () => {
    property(({ states, events }, ruled) => {
      let asked: string | undefined;
      for (const [at, each] of events.entries()) {
        const before = states[at]!;
        const after = states[at + 1]!;
        if (before.phase.at === "awaiting" && each.type === "result") {
          asked = (each.result as { requestState?: string }).requestState;
        }
        if (after.round === before.round + 1) expect(after.inputs.requestState).toBe(asked);
        else if (after.reissues > before.reissues && after.round === 1 && after.inputs !== before.inputs) {
          expect(after.inputs).toEqual(ruled.first);
        } else expect(after.inputs).toBe(before.inputs);
      }
    });
  });

  it("MRTR-19: recovers from each kind once in a round", () => {
    property(({ states }) => {
      for (const { recovered } of states) expect(new Set(recovered).size).toBe(recovered.length);
      for (let at = 1; at < states.length; at++) {
        const [before, after] = [states[at - 1]!, states[at]!];
        if (after.round === before.round + 1) expect(after.recovered).toEqual([]);
      }
    });
  });
});
