import { describe, expect, it, vi } from "vitest";
import type { InputError, TimeoutError } from "../../src/errors.ts";
import type { InputHandlers } from "../../src/inputs.ts";
import { complete, elicitForm, inputRequired, listRoots } from "../../src/testing/replies.ts";
import { memory } from "../support/bindings.ts";
import { manualClock, settled } from "../support/clocks.ts";
import { retryParts } from "../support/frames.ts";
import { errorOf, expectAtRest, textOf } from "../support/outcomes.ts";

// What a handler may answer, and how long it may take.

const yes = () => ({ action: "accept" as const, content: { ok: true } });
const ask = (inputRequests: object) => inputRequired({ inputRequests, requestState: "s" });

describe("answers", () => {
  const schema = {
    type: "object",
    properties: {
      name: { type: "string", minLength: 2 },
      plan: { type: "string", enum: ["free", "team"], default: "free" },
      count: { type: "integer", default: 3 },
    },
    required: ["name"],
  };
  const question = ask({ form: elicitForm("Form", schema) });
  const refused: [title: string, answer: unknown, path: string | undefined][] = [
    ["undefined", undefined, ""],
    ["null", null, ""],
    ["a string", "accept", ""],
    ["an unknown action", { action: "ok" }, "action"],
    ["no action", { content: { name: "Al" } }, "action"],
    ["content that is a number", { action: "accept", content: 7 }, "content"],
    ["content that is a list", { action: "accept", content: [] }, "content"],
    ["content that is null", { action: "accept", content: null }, "content"],
    ["content that is a Date", { action: "accept", content: new Date() }, "content"],
    ["a nested object", { action: "accept", content: { name: { first: "Al" } } }, "content.name"],
    ["undefined inside", { action: "accept", content: { name: undefined } }, "content.name"],
    ["NaN", { action: "accept", content: { name: "Al", count: Number.NaN } }, "content.count"],
    ["a BigInt", { action: "accept", content: { name: "Al", count: 1n } }, "content.count"],
    ["a list of numbers", { action: "accept", content: { name: [1] } }, "content.name[0]"],
    ["what the schema forbids", { action: "accept", content: { name: "A" } }, "content.name"],
    ["no value for a required field", { action: "accept", content: {} }, "content.name"],
    ["a choice that is none", { action: "accept", content: { name: "Al", plan: "gold" } }, "content.plan"],
  ];
  it("MRTR-15 B029 B031: one that does not fit is an InputError with the path, and nothing is sent", async () => {
    const rig = await memory.open(question);
    for (const [title, answer, path] of refused) {
      const call = rig.client.callTool("t", {}, { inputs: { elicitForm: () => answer as never } });
      const error = await errorOf<InputError>(call);
      expect([title, error.code, error.key, error.path]).toEqual([title, "input", "form", path]);
    }
    expect(rig.peer.requests).toHaveLength(refused.length);
    expectAtRest(rig);
  });

  it("MRTR-15 B032: content goes with accept alone, and is not looked at otherwise", async () => {
    const answers = [
      { action: "cancel" },
      { action: "decline", content: null },
      { action: "decline", content: { name: 1n } },
    ];
    const rig = await memory.open(answers.flatMap(() => [question, complete("done")]));
    for (const answer of answers) {
      await rig.client.callTool("t", {}, { inputs: { elicitForm: () => answer as never } });
      const { inputResponses } = rig.peer.requests.at(-1)!.params;
      expect(inputResponses).toEqual({ form: { action: answer.action } });
    }
  });

  it("MRTR-15: defaults are offered to the handler, and filled in only with applyDefaults", async () => {
    const rig = await memory.open([question, complete("done"), question, complete("done")]);
    let offered: unknown;
    const inputs: InputHandlers = {
      elicitForm: (_params, { defaults }) => {
        offered = defaults;
        return { action: "accept", content: { name: "Al", count: 9 } };
      },
    };
    await rig.client.callTool("t", {}, { inputs });
    expect(offered).toEqual({ plan: "free", count: 3 });
    await rig.client.callTool("t", {}, { inputs, applyDefaults: true });
    expect(retryParts(rig.peer).flatMap(({ inputResponses }) => inputResponses ?? [])).toEqual([
      { form: { action: "accept", content: { name: "Al", count: 9 } } },
      { form: { action: "accept", content: { name: "Al", plan: "free", count: 9 } } },
    ]);
  });

  it("MRTR-15 SAF-02: what the host does to its object after the check changes nothing", async () => {
    const changing = { action: "decline" as const, _meta: { n: 1 as unknown } };
    const rig = await memory.open([ask({ a: elicitForm("?"), b: listRoots() }), complete("done")], {
      inputs: {
        elicitForm: () => changing,
        listRoots: async () => {
          await settled();
          changing._meta.n = 1n;
          return { roots: [] };
        },
      },
    });
    expect(textOf(await rig.client.callTool("t"))).toBe("done");
    expect(retryParts(rig.peer)[1]?.inputResponses).toMatchObject({
      a: { action: "decline", _meta: { n: 1 } },
    });
  });
});

describe("time and handlers", () => {
  it("MRTR-17 B001: the deadline is looked at before anyone is asked", async () => {
    const clock = manualClock();
    const handler = vi.fn(yes);
    let now = clock.now();
    // The clock has moved on, and its timer has not fired yet: an event loop that was blocked.
    const late = { ...clock, now: () => now };
    const rig = await memory.open(
      (_request, exchange) => {
        now += 300;
        exchange.result(ask({ k: elicitForm("?") }));
      },
      { clock: late, inputs: { elicitForm: handler } },
    );
    const error = await errorOf<TimeoutError>(rig.client.callTool("t", {}, { operationMs: 200 }));
    expect([error.code, error.scope, error.limitMs]).toEqual(["timeout", "operation", 200]);
    expect(handler).not.toHaveBeenCalled();
    expect(rig.peer.requests).toHaveLength(1);
  });

  it("MRTR-17 TIM-01 B020: the deadline ends a call whose handler never answers; until then it can be listed", async () => {
    const clock = manualClock();
    let signal: AbortSignal | undefined;
    const rig = await memory.open(ask({ k: elicitForm("?") }), {
      clock,
      inputs: {
        elicitForm: (_params, context) => {
          signal = context.signal;
          return new Promise(() => {});
        },
      },
    });
    const call = errorOf<TimeoutError>(rig.client.callTool("t", {}, { operationMs: 1000 }));
    await clock.advance(400);
    expect(rig.client.operations).toMatchObject([{ phase: "gathering", inputs: ["k"], name: "t", round: 1 }]);
    await clock.advance(600);
    const error = await call;
    expect([error.code, error.scope]).toEqual(["timeout", "operation"]);
    expect(error.spent).toMatchObject({ totalMs: 1000, inputMs: 1000 });
    expect(signal?.aborted).toBe(true);
    expect([rig.peer.requests.length, clock.timers]).toEqual([1, 0]);
  });

  it("TIM-01 TIM-02: inputMs bounds each handler, and its timer goes with the round", async () => {
    const clock = manualClock();
    const hanging = () => new Promise<never>(() => {});
    const rig = await memory.open(ask({ a: elicitForm("?"), b: listRoots() }), {
      clock,
      inputs: { elicitForm: hanging, listRoots: hanging },
    });
    const call = errorOf<TimeoutError>(rig.client.callTool("t", {}, { inputMs: 500 }));
    await clock.advance(500);
    expect(await call).toMatchObject({
      code: "timeout",
      scope: "input",
      limitMs: 500,
      spent: { inputMs: 500 },
    });
    expect([rig.peer.requests.length, clock.timers]).toEqual([1, 0]);

    const controller = new AbortController();
    const cancelled = errorOf(rig.client.callTool("t", {}, { inputMs: 500, signal: controller.signal }));
    await clock.advance(100);
    controller.abort();
    expect((await cancelled).code).toBe("cancelled");
    expect(clock.timers).toBe(0);
  });
});
