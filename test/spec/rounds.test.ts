import { describe, expect, it, vi } from "vitest";
import type { RoundLimitError } from "../../src/errors.ts";
import type { Script, Step } from "../../src/testing/peer-types.ts";
import { complete, elicitForm, inputRequired, listRoots } from "../../src/testing/replies.ts";
import type { JsonObject } from "../../src/wire.ts";
import { BINDINGS, HTTP_AND_STDIO, memory, type RigOptions } from "../support/bindings.ts";
import { manualClock, settled } from "../support/clocks.ts";
import { paramsText, retryParts } from "../support/frames.ts";
import { errorOf, expectAtRest, textOf } from "../support/outcomes.ts";

// The rounds of one operation: what the retry carries, and what it must not.

const ACCEPT = { action: "accept", content: { ok: true } } as const;
const accepting: RigOptions = { inputs: { elicitForm: () => ACCEPT } };
const askOk = (requestState?: string) =>
  inputRequired({
    inputRequests: { ok: elicitForm("OK?") },
    ...(requestState !== undefined && { requestState }),
  });

/** A question whose text is written by hand, so that its keys and strings are exactly these. */
function rawQuestion(members: string): Script {
  return ({ id }, exchange) =>
    exchange.raw(`{"jsonrpc":"2.0","id":${id},"result":{"resultType":"input_required",${members}}}`);
}

for (const { name, open } of HTTP_AND_STDIO) {
  describe(`rounds over ${name}`, () => {
    it("MRTR-05: inputResponses has exactly the keys of this round's question, whatever they are", async () => {
      const keys = ["__proto__", "constructor", "", "toString", "a.b", "10", "2", "ü\n", "\u2028"];
      const entry = JSON.stringify({ method: "roots/list" });
      const asked = keys.map((key) => `${JSON.stringify(key)}:${entry}`).join(",");
      const rig = await open([rawQuestion(`"inputRequests":{${asked}}`), complete("done")], {
        inputs: { listRoots: ({ key }) => ({ roots: [], key }) },
      });
      expect(textOf(await rig.client.callTool("t"))).toBe("done");
      const responses = rig.peer.requests[1]?.params.inputResponses as JsonObject;
      expect(Object.keys(responses).sort()).toEqual([...keys].sort());
      for (const key of keys) {
        expect(Object.getOwnPropertyDescriptor(responses, key)?.value).toEqual({ roots: [], key });
      }
    });

    it("MRTR-05 MRTR-11 B011: answers replace those of the round before, they do not add up", async () => {
      const rig = await open(
        [
          inputRequired({ inputRequests: { a: listRoots(), b: listRoots() }, requestState: "one" }),
          inputRequired({ inputRequests: { c: listRoots() }, requestState: "two" }),
          complete("done"),
        ],
        { inputs: { listRoots: ({ key }) => ({ roots: [], key }) } },
      );
      expect(textOf(await rig.client.callTool("t", { x: 1 }))).toBe("done");
      expect(retryParts(rig.peer)).toEqual([
        {},
        {
          inputResponses: { a: { roots: [], key: "a" }, b: { roots: [], key: "b" } },
          requestState: "one",
        },
        { inputResponses: { c: { roots: [], key: "c" } }, requestState: "two" },
      ]);
      expectAtRest(rig);
    });

    it("MRTR-06 REQ-01: the retry has the same params text, and meta anew; the caller's objects do not matter", async () => {
      const args = { "2": "two", "1": "one", nested: { list: [1, 2.5, "ü"] }, late: undefined as unknown };
      let metaCalls = 0;
      const rig = await open([askOk("s"), askOk(), complete("done")], {
        inputs: {
          elicitForm: () => {
            args.late = "changed";
            args.nested.list.push(3);
            return ACCEPT;
          },
        },
        meta: () => ({ traceparent: `00-${++metaCalls}` }),
      });
      const before = JSON.stringify(args);
      const call = rig.client.callTool("t", args);
      expect(JSON.stringify(args)).toBe(before);
      await call;
      const [first, second, third] = rig.peer.requests.map(paramsText);
      expect(first).toBe('"name":"t","arguments":{"1":"one","2":"two","nested":{"list":[1,2.5,"ü"]}}');
      expect([second, third]).toEqual([first, first]);
      // A probe of the link has meta of its own, too.
      const traces = rig.peer.requests.map(({ meta }) => Number(String(meta.traceparent).slice(3)));
      expect(traces).toEqual([0, 1, 2].map((n) => traces[0]! + n));
      expect(rig.peer.requests.map(({ method }) => method)).toEqual(Array(3).fill("tools/call"));
    });

    it("MRTR-06 B025: inputResponses and requestState of the caller count for round 1 only", async () => {
      const stateOnly = inputRequired({ requestState: "r1" });
      const params = Object.freeze({
        name: "t",
        inputResponses: { old: { roots: [] } },
        requestState: "old",
      });
      const rig = await open([stateOnly, askOk(), complete("done")], accepting);
      await rig.client.request("tools/call", params);
      expect(retryParts(rig.peer)).toEqual([
        { inputResponses: { old: { roots: [] } }, requestState: "old" },
        { requestState: "r1" },
        { inputResponses: { ok: ACCEPT } },
      ]);
      expect(new Set(rig.peer.requests.map(paramsText))).toEqual(new Set(['"name":"t"']));
    });

    it("MRTR-07: every attempt has a new id, a whole number", async () => {
      const rig = await open([askOk(), askOk("s"), complete("done"), complete("other")], accepting);
      await rig.client.callTool("t");
      await rig.client.callTool("t");
      const ids = rig.peer.requests.map(({ id }) => id);
      expect(new Set(ids).size).toBe(4);
      expect(ids.every((id) => Number.isSafeInteger(id) && Number(id) > 0)).toBe(true);
    });

    const states: [title: string, state: string][] = [
      ["the empty string", ""],
      ["padding", "  s \t"],
      ["escapes of URLs", "%2B+/="],
      ["U+0000", "a\u0000b"],
      ["a lone high surrogate", "\ud800"],
      ["a lone low surrogate in the middle", "x\udc00y"],
      ["line separators", "\u2028\u2029"],
      ["text that looks like JSON", '{"a":1.0}'],
      ["64 KiB", "s".repeat(65_536)],
      ["an astral character and its halves the wrong way round", "😀\ude00\ud83d"],
    ];
    it("MRTR-08 B010: requestState is echoed code unit for code unit, and its absence too", async () => {
      const steps: Step[] = states.flatMap(([, state]) => [askOk(state), complete("done")]);
      const rig = await open([...steps, askOk("s"), askOk(), complete("done")], accepting);
      for (const [title, state] of states) {
        await rig.client.callTool("t");
        const echoed = rig.peer.requests.at(-1)?.params.requestState;
        expect([title, echoed === state]).toEqual([title, true]);
      }
      await rig.client.callTool("t");
      expect(retryParts(rig.peer).slice(-2)).toEqual([
        { inputResponses: { ok: ACCEPT }, requestState: "s" },
        { inputResponses: { ok: ACCEPT } },
      ]);
    });

    it("MRTR-11 B013 B017: after maxRounds answers the call fails and can be gone on with", async () => {
      const rig = await open(
        ({ params }, exchange) => exchange.result(askOk(`${params.requestState ?? ""}x`)),
        {
          ...accepting,
          maxRounds: 3,
        },
      );
      const error = await errorOf<RoundLimitError>(rig.client.callTool("t"));
      expect([error.code, error.rounds, error.keys]).toEqual(["round-limit", 3, ["ok"]]);
      expect(error.message).toContain("3");
      expect(error.continuation).toMatchObject({ version: 1, method: "tools/call", requestState: "xxxx" });
      expect(rig.peer.requests).toHaveLength(4);
      expect(JSON.stringify(error)).not.toContain("xxxx");
      const outcome = await rig.client.resume(error.continuation, { ok: ACCEPT }, { maxRounds: 9 });
      expect(outcome.status).toBe("input_required");
      expect(retryParts(rig.peer).at(-1)).toEqual({ inputResponses: { ok: ACCEPT }, requestState: "xxxx" });
    });
  });
}

describe("the default bound on rounds", () => {
  it("MRTR-11: honours ten answers: eleven requests", async () => {
    const rig = await memory.open(askOk("s"), accepting);
    const error = await errorOf<RoundLimitError>(rig.client.callTool("t"));
    expect([error.rounds, rig.peer.requests.length]).toEqual([10, 11]);
  });
});

describe("a question without input requests", () => {
  it("MRTR-09 B002: is retried after a growing pause, without the key inputResponses", async () => {
    const clock = manualClock();
    const stateOnly = (requestState: string) => inputRequired({ requestState });
    const rig = await memory.open([stateOnly("1"), stateOnly("2"), stateOnly("3"), complete("done")], {
      clock,
    });
    const call = rig.client.callTool("t");
    await clock.advance(249);
    expect(rig.peer.requests).toHaveLength(1);
    await clock.advance(1);
    expect(rig.peer.requests).toHaveLength(2);
    await clock.advance(499);
    expect(rig.peer.requests).toHaveLength(2);
    await clock.advance(1);
    expect(rig.peer.requests).toHaveLength(3);
    await clock.advance(1000);
    expect(textOf(await call)).toBe("done");
    expect(retryParts(rig.peer)).toEqual([
      {},
      { requestState: "1" },
      { requestState: "2" },
      { requestState: "3" },
    ]);
  });

  it("MRTR-09: with an empty object it is paced the same way and answered with an empty object", async () => {
    const clock = manualClock();
    const rig = await memory.open([inputRequired({ inputRequests: {} }), complete("done")], { clock });
    const call = rig.client.callTool("t");
    await clock.advance(249);
    expect(rig.peer.requests).toHaveLength(1);
    await clock.advance(1);
    await call;
    expect(retryParts(rig.peer)).toEqual([{}, { inputResponses: {} }]);
  });

  it("MRTR-09: the pause grows with the pauses made, not with questions that were answered", async () => {
    const clock = manualClock();
    const script = [
      askOk("1"),
      askOk("2"),
      askOk("3"),
      inputRequired({ requestState: "4" }),
      complete("done"),
    ];
    const rig = await memory.open(script, { ...accepting, clock });
    const call = rig.client.callTool("t");
    await clock.advance(0);
    await settled();
    expect(rig.peer.requests).toHaveLength(4);
    await clock.advance(250);
    expect(textOf(await call)).toBe("done");
  });

  it("MRTR-09 CAN-01: cancelling in the pause rejects at once, and nothing more is sent", async () => {
    const clock = manualClock();
    const rig = await memory.open(inputRequired({ requestState: "s" }), { clock });
    const controller = new AbortController();
    const call = rig.client.callTool("t", {}, { signal: controller.signal });
    await settled();
    expect(rig.client.operations[0]?.phase).toBe("pausing");
    controller.abort("enough");
    const error = await errorOf(call);
    expect([error.code, error.cause]).toEqual(["cancelled", "enough"]);
    await clock.advance(60_000);
    expect(rig.peer.requests).toHaveLength(1);
    expect(clock.timers).toBe(0);
  });
});

describe("operations beside each other", () => {
  for (const { name, open } of BINDINGS) {
    it(`MRTR-10 over ${name}: twenty calls of one tool with the same keys stay apart`, async () => {
      const script: Script = async ({ params }, exchange) => {
        const { n } = params.arguments as { n: number };
        const round = Number(String(params.requestState ?? "0:0").split(":")[1]);
        // Answers come in another order than the questions.
        await new Promise((resolve) => setTimeout(resolve, (n * 7) % 5));
        if (round < 3) exchange.result(askOk(`${n}:${round + 1}`));
        else
          exchange.result(complete(`${n} ${JSON.stringify(params.inputResponses)} ${params.requestState}`));
      };
      const rig = await open(script, {
        inputs: {
          elicitForm: async (_params, { operationId }) => {
            await settled();
            return { action: "accept", content: { ok: true, by: operationId } } as never;
          },
        },
      });
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          rig.client.callTool("t", { n }, { inputs: { elicitForm: () => ({ ...ACCEPT, _meta: { n } }) } }),
        ),
      );
      for (const [n, result] of results.entries()) {
        const answer = JSON.stringify({ ok: { ...ACCEPT, _meta: { n } } });
        expect(textOf(result)).toBe(`${n} ${answer} ${n}:3`);
      }
      for (const { params } of rig.peer.requests) {
        const { n } = params.arguments as { n: number };
        if (params.requestState !== undefined) expect(params.requestState).toMatch(new RegExp(`^${n}:`));
      }
      expectAtRest(rig);
    });
  }
});

describe("the same question again after a no", () => {
  const same = { inputRequests: { a: elicitForm("A?"), b: elicitForm("B?") } };
  const reordered = { inputRequests: { b: elicitForm("B?"), a: elicitForm("A?") } };

  for (const { name, open } of HTTP_AND_STDIO) {
    it(`MRTR-21 B026 over ${name}: fails the call when it has come maxRepeats times`, async () => {
      const prompts = vi.fn(() => ({ action: "decline" as const }));
      const script: Script = (_request, exchange) => {
        const question = exchange.index % 2 === 0 ? same : reordered;
        exchange.result(inputRequired({ ...question, requestState: `s${exchange.index}` }));
      };
      const rig = await open(script, { inputs: { elicitForm: prompts } });
      const error = await errorOf(rig.client.callTool("t"));
      expect(error).toMatchObject({ code: "input-repeated", keys: ["a", "b"], repeats: 2 });
      expect(prompts).toHaveBeenCalledTimes(4);
      expect(rig.peer.requests).toHaveLength(3);
    });
  }

  it("MRTR-21: another question, or the same after a yes, is no repeat", async () => {
    const clock = manualClock();
    let asked = 0;
    const script: Script = (_request, exchange) => {
      if (exchange.index >= 8) return exchange.result(complete("done"));
      exchange.result(inputRequired({ inputRequests: { a: elicitForm(`Question ${exchange.index}?`) } }));
    };
    const rig = await memory.open(script, {
      clock,
      inputs: { elicitForm: () => ({ action: ++asked % 2 === 0 ? "cancel" : "decline" }) },
    });
    expect(textOf(await rig.client.callTool("t"))).toBe("done");
    expect(asked).toBe(8);
    const yes = await memory.open([askOk(), askOk(), askOk(), askOk(), complete("done")], accepting);
    expect(textOf(await yes.client.callTool("t"))).toBe("done");
  });
});
