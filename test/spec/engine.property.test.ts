import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createClient } from "../../src/client.ts";
import { ConnectionLostError } from "../../src/errors.ts";
import type { RallyEvent } from "../../src/events.ts";
import { complete, elicitForm, inputRequired, listRoots } from "../../src/testing/replies.ts";
import { createScriptedPeer } from "../../src/testing/scripted-peer.ts";
import type {
  Delivery,
  Exchange,
  ExchangeRequest,
  ExchangeSink,
  Transport,
  TransportHost,
} from "../../src/transport.ts";
import { manualClock, settled } from "../support/clocks.ts";
import { withoutIds } from "../support/frames.ts";

// The engine under any sequence of answers, losses, aborts and time.

interface Out {
  readonly request: ExchangeRequest;
  readonly sink: ExchangeSink;
  over: boolean;
}

/** A transport whose peer is the test: exchanges wait until they are told how to end. */
function puppet() {
  const out: Out[] = [];
  const sent: ExchangeRequest[] = [];
  let host: TransportHost | undefined;
  let throws = false;
  const transport: Transport = {
    name: "puppet",
    peer: "puppet",
    attach(given) {
      host = given;
    },
    exchange(request, sink): Exchange {
      if (throws) {
        throws = false;
        throw new Error("the transport is broken");
      }
      sent.push(request);
      const exchange: Out = { request, sink, over: false };
      out.push(exchange);
      return {
        cancel() {
          exchange.over = true;
        },
      };
    },
    async close() {
      host?.link("closed");
    },
  };
  const pending = () => out.filter(({ over }) => !over);
  const throwOnce = () => {
    throws = true;
  };
  return { transport, sent, pending, throwOnce };
}

type Action =
  | { readonly do: "call"; readonly aborted: boolean }
  | { readonly do: "complete" | "error" | "malformed" | "progress"; readonly at: number }
  | { readonly do: "ask"; readonly at: number; readonly kind: "form" | "roots" | "state" | "empty" | "both" }
  | {
      readonly do: "fail";
      readonly at: number;
      readonly delivery: Delivery;
      readonly retryAfterMs: number | undefined;
    }
  | { readonly do: "abort"; readonly at: number }
  | { readonly do: "answer"; readonly at: number; readonly how: "accept" | "decline" | "throw" | "nonsense" }
  | { readonly do: "throw" }
  | { readonly do: "wait"; readonly ms: number };

const at = fc.nat(5);
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant("call" as const), aborted: fc.boolean() }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom("complete" as const, "error" as const, "malformed" as const, "progress" as const),
      at,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("ask" as const),
      at,
      kind: fc.constantFrom(
        "form" as const,
        "roots" as const,
        "state" as const,
        "empty" as const,
        "both" as const,
      ),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("fail" as const),
      at,
      delivery: fc.constantFrom<Delivery>("not-sent", "rejected", "unknown"),
      retryAfterMs: fc.option(fc.nat(500), { nil: undefined }),
    }),
  },
  fc.record({ do: fc.constant("abort" as const), at }),
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("answer" as const),
      at,
      how: fc.constantFrom("accept" as const, "decline" as const, "throw" as const, "nonsense" as const),
    }),
  },
  fc.constant<Action>({ do: "throw" }),
  { weight: 3, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.nat(2000) }) },
);

const form = elicitForm("?");
const QUESTIONS = {
  form: { inputRequests: { k: form }, requestState: "f" },
  roots: { inputRequests: { k: listRoots() } },
  state: { requestState: "s" },
  empty: { inputRequests: {} },
  both: { inputRequests: { k: form, r: listRoots() }, requestState: "b" },
};

describe("the engine, under any events", () => {
  it("MRTR-07 MRTR-10 MRTR-17 SAF-02: each call settles once, no wire id is used twice, and nothing is left", async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown) => unhandled.push(error);
    process.on("unhandledRejection", note);
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (actions) => {
        const clock = manualClock();
        const { transport, sent, pending, throwOnce } = puppet();
        const events: RallyEvent[] = [];
        const asked: { resolve: (value: never) => void; reject: (error: unknown) => void }[] = [];
        const wait = () => new Promise<never>((resolve, reject) => asked.push({ resolve, reject }));
        const client = createClient({
          transport,
          clock,
          info: { name: "host", version: "1" },
          inputs: { elicitForm: wait, listRoots: wait },
          maxRounds: 3,
          timeouts: { attemptMs: 5000, operationMs: 20_000 },
          onEvent: (event) => events.push(event),
        });
        const calls: { controller: AbortController; settlements: number; over: Promise<unknown> }[] = [];
        const pick = <T>(list: readonly T[], index: number) => list[index % Math.max(1, list.length)];
        for (const each of actions) {
          if (each.do === "call") {
            const controller = new AbortController();
            if (each.aborted) controller.abort();
            const call = { controller, settlements: 0, over: Promise.resolve() as Promise<unknown> };
            const count = () => call.settlements++;
            call.over = client
              .callTool(`t${calls.length}`, {}, { signal: controller.signal, onProgress: () => {} })
              .then(count, count);
            calls.push(call);
          } else if (each.do === "wait") await clock.advance(each.ms);
          else if (each.do === "throw") throwOnce();
          else if (each.do === "abort") pick(calls, each.at)?.controller.abort();
          else if (each.do === "answer") {
            const handler = pick(asked, each.at);
            if (each.how === "throw") handler?.reject(new Error("no"));
            else if (each.how === "nonsense") handler?.resolve(7 as never);
            else handler?.resolve({ action: each.how, content: { ok: true }, roots: [] } as never);
          } else {
            const exchange = pick(pending(), each.at);
            if (exchange === undefined) continue;
            const { request, sink } = exchange;
            exchange.over = each.do !== "progress";
            if (each.do === "progress") {
              const params = { progressToken: request.id, progress: 1 };
              sink.notification({ kind: "notification", method: "notifications/progress", params });
            } else if (each.do === "complete")
              sink.response({ kind: "result", id: request.id, result: complete("x") });
            else if (each.do === "malformed")
              sink.response({ kind: "result", id: request.id, result: { resultType: 1 } });
            else if (each.do === "error") {
              sink.response({ kind: "error", id: request.id, error: { code: -32603, message: "no" } });
            } else if (each.do === "ask") {
              sink.response({ kind: "result", id: request.id, result: inputRequired(QUESTIONS[each.kind]) });
            } else if (each.do === "fail") {
              const { delivery, retryAfterMs } = each;
              const error = new ConnectionLostError("lost", delivery);
              sink.failure({ delivery, error, ...(retryAfterMs !== undefined && { retryAfterMs }) });
            }
          }
          await settled();
        }
        await clock.advance(100_000);
        await Promise.all(calls.map(({ over }) => over));
        expect(calls.every(({ settlements }) => settlements === 1)).toBe(true);
        expect(new Set(sent.map(({ id }) => id)).size).toBe(sent.length);
        expect(client.operations).toEqual([]);
        expect(pending()).toEqual([]);
        expect(clock.timers).toBe(0);
        // After its end an operation sends nothing.
        const ended = new Set<number>();
        for (const event of events) {
          if (event.type === "operation.ended") {
            expect(ended.has(event.operationId)).toBe(false);
            ended.add(event.operationId);
          } else if ("operationId" in event && event.type !== "operation.late") {
            expect([event.type, ended.has(event.operationId)]).toEqual([event.type, false]);
          }
        }
        // Each request carries the params of its own call and nothing of another's.
        for (const { body, name } of sent) {
          const { params } = JSON.parse(body);
          expect([params.name, params.arguments]).toEqual([name, {}]);
        }
        await client.close();
      }),
      { numRuns: 150 },
    );
    await settled();
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  });
});

describe("automatic and manual mode", () => {
  const question = fc.record(
    {
      inputRequests: fc.dictionary(
        fc.oneof(fc.string(), fc.constantFrom("__proto__", "", "constructor")),
        fc.constantFrom(form, listRoots()),
        { maxKeys: 3 },
      ),
      requestState: fc.string({ unit: "binary" }),
    },
    { requiredKeys: [] },
  );
  const asks = ({ inputRequests, requestState }: { inputRequests?: unknown; requestState?: unknown }) =>
    inputRequests !== undefined || requestState !== undefined;

  it("MRTR-20 MRTR-06: send the same frames but for ids, for any sequence of rounds", async () => {
    const answer = (key: string, { method }: { method: string }) =>
      method === "roots/list" ? { roots: [], key } : { action: "accept", content: { ok: true }, key };
    await fc.assert(
      fc.asyncProperty(
        fc.array(question.filter(asks), { maxLength: 5 }),
        fc.dictionary(fc.string(), fc.jsonValue()),
        async (rounds, args) => {
          const script = [...rounds.map((round) => inputRequired(round)), complete("done")];
          const frames: string[][] = [];
          for (const mode of ["automatic", "manual"] as const) {
            const peer = createScriptedPeer(script);
            const clock = manualClock();
            const client = createClient({
              transport: peer.memory(),
              clock,
              info: { name: "host", version: "1" },
              inputs: {
                elicitForm: (_params, { key }) => answer(key, form as never) as never,
                listRoots: ({ key }) => answer(key, listRoots() as never) as never,
              },
            });
            if (mode === "automatic") {
              const call = client.request("tools/call", { name: "t", arguments: args });
              await clock.advance(60_000);
              await call;
            } else {
              let outcome = await client.begin("tools/call", { name: "t", arguments: args });
              while (outcome.status === "input_required") {
                const entries = Object.entries(outcome.inputRequests ?? {});
                const given = Object.fromEntries(entries.map(([key, entry]) => [key, answer(key, entry)]));
                // As JSON, as it would be stored.
                const stored: unknown = JSON.parse(JSON.stringify(outcome.continuation));
                outcome = await client.resume(stored, given);
              }
            }
            frames.push(peer.received.map(withoutIds));
            await client.close();
            await peer.close();
          }
          expect(frames[1]).toEqual(frames[0]);
          expect(frames[0]).toHaveLength(rounds.length + 1);
        },
      ),
      { numRuns: 100 },
    );
  });
});
