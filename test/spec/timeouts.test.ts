import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import type { TimeoutError } from "../../src/errors.ts";
import type { PeerExchange, Script } from "../../src/testing/peer-types.ts";
import { complete, elicitForm, inputRequired } from "../../src/testing/replies.ts";
import { HTTP_AND_STDIO, httpJson, httpSse, memory, stdio } from "../support/bindings.ts";
import { manualClock, settled } from "../support/clocks.ts";
import { errorOf, expectAtRest, textOf } from "../support/outcomes.ts";

// The bounds of time, on a clock that only moves when it is told to, and then on the real one.

const silent: Script = () => {};

/** Keeps the exchange of each request, so that a test decides when something comes. */
function held(): { script: Script; exchanges: PeerExchange[] } {
  const exchanges: PeerExchange[] = [];
  return { exchanges, script: (_request, exchange) => void exchanges.push(exchange) };
}

describe("the bounds", () => {
  const cases: { title: string; options: object; expected: object; at: number }[] = [
    {
      title: "B044: the default is armed",
      options: {},
      expected: { scope: "attempt", limitMs: 60_000 },
      at: 60_000,
    },
    {
      title: "attemptMs",
      options: { attemptMs: 100 },
      expected: { scope: "attempt", limitMs: 100 },
      at: 100,
    },
    {
      title: "B083: attemptMaxMs below attemptMs",
      options: { attemptMs: 1000, attemptMaxMs: 100 },
      expected: { scope: "attempt", limitMs: 100 },
      at: 100,
    },
    {
      title: "operationMs below attemptMs",
      options: { attemptMs: 1000, operationMs: 100 },
      expected: { scope: "operation", limitMs: 100 },
      at: 100,
    },
    { title: "operationMs of nothing", options: { operationMs: 0 }, expected: { scope: "operation" }, at: 1 },
  ];
  for (const { title, options, expected, at } of cases) {
    it(`TIM-01 ${title}: fails then and not before, cancels on the wire, and says where the time went`, async () => {
      const clock = manualClock();
      const unset = { attemptMs: undefined, attemptMaxMs: undefined };
      const rig = await memory.open(silent, { clock, timeouts: unset });
      const call = errorOf<TimeoutError>(rig.client.callTool("t", {}, options));
      await clock.advance(at - 2);
      expect(rig.client.operations).toHaveLength(1);
      await clock.advance(2);
      const error = await call;
      expect(error).toMatchObject({ code: "timeout", ...expected });
      expect(Math.abs(error.spent.totalMs - at)).toBeLessThanOrEqual(1);
      expect(error.spent.wireMs).toBe(error.spent.totalMs);
      expect(rig.peer.cancelled).toEqual([rig.peer.requests[0]?.id]);
      expect(clock.timers).toBe(0);
    });
  }

  it("TIM-01 B082: progress resets attemptMs when asked to, and attemptMaxMs never", async () => {
    const clock = manualClock();
    const { script, exchanges } = held();
    const rig = await memory.open(script, { clock });
    const options = { attemptMs: 100, attemptMaxMs: 250, resetOnProgress: true };
    const call = errorOf<TimeoutError>(rig.client.callTool("t", {}, options));
    await settled();
    for (let progress = 1; progress <= 4; progress++) {
      await clock.advance(60);
      exchanges[0]?.notify("notifications/progress", { progressToken: rig.peer.requests[0]?.id, progress });
    }
    expect(rig.client.operations).toHaveLength(1);
    await clock.advance(10);
    expect(await call).toMatchObject({
      scope: "attempt",
      limitMs: 250,
      spent: { totalMs: 250, silentMs: 10 },
    });
  });

  it("TIM-01: progress without resetOnProgress, and progress that does not increase, reset nothing", async () => {
    const clock = manualClock();
    const { script, exchanges } = held();
    const rig = await memory.open(script, { clock });
    const calls = [
      errorOf(rig.client.callTool("t", {}, { attemptMs: 100, onProgress: () => {} })),
      errorOf(rig.client.callTool("t", {}, { attemptMs: 100, resetOnProgress: true })),
    ];
    await settled();
    const tell = (at: number, progress: number) =>
      exchanges[at]?.notify("notifications/progress", { progressToken: rig.peer.requests[at]?.id, progress });
    for (const at of [0, 1]) tell(at, 1);
    await clock.advance(60);
    tell(0, 2);
    tell(1, 1);
    await clock.advance(40);
    for (const call of calls) expect((await call).code).toBe("timeout");
  });

  it("TIM-01: an attempt that timed out is not issued again, unless the host opted in", async () => {
    const clock = manualClock();
    const { script, exchanges } = held();
    const rig = await memory.open(script, { clock });
    const final = errorOf(rig.client.callTool("t", {}, { attemptMs: 100 }));
    await clock.advance(5000);
    expect((await final).code).toBe("timeout");
    expect(rig.peer.requests).toHaveLength(1);
    const again = rig.client.callTool(
      "t",
      {},
      { attemptMs: 100, reissue: { timeouts: true, max: 1, backoffMs: 0 } },
    );
    await clock.advance(100);
    expect(rig.peer.cancelled).toHaveLength(2);
    expect(rig.peer.requests).toHaveLength(3);
    exchanges[2]?.result(complete("second try"));
    expect(textOf(await again)).toBe("second try");
  });

  it("TIM-01: the time of each kind is told apart", async () => {
    const clock = manualClock();
    const { script, exchanges } = held();
    let answer: (value: { action: "decline" }) => void = () => {};
    const rig = await memory.open(script, {
      clock,
      inputs: {
        elicitForm: () =>
          new Promise((resolve) => {
            answer = resolve;
          }),
      },
    });
    const call = errorOf<TimeoutError>(rig.client.callTool("t", {}, { operationMs: 1000 }));
    await clock.advance(100);
    exchanges[0]?.result(inputRequired({ inputRequests: { k: elicitForm("?") } }));
    await clock.advance(300);
    answer({ action: "decline" });
    await settled();
    exchanges[1]?.result(inputRequired({ requestState: "s" }));
    await clock.advance(600);
    const { spent } = await call;
    expect(spent).toMatchObject({ totalMs: 1000, wireMs: 450, inputMs: 300, pauseMs: 250 });
  });

  it("TIM-01 CAN-03: a deadline that would pass in the pause before a re-issue ends the call with the loss", async () => {
    const clock = manualClock();
    const rig = await memory.open((_request, exchange) => exchange.drop(), { clock });
    const error = await errorOf(rig.client.callTool("t", {}, { operationMs: 50 }));
    expect(error).toMatchObject({ code: "connection-lost", delivery: "unknown" });
    expect(clock.timers).toBe(0);
  });
});

describe("on the wire", () => {
  for (const { name, open } of HTTP_AND_STDIO) {
    it(`TIM-01 B044 B092 over ${name}: a server that never answers costs attemptMs, and hears of the cancel`, async () => {
      const clock = manualClock();
      const rig = await open(silent, { clock });
      const call = errorOf<TimeoutError>(rig.client.callTool("t", {}, { attemptMs: 5000 }));
      await rig.peer.waitFor(1);
      await clock.advance(5000);
      const error = await call;
      expect(error).toMatchObject({ code: "timeout", scope: "attempt", limitMs: 5000 });
      await rig.peer.waitForCancelled(1);
      expectAtRest(rig);
    });
  }

  it("TIM-01 B089: headers and then silence is a timeout too, and says how long nothing was heard", async () => {
    const clock = manualClock();
    const rig = await httpSse.open(
      (_request, exchange) => exchange.notify("notifications/message", { data: 1 }),
      {
        clock,
      },
    );
    let call: Promise<TimeoutError> | undefined;
    await new Promise<void>((resolve) => {
      call = errorOf(rig.client.callTool("t", {}, { attemptMs: 5000, onLog: () => resolve() }));
    });
    await clock.advance(5000);
    const error = await call!;
    expect(error.code).toBe("timeout");
    expect(error.message).toContain("nothing was heard for the last 5000 ms");
    await rig.peer.waitForCancelled(1);
  });
});

describe("what is left behind", () => {
  const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;

  it("TIM-02 B181: 10,000 operations on one signal leave no listener and no timer", async () => {
    const script: Script = ({ params }, exchange) => {
      if (params.name === "ask" && !("inputResponses" in params)) {
        exchange.result(inputRequired({ inputRequests: { k: elicitForm("?") } }));
      } else if (params.name === "fail") exchange.error(-32603, "no");
      else exchange.result(complete("done"));
    };
    const rig = await memory.open(script, { inputs: { elicitForm: () => ({ action: "decline" }) } });
    const { signal } = new AbortController();
    const before = timers();
    const names = ["echo", "ask", "fail", "echo"];
    for (let batch = 0; batch < 20; batch++) {
      const calls = Array.from({ length: 500 }, (_, n) =>
        rig.client.callTool(names[n % 4]!, {}, { signal, operationMs: 1e6 }).catch(() => {}),
      );
      expect(getEventListeners(signal, "abort").length).toBeLessThanOrEqual(1);
      await Promise.all(calls);
    }
    expect(getEventListeners(signal, "abort")).toEqual([]);
    expect(timers()).toBe(before);
    expectAtRest({ ...rig, peer: { ...rig.peer, requests: [] } });
  }, 30_000);

  for (const { name, open } of [httpJson, stdio]) {
    it(`TIM-02 B181 over ${name}: 1,000 calls on one signal leave none either, and an abort ends all that are pending`, async () => {
      const rig = await open(({ params }, exchange) => {
        if (params.name !== "slow") exchange.result(complete("done"));
      });
      const controller = new AbortController();
      const { signal } = controller;
      await rig.client.callTool("warm-up");
      for (let batch = 0; batch < 20; batch++) {
        await Promise.all(Array.from({ length: 50 }, () => rig.client.callTool("t", {}, { signal })));
      }
      expect(getEventListeners(signal, "abort")).toEqual([]);
      const slow = Array.from({ length: 20 }, () => errorOf(rig.client.callTool("slow", {}, { signal })));
      await rig.peer.waitFor(1021);
      controller.abort();
      for (const call of slow) expect((await call).code).toBe("cancelled");
      expect(getEventListeners(signal, "abort")).toEqual([]);
      await rig.peer.waitForCancelled(20);
      await rig.close();
      expect(timers()).toBe(0);
    });
  }
});
