import { describe, expect, it } from "vitest";
import type { InputHandlers } from "../../src/inputs.ts";
import type { Script } from "../../src/testing/peer-types.ts";
import { complete, elicitForm, inputRequired } from "../../src/testing/replies.ts";
import { BINDINGS, stdio, webSocket } from "../support/bindings.ts";
import { paramsText, retryParts } from "../support/frames.ts";
import { errorOf, expectAtRest, textOf, until } from "../support/outcomes.ts";
import { ACCEPT, SCENARIOS } from "./mrtr-scenarios.ts";

/** The same handlers, counted. */
function counted(inputs: InputHandlers = {}): { inputs: InputHandlers; asked: () => number } {
  let asked = 0;
  const entries = Object.entries(inputs).map(([kind, handler]) => [
    kind,
    (...args: never[]) => {
      asked++;
      return (handler as (...args: never[]) => unknown)(...args);
    },
  ]);
  return { inputs: Object.fromEntries(entries), asked: () => asked };
}

for (const { name, open } of BINDINGS) {
  describe(`MRTR over ${name}`, () => {
    for (const { title, script, inputs, options, meanwhile, ends, sent, asked } of SCENARIOS) {
      it(title, async () => {
        const handlers = counted(inputs);
        const rig = await open(script, { inputs: handlers.inputs, reissue: { backoffMs: 1 } });
        const controller = new AbortController();
        const call = rig.client.callTool("t", { x: [1, "ü"] }, { ...options, signal: controller.signal });
        const over = "text" in ends ? call.then(textOf) : errorOf(call);
        await meanwhile?.(rig, () => controller.abort());
        if ("text" in ends) expect(await over).toBe(ends.text);
        else expect(await over).toMatchObject({ code: ends.code });
        expectAtRest(rig);
        expect(retryParts(rig.peer)).toEqual(sent);
        expect(handlers.asked()).toBe(asked);
        expect(new Set(rig.peer.requests.map(paramsText)).size).toBeLessThanOrEqual(1);
        await rig.close();
        const ended = rig.events.filter(({ type }) => type === "operation.ended");
        expect(ended).toHaveLength(1);
      });
    }

    it("parallel operations of the same tool with the same keys, interleaved, each with its own fate", async () => {
      const script: Script = ({ params }, exchange) => {
        const { n } = params.arguments as { n: number };
        const state = String(params.requestState ?? "");
        if (state === "" || (state === `${n}:1` && n % 3 > 0)) {
          const round = state === "" ? 1 : 2;
          exchange.result(
            inputRequired({ inputRequests: { ok: elicitForm(`${n}?`) }, requestState: `${n}:${round}` }),
          );
        } else if (n % 3 === 1) exchange.error(-32603, `error ${n}`);
        else exchange.result(complete(`${n} ${JSON.stringify(params.inputResponses)}`));
      };
      const rig = await open(script);
      const ends = await Promise.all(
        Array.from({ length: 30 }, (_, n) => {
          const controller = new AbortController();
          const inputs: InputHandlers = {
            elicitForm: async ({ message }, { round }) => {
              expect(message).toBe(`${n}?`);
              await new Promise((next) => setTimeout(next, (n * 5) % 7));
              if (n % 10 === 2 && round === 2) controller.abort();
              return { ...ACCEPT, _meta: { n, round } };
            },
          };
          return rig.client
            .callTool("t", { n }, { inputs, signal: controller.signal })
            .then(textOf, (error) => error.code);
        }),
      );
      for (const [n, end] of ends.entries()) {
        const answer = (round: number) => JSON.stringify({ ok: { ...ACCEPT, _meta: { n, round } } });
        if (n % 10 === 2 && n % 3 > 0) expect([n, end]).toEqual([n, "cancelled"]);
        else if (n % 3 === 1) expect([n, end]).toEqual([n, "rpc"]);
        else expect(end).toBe(`${n} ${answer(n % 3 === 0 ? 1 : 2)}`);
      }
      expectAtRest(rig);
    });
  });
}

for (const { name, open } of [stdio, webSocket]) {
  it(`MRTR-18 over ${name}: a link that is lost while a handler runs costs nothing: the retry goes over the next one`, async () => {
    let crash: () => void = () => {};
    let release: (answer: typeof ACCEPT) => void = () => {};
    const ask: Script = (_request, exchange) => {
      exchange.result(inputRequired({ inputRequests: { ok: elicitForm("OK?") }, requestState: "s" }));
      crash = () => exchange.crash();
    };
    const rig = await open([ask, complete("done")], {
      inputs: {
        elicitForm: () => {
          crash();
          return new Promise((resolve) => {
            release = resolve;
          });
        },
      },
    });
    const call = rig.client.callTool("t");
    const isDown = () => rig.events.some((event) => event.type === "link.changed" && event.state === "down");
    await until(isDown, "the link to go down");
    release(ACCEPT);
    expect(textOf(await call)).toBe("done");
    expect(retryParts(rig.peer)).toEqual([{}, { inputResponses: { ok: ACCEPT }, requestState: "s" }]);
    expect(rig.peer.requests.map(({ link }) => link)).toEqual([0, 1]);
    expectAtRest(rig);
  });
}
