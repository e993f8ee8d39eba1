import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createClient } from "../../src/client.ts";
import type { CallOptions } from "../../src/client-options.ts";
import { ConnectionLostError } from "../../src/errors.ts";
import type { RallyEvent } from "../../src/events.ts";
import type { InputHandlers } from "../../src/inputs.ts";
import type { Script } from "../../src/testing/peer-types.ts";
import { complete, elicitForm, inputRequired } from "../../src/testing/replies.ts";
import type { ExchangeSink, Transport } from "../../src/transport.ts";
import { BINDINGS, httpJson, memory, type RigOptions } from "../support/bindings.ts";
import { manualClock, settled } from "../support/clocks.ts";
import { errorOf, expectAtRest, textOf } from "../support/outcomes.ts";

// Whatever a callback of the host does, no rejection goes unhandled and no error uncaught.

const stray: unknown[] = [];
const note = (error: unknown) => stray.push(error);

beforeEach(() => {
  process.on("unhandledRejection", note);
  process.on("uncaughtException", note);
});
afterEach(async () => {
  await settled();
  process.off("unhandledRejection", note);
  process.off("uncaughtException", note);
  expect(stray.splice(0)).toEqual([]);
});

const FAULTS: [title: string, fault: () => never][] = [
  [
    "throws",
    () => {
      throw new Error("a fault of the host");
    },
  ],
  ["rejects", () => Promise.reject(new Error("a fault of the host")) as never],
  [
    "gives a thenable that fails",
    () =>
      ({
        // biome-ignore lint/suspicious/noThenProperty: a thenable is what is tried
        then: (_resolve: unknown, reject: (error: unknown) => void) =>
          reject(new Error("a fault of the host")),
      }) as never,
  ],
];

/** Tells everything that can be told, asks once, and completes. */
const talkative: Script = ({ id, params }, exchange) => {
  exchange.notify("notifications/progress", { progressToken: id, progress: 1 });
  exchange.notify("notifications/message", { level: "info", data: 1 });
  exchange.notify("notifications/tools/list_changed");
  if ("inputResponses" in params) exchange.result(complete("done"));
  else exchange.result(inputRequired({ inputRequests: { k: elicitForm("?") } }));
};
const declining: InputHandlers = { elicitForm: () => ({ action: "decline" }) };

for (const { name, open } of BINDINGS) {
  describe(`observers over ${name}`, () => {
    for (const [title, fault] of FAULTS) {
      it(`SAF-02: an observer that ${title} changes nothing`, async () => {
        const rig = await open(talkative, {
          onEvent: fault,
          onLog: fault,
          onNotification: fault,
          inputs: declining,
        });
        const options: CallOptions = { onProgress: fault, onLog: fault, logLevel: "info" };
        expect(textOf(await rig.client.callTool("t", {}, options))).toBe("done");
        expectAtRest(rig);
      });
    }

    it("SAF-02 B178: close() before a caller could attach a handler leaves nothing unhandled", async () => {
      const rig = await open(() => {});
      const calls = [1, 2, 3].map(() => rig.client.callTool("t"));
      await rig.client.close();
      await settled();
      for (const call of calls) expect((await errorOf(call)).code).toBe("closed");
      expect((await errorOf(rig.client.callTool("t"))).code).toBe("closed");
    });
  });
}

describe("callbacks with a say", () => {
  for (const [title, fault] of FAULTS) {
    it(`SAF-02 MRTR-14: a handler that ${title} fails its call with the cause`, async () => {
      const rig = await memory.open(talkative, { inputs: { elicitForm: fault } });
      const error = await errorOf(rig.client.callTool("t"));
      expect(error).toMatchObject({ code: "input", cause: { message: "a fault of the host" } });
    });

    it(`SAF-02: a meta function that ${title} fails its call, and nothing is sent`, async () => {
      const rig = await memory.open(talkative, { meta: fault });
      expect(await errorOf(rig.client.callTool("t"))).toMatchObject({ code: "usage", path: "meta" });
      expect(rig.peer.received).toEqual([]);
    });

    it(`SAF-02 B179: a token function that ${title} fails its call`, async () => {
      const rig = await httpJson.open(talkative, { http: { token: fault }, reissue: { max: 0 } });
      expect(await errorOf(rig.client.callTool("t"))).toMatchObject({
        code: "connect",
        delivery: "not-sent",
      });
      expect(rig.peer.received).toEqual([]);
    });
  }

  it("SAF-02: a handler whose answer bites when it is looked at fails its call", async () => {
    const biting: unknown[] = [
      new Proxy({}, { get: () => fail(), ownKeys: () => fail(), getOwnPropertyDescriptor: () => fail() }),
      Object.defineProperty({}, "action", { get: fail, enumerable: true }),
      { action: "accept", content: Object.defineProperty({}, "ok", { get: fail, enumerable: true }) },
      { action: "decline", _meta: { toJSON: fail } },
    ];
    function fail(): never {
      throw new Error("a fault of the host");
    }
    for (const answer of biting) {
      const rig = await memory.open(talkative, { inputs: { elicitForm: () => answer as never } });
      expect((await errorOf(rig.client.callTool("t"))).code).toBe("input");
      expectAtRest(rig);
    }
  });

  it("SAF-02: a validator that fails fails the call that needs it", async () => {
    const schema = { type: "object", properties: { a: { type: "string" } }, not: { required: ["b"] } };
    for (const [, fault] of FAULTS) {
      const rig = await memory.open(inputRequired({ inputRequests: { k: elicitForm("?", schema) } }), {
        inputs: { elicitForm: () => ({ action: "accept", content: { a: "x" } }) },
        validator: { compile: fault } as never,
      });
      expect((await errorOf(rig.client.callTool("t"))).code).toBe("input");
    }
  });
});

describe("calls from inside", () => {
  const twoRounds = (): RigOptions => ({ inputs: declining });

  for (const what of ["abort", "close", "call"] as const) {
    it(`SAF-02: ${what} from inside any event leaves each call with one end`, async () => {
      let last = 1;
      for (let at = 0; at < last; at++) {
        let count = 0;
        const controller = new AbortController();
        const inner: Promise<unknown>[] = [];
        const onEvent = (_event: RallyEvent) => {
          if (count++ !== at) return;
          if (what === "abort") controller.abort();
          else if (what === "close") inner.push(rig.client.close());
          else inner.push(rig.client.callTool("inner"));
        };
        const rig = await memory.open(talkative, { ...twoRounds(), onEvent });
        const options = { signal: controller.signal, onProgress: () => {} };
        const code = await rig.client.callTool("t", {}, options).then(
          (result) => textOf(result),
          (error) => error.code,
        );
        const allowed = { abort: ["cancelled", "done"], close: ["closed", "done"], call: ["done"] }[what];
        expect(allowed).toContain(code);
        await Promise.all(inner);
        expectAtRest(rig);
        last = Math.max(last, count);
        await rig.close();
      }
      expect(last).toBeGreaterThan(10);
    });
  }

  it("SAF-02: an abort from inside meta, a handler, progress and a log entry sends nothing more", async () => {
    const places: ((abort: () => void) => RigOptions & { call?: CallOptions })[] = [
      (abort) => ({ ...twoRounds(), meta: () => ({ aborted: abort() }) }),
      (abort) => ({ inputs: { elicitForm: () => ({ action: "decline", _meta: { aborted: abort() } }) } }),
      (abort) => ({ ...twoRounds(), call: { onProgress: abort } }),
      (abort) => ({ ...twoRounds(), call: { onLog: abort, logLevel: "info" } }),
    ];
    for (const { open, name } of BINDINGS) {
      for (const [at, place] of places.entries()) {
        const controller = new AbortController();
        const { call, ...options } = place(() => controller.abort());
        const rig = await open(talkative, options);
        const error = await errorOf(rig.client.callTool("t", {}, { ...call, signal: controller.signal }));
        expect([name, at, error.code]).toEqual([name, at, "cancelled"]);
        await settled();
        expect(rig.peer.requests.length).toBeLessThanOrEqual(1);
        expectAtRest(rig);
        await rig.close();
      }
    }
  });
});

describe("a transport that breaks its contract", () => {
  const broken = (over: Partial<Transport>): Transport => ({
    name: "broken",
    peer: "broken",
    attach: () => {},
    exchange: () => ({ cancel: () => {} }),
    close: async () => {},
    ...over,
  });
  const info = { name: "host", version: "1" };

  it("SAF-02 B179: one that throws counts as not sent, and leaves nothing behind", async () => {
    const clock = manualClock();
    const transport = broken({
      exchange: () => {
        throw new Error("send failed");
      },
    });
    const client = createClient({ transport, info, clock, reissue: { max: 0 } });
    const error = await errorOf(client.callTool("t"));
    expect(error).toMatchObject({ code: "connect", delivery: "not-sent", cause: { message: "send failed" } });
    expect([client.operations.length, clock.timers]).toEqual([0, 0]);
  });

  it("SAF-02: one that answers before it returns, answers twice, or throws at a cancel does no harm", async () => {
    const result = { kind: "result", id: 1, result: complete("at once") } as const;
    const transport = broken({
      exchange: (_request, sink) => {
        sink.response(result);
        sink.response(result);
        sink.notification({ kind: "notification", method: "notifications/progress", params: {} });
        return {
          cancel: () => {
            throw new Error("cancel failed");
          },
        };
      },
    });
    const events: RallyEvent[] = [];
    const client = createClient({ transport, info, onEvent: (event) => events.push(event) });
    expect(textOf(await client.callTool("t"))).toBe("at once");
    expect(events.filter(({ type }) => type === "operation.ended")).toHaveLength(1);
    expect(events.some(({ type }) => type === "operation.late")).toBe(true);

    const silent = broken({
      exchange: () => ({
        cancel: () => {
          throw new Error("cancel failed");
        },
      }),
    });
    const controller = new AbortController();
    const other = createClient({ transport: silent, info });
    const call = errorOf(other.callTool("t", {}, { signal: controller.signal }));
    controller.abort();
    expect((await call).code).toBe("cancelled");
  });

  it("MRTR-07 SAF-02: one that goes on about an attempt that has ended does not end the next one", async () => {
    const clock = manualClock();
    const sinks: ExchangeSink[] = [];
    const transport = broken({
      exchange: (_request, sink) => {
        sinks.push(sink);
        return { cancel: () => {} };
      },
    });
    const client = createClient({ transport, info, clock, reissue: { backoffMs: 0 } });
    const call = client.callTool("t");
    sinks[0]?.failure({ delivery: "unknown", error: new ConnectionLostError("lost", "unknown") });
    await clock.advance(0);
    expect(sinks).toHaveLength(2);
    sinks[0]?.response({ kind: "result", id: 1, result: complete("of the first attempt") });
    sinks[0]?.failure({ delivery: "unknown", error: new ConnectionLostError("lost", "unknown") });
    await clock.advance(0);
    expect([sinks.length, client.operations[0]?.attempt]).toEqual([2, 2]);
    sinks[1]?.response({ kind: "result", id: 2, result: complete("of the second") });
    expect(textOf(await call)).toBe("of the second");
  });

  it("SAF-02: one whose close fails says so to the caller of close alone", async () => {
    const client = createClient({
      transport: broken({ close: () => Promise.reject(new Error("no")) }),
      info,
    });
    const call = errorOf(client.callTool("t"));
    await expect(client.close()).rejects.toThrow("no");
    expect((await call).code).toBe("closed");
  });
});
