import { describe, expect, it } from "vitest";
import type { HttpStatusError, TransportError } from "../../src/errors.ts";
import type { Script, Step } from "../../src/testing/peer-types.ts";
import { complete, elicitForm, inputRequired } from "../../src/testing/replies.ts";
import type { TokenCall } from "../../transports/http.ts";
import { BINDINGS, HTTP_AND_STDIO, httpJson, memory, type RigOptions, stdio } from "../support/bindings.ts";
import { manualClock } from "../support/clocks.ts";
import { paramsText, retryParts } from "../support/frames.ts";
import { errorOf, expectAtRest, textOf } from "../support/outcomes.ts";

// What happens to an attempt that was lost or refused: again, or not, and with what.

const ask = inputRequired({ inputRequests: { k: elicitForm("?") }, requestState: "s" });
const answered = { inputResponses: { k: { action: "decline" } }, requestState: "s" };
const lose: Step = (_request, exchange) => exchange.crash();

/** Options with a handler that counts how often it ran. */
function counting(options: RigOptions = {}): { asked: () => number; options: RigOptions } {
  let asked = 0;
  const elicitForm_ = () => {
    asked++;
    return { action: "decline" as const };
  };
  return {
    asked: () => asked,
    options: { reissue: { backoffMs: 1 }, ...options, inputs: { elicitForm: elicitForm_ } },
  };
}

for (const { name, open } of BINDINGS) {
  describe(`a loss over ${name}`, () => {
    it("MRTR-18 B014: starts the round trip over from the original request, with new ids", async () => {
      const { asked, options } = counting();
      const rig = await open([ask, lose, ask, complete("done")], options);
      expect(textOf(await rig.client.callTool("t", { x: 1 }))).toBe("done");
      expect(retryParts(rig.peer)).toEqual([{}, answered, {}, answered]);
      expect(asked()).toBe(2);
      expect(new Set(rig.peer.requests.map(paramsText)).size).toBe(1);
      expectAtRest(rig);
    });

    it("MRTR-18 B086: beyond the budget is an error that says the outcome is unknown", async () => {
      const rig = await open(lose, { reissue: { max: 2, backoffMs: 1 } });
      const error = await errorOf<TransportError>(rig.client.callTool("t"));
      expect(error).toMatchObject({ code: "connection-lost", delivery: "unknown" });
      expect(error.operation).toMatchObject({ round: 1, attempt: 3 });
      expect(rig.peer.requests).toHaveLength(3);
      expectAtRest(rig);
    });
  });
}

describe("the policy", () => {
  const cases: { title: string; options: RigOptions; call?: object; method?: string; sent: number }[] = [
    { title: "always", options: { reissue: { backoffMs: 0 } }, sent: 3 },
    { title: "never", options: { reissue: "never" }, sent: 1 },
    { title: "a budget of 0", options: { reissue: { max: 0 } }, sent: 1 },
    {
      title: "safe, a tool of which nothing is known",
      options: { reissue: { policy: "safe", backoffMs: 0 } },
      sent: 1,
    },
    {
      title: "safe, a call that says repeatable",
      options: { reissue: { policy: "safe", backoffMs: 0 } },
      call: { repeatable: true },
      sent: 3,
    },
    {
      title: "safe, annotations that are not trusted",
      options: { reissue: { policy: "safe", backoffMs: 0 } },
      call: { tool: { name: "t", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } } },
      sent: 1,
    },
    ...["readOnlyHint", "idempotentHint"].map((hint) => ({
      title: `safe, a trusted ${hint}`,
      options: { reissue: { policy: "safe", backoffMs: 0 }, trustAnnotations: true } as RigOptions,
      call: { tool: { name: "t", inputSchema: { type: "object" }, annotations: { [hint]: true } } },
      sent: 3,
    })),
    {
      title: "safe, another method than tools/call",
      options: { reissue: { policy: "safe", backoffMs: 0 } },
      method: "prompts/get",
      sent: 3,
    },
    { title: "never on the call, over always", options: {}, call: { reissue: "never" }, sent: 1 },
  ];
  for (const { title, options, call = {}, method, sent } of cases) {
    it(`MRTR-18 B100 B106: ${title}: ${sent} request(s)`, async () => {
      const rig = await memory.open(lose, options);
      const pending =
        method === undefined
          ? rig.client.callTool("t", {}, call)
          : rig.client.request(method, { name: "p" }, call);
      expect(await errorOf(pending)).toMatchObject({ code: "connection-lost", delivery: "unknown" });
      expect(rig.peer.requests).toHaveLength(sent);
    });
  }

  const unknown = [{ reissue: "maybe" }, { reissue: { policy: "maybe" } }] as unknown as Pick<
    RigOptions,
    "reissue"
  >[];
  it.each(unknown)("MRTR-18: %j is refused, by a client and by a call", async (options) => {
    const refusal = {
      code: "usage",
      path: "reissue.policy",
      message: 'reissue.policy must be "always", "safe" or "never", not "maybe"',
    };
    await expect(memory.open(lose, options)).rejects.toMatchObject(refusal);
    const rig = await memory.open(lose);
    expect(await errorOf(rig.client.callTool("t", {}, options))).toMatchObject(refusal);
    expect(rig.peer.requests).toHaveLength(0);
  });

  it("MRTR-11 MRTR-18: the count of rounds survives a restart", async () => {
    const script: Script = (_request, exchange) =>
      exchange.index === 2 ? exchange.drop() : exchange.result(ask);
    const { options } = counting({ maxRounds: 4, maxRepeats: 100 });
    const rig = await memory.open(script, options);
    expect(await errorOf(rig.client.callTool("t"))).toMatchObject({ code: "round-limit", rounds: 4 });
    // Two rounds, the loss, then the two rounds that are left and the question too many.
    expect(rig.peer.requests).toHaveLength(6);
  });

  it("MRTR-18: cancelling in the pause before a re-issue rejects at once", async () => {
    const clock = manualClock();
    const rig = await memory.open(lose, { clock });
    const controller = new AbortController();
    const call = errorOf(rig.client.callTool("t", {}, { signal: controller.signal }));
    await clock.advance(0);
    expect(rig.client.operations[0]?.phase).toBe("pausing");
    controller.abort();
    expect((await call).code).toBe("cancelled");
    await clock.advance(60_000);
    expect([rig.peer.requests.length, clock.timers]).toEqual([1, 0]);
  });
});

describe("a refusal over HTTP", () => {
  it("MRTR-18 B104: with Retry-After is sent again in the same round, its inputs kept", async () => {
    const clock = manualClock();
    const { asked, options } = counting({ clock });
    const busy: Step = (_request, exchange) =>
      exchange.http({
        status: exchange.index === 1 ? 503 : 429,
        headers: { "retry-after": "2" },
        body: "busy",
      });
    const rig = await httpJson.open([ask, busy, busy, complete("done")], options);
    const call = rig.client.callTool("t");
    for (const sent of [2, 3]) {
      await rig.peer.waitFor(sent);
      while (rig.client.operations[0]?.phase !== "pausing") await clock.advance(0);
      await clock.advance(1900);
      expect(rig.peer.requests).toHaveLength(sent);
      await clock.advance(200);
    }
    expect(textOf(await call)).toBe("done");
    expect(retryParts(rig.peer)).toEqual([{}, answered, answered, answered]);
    expect(asked()).toBe(1);
    expectAtRest(rig);
  });

  it("MRTR-18 B104: with Retry-After every time, the budget is used up", async () => {
    const busy: Step = (_request, exchange) =>
      exchange.http({ status: 503, headers: { "retry-after": "0" } });
    const rig = await httpJson.open(busy, { reissue: { max: 3, backoffMs: 0 } });
    expect(await errorOf(rig.client.callTool("t"))).toMatchObject({ code: "http-status", status: 503 });
    expect(rig.peer.requests).toHaveLength(4);
  });

  it("MRTR-18 B104: without a Retry-After, or one behind the deadline, fails at once with the status", async () => {
    const rig = await httpJson.open([
      (_request, exchange) => exchange.http({ status: 503, body: "down" }),
      (_request, exchange) => exchange.http({ status: 429, headers: { "retry-after": "86400" } }),
    ]);
    expect(await errorOf(rig.client.callTool("t"))).toMatchObject({
      code: "http-status",
      status: 503,
      body: "down",
    });
    const late = await errorOf<HttpStatusError>(rig.client.callTool("t", {}, { operationMs: 60_000 }));
    expect(late).toMatchObject({ code: "http-status", status: 429 });
  });

  const unauthorized: Step = (_request, exchange) =>
    exchange.http({ status: 401, headers: { "www-authenticate": 'Bearer error="invalid_token"' } });
  const forbidden: Step = (_request, exchange) =>
    exchange.http({
      status: 403,
      headers: { "www-authenticate": 'Bearer error="insufficient_scope", scope="x:write"' },
    });
  for (const [title, refuse, status] of [
    ["a 401", unauthorized, 401],
    ["a 403 for want of scope", forbidden, 403],
  ] as const) {
    it(`MRTR-19 B166: ${title} to a retry asks the token function once, keeps the inputs, and asks no user again`, async () => {
      const calls: TokenCall[] = [];
      const token = (call: TokenCall) => {
        calls.push(call);
        return call.challenge === undefined ? "old-token" : "new-token";
      };
      const { asked, options } = counting({ http: { token } });
      const rig = await httpJson.open([ask, refuse, complete("done")], options);
      const result = await rig.client.callTool("t", {}, { context: "the user" });
      expect(textOf(result)).toBe("done");
      expect(retryParts(rig.peer)).toEqual([{}, answered, answered]);
      expect(rig.peer.requests.map(({ headers }) => headers?.authorization)).toEqual([
        "Bearer old-token",
        "Bearer old-token",
        "Bearer new-token",
      ]);
      expect(calls.map(({ challenge, context }) => [challenge?.status, context])).toEqual([
        [undefined, "the user"],
        [undefined, "the user"],
        [status, "the user"],
      ]);
      expect(asked()).toBe(1);
      expectAtRest(rig);
    });

    it(`MRTR-19 B166: ${title} again fails with the status and the challenge`, async () => {
      const rig = await httpJson.open(refuse, { http: { token: () => "token" } });
      const error = await errorOf<HttpStatusError>(rig.client.callTool("t"));
      expect(error).toMatchObject({ code: "http-status", status, challenge: { scheme: "bearer" } });
      expect(rig.peer.requests).toHaveLength(2);
    });

    it(`MRTR-19: ${title} without a token function fails at once`, async () => {
      const rig = await httpJson.open(refuse);
      expect(await errorOf(rig.client.callTool("t"))).toMatchObject({ code: "http-status", status });
      expect(rig.peer.requests).toHaveLength(1);
    });
  }

  it("MRTR-19: each kind once in a round, and anew in the next round", async () => {
    const rig = await httpJson.open(
      [unauthorized, forbidden, ask, unauthorized, forbidden, complete("done")],
      counting({ http: { token: () => "token" } }).options,
    );
    expect(textOf(await rig.client.callTool("t"))).toBe("done");
    expect(retryParts(rig.peer)).toEqual([{}, {}, {}, answered, answered, answered]);
  });

  it("MRTR-19 B169: an error of the token function is the cause of the call's", async () => {
    const fault = new Error("the key store is locked");
    const token = ({ challenge }: TokenCall) => {
      if (challenge !== undefined) throw fault;
      return "token";
    };
    const rig = await httpJson.open(unauthorized, { http: { token }, reissue: { max: 0 } });
    const error = await errorOf(rig.client.callTool("t"));
    const causes = [];
    for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) causes.push(cause);
    expect(causes).toContain(fault);
    expect(rig.peer.requests).toHaveLength(1);
  });

  it("MRTR-19: cancel and deadline hold while the token function is asked", async () => {
    const hanging = () => new Promise<string>(() => {});
    const token = ({ challenge }: TokenCall) => (challenge === undefined ? "token" : hanging());
    const clock = manualClock();
    const rig = await httpJson.open(unauthorized, { http: { token }, clock });
    const controller = new AbortController();
    const cancelled = errorOf(rig.client.callTool("t", {}, { signal: controller.signal }));
    const late = errorOf(rig.client.callTool("t", {}, { operationMs: 1000 }));
    await rig.peer.waitFor(2);
    while (rig.client.operations.some(({ attempt }) => attempt < 2)) await clock.advance(0);
    controller.abort();
    expect((await cancelled).code).toBe("cancelled");
    await clock.advance(1000);
    expect((await late).code).toBe("timeout");
    expect(rig.peer.requests).toHaveLength(2);
  });
});

describe("many refusals at once", () => {
  for (const { name, open } of HTTP_AND_STDIO) {
    it(`MRTR-19 VER-01 over ${name}: each operation recovers for itself`, async () => {
      const script: Script = ({ meta }, exchange) => {
        const version = meta["io.modelcontextprotocol/protocolVersion"];
        if (version === "b") exchange.result(complete("done"));
        else exchange.error(-32022, "no", { supported: ["b"] });
      };
      const discovery = { supportedVersions: ["a"], capabilities: {} } as never;
      const rig = await open(script, { discovery, protocolVersions: ["a", "b"] });
      const results = await Promise.all(Array.from({ length: 10 }, () => rig.client.callTool("t")));
      expect(results.map(textOf)).toEqual(Array(10).fill("done"));
      expectAtRest(rig);
    });
  }
});

describe("a link that is lost while it is being asked who is there", () => {
  it("MRTR-18: a call that never left says so, though the probe's own fate is unknown", async () => {
    const crash: Script = (_request, exchange) => exchange.crash();
    const options: RigOptions = { reissue: "never", peerOptions: { discover: false } };
    const rig = await stdio.open(crash, options);
    const error = (await errorOf(rig.client.callTool("t", {}, { reissue: { max: 0 } }))) as TransportError;
    expect(error).toMatchObject({ code: "connection-lost", delivery: "not-sent" });
    expect(rig.peer.requests.map(({ method }) => method)).toEqual(["server/discover"]);
    expectAtRest(rig);
  });
});
