import { describe, expect, it } from "vitest";
import { HttpStatusError, UsageError } from "../../src/errors.ts";
import type { AuthChallenge } from "../../src/transport.ts";
import { type HttpTransportOptions, httpTransport, type TokenCall } from "../../transports/http.ts";
import { answerJson, ends, failureOf, responseOf, run, type Seen, setUp, startPeer } from "./http-peer.ts";

function refuse(status: number, challenge?: string | string[], body = ""): (seen: Seen) => void {
  return ({ res }) => {
    if (challenge !== undefined) res.setHeader("www-authenticate", challenge);
    res.writeHead(status, { "content-type": "application/json" });
    res.end(body);
  };
}

const CHALLENGE: AuthChallenge = { status: 401, scheme: "bearer", params: { error: "invalid_token" } };

describe("token", () => {
  it.each<[string, NonNullable<HttpTransportOptions["token"]>]>([
    ["a string", "abc"],
    ["a function", () => "abc"],
    ["a function that gives a promise", async () => "abc"],
  ])("%s becomes the Authorization header, in place of the host's own", async (_what, token) => {
    const { transport, peer } = await setUp(answerJson, {
      token,
      headers: { authorization: "Basic x", "x-a": "b" },
    });
    await responseOf(run(transport));
    expect(peer.seen[0]?.req.headers).toMatchObject({ authorization: "Bearer abc", "x-a": "b" });
  });

  it("an Authorization header of the host is sent when there is no token", async () => {
    const { transport, peer } = await setUp(answerJson, { headers: { Authorization: "Basic x" } });
    await responseOf(run(transport));
    expect(peer.seen[0]?.req.headers.authorization).toBe("Basic x");
  });

  it("a function is called once for every attempt, with context and challenge", async () => {
    const calls: TokenCall[] = [];
    const { transport, peer } = await setUp(answerJson, {
      token: (call) => {
        calls.push(call);
        return `t${calls.length}`;
      },
    });
    await responseOf(run(transport, { context: "ann" }));
    await responseOf(run(transport, { context: "bob", challenge: CHALLENGE }));
    expect(calls).toEqual([{ context: "ann" }, { context: "bob", challenge: CHALLENGE }]);
    expect(peer.seen.map(({ req }) => req.headers.authorization)).toEqual(["Bearer t1", "Bearer t2"]);
  });

  it("attempts of one context that met one challenge share a call of the function; others do not", async () => {
    const calls: TokenCall[] = [];
    const { transport, peer } = await setUp(answerJson, {
      token: async (call) => {
        calls.push(call);
        return `t${calls.length}`;
      },
    });
    const scope = {
      status: 403,
      scheme: "bearer",
      params: { error: "insufficient_scope", scope: "x:write" },
    };
    const running = [
      run(transport, { context: "ann", challenge: CHALLENGE, name: "1" }),
      run(transport, { context: "ann", challenge: { ...CHALLENGE }, name: "1" }),
      run(transport, { context: "ann", challenge: { ...CHALLENGE }, name: "1" }),
      run(transport, { context: "bob", challenge: CHALLENGE, name: "2" }),
      run(transport, { context: "ann", challenge: scope, name: "3" }),
      run(transport, { context: "ann", name: "4" }),
      run(transport, { context: "ann", name: "5" }),
    ];
    for (const one of running) await responseOf(one);
    expect(calls).toHaveLength(5);
    for (const { req } of peer.seen)
      expect(req.headers.authorization).toBe(`Bearer t${req.headers["mcp-name"]}`);

    await responseOf(run(transport, { context: "ann", challenge: CHALLENGE }));
    expect(calls).toHaveLength(6);
  });

  it("B169 SAF-02: shared calls that fail reject every attempt, with the cause", async () => {
    const cause = new Error("the store is locked");
    const { transport, peer } = await setUp(answerJson, { token: () => Promise.reject(cause) });
    const running = [
      run(transport, { challenge: CHALLENGE }),
      run(transport, { challenge: CHALLENGE }),
      run(transport),
    ];
    running[1]!.exchange.cancel("not waiting");
    for (const one of [running[0]!, running[2]!]) {
      expect(await failureOf(one)).toMatchObject({ delivery: "not-sent", error: { code: "connect", cause } });
    }
    expect(peer.seen).toHaveLength(0);
  });

  it.each<[string, () => unknown]>([
    [
      "throws",
      () => {
        throw new Error("no");
      },
    ],
    ["gives undefined", () => undefined],
    ["gives a number", () => 5],
    ["gives a promise of null", async () => null],
    ["gives an empty string", () => ""],
    ["gives a line break", () => "sekret\r\nX-Evil: 1"],
    ["gives a promise of a line break", async () => "sekret\n"],
    ["gives a space", () => "sekret two"],
    ["gives a character outside ASCII", () => "sekretć"],
  ])("SAF-01: a function that %s fails its call without showing the token", async (_what, token) => {
    const { transport, peer } = await setUp(answerJson, { token: token as () => string });
    const failure = await failureOf(run(transport));
    expect(failure).toMatchObject({ delivery: "not-sent", error: { code: "connect" } });
    expect(failure.error.message).toContain("token");
    expect(failure.error.message).not.toContain("sekret");
    expect(peer.seen).toHaveLength(0);
  });

  it.each(["", "a b", "a\n", "ć", 5, null])("the token %j is a UsageError", (token) => {
    expect(() => httpTransport("http://127.0.0.1/", { token: token as string })).toThrow(UsageError);
  });
});

describe("a challenge", () => {
  const BEARER =
    'Bearer error="invalid_token", resource_metadata="http://169.254.169.254/x", scope="files:read"';

  it.each<[string, HttpTransportOptions]>([
    ["no token", {}],
    ["a fixed token", { token: "t" }],
  ])(
    "B166: a 401 with %s is an HttpStatusError with the challenge, and nothing for the engine to answer",
    async (_what, options) => {
      const { transport } = await setUp(refuse(401, BEARER), options);
      const failure = await failureOf(run(transport));
      expect(failure).not.toHaveProperty("challenge");
      expect(failure.delivery).toBe("rejected");
      expect((failure.error as HttpStatusError).challenge).toEqual({
        status: 401,
        scheme: "bearer",
        params: {
          error: "invalid_token",
          resource_metadata: "http://169.254.169.254/x",
          scope: "files:read",
        },
      });
    },
  );

  it("B175: no URL of a challenge is fetched", async () => {
    const other = await startPeer(answerJson);
    ends.push(other.stop);
    const { transport, peer } = await setUp(refuse(401, `Bearer resource_metadata="${other.url}"`), {
      token: () => "t",
    });
    await failureOf(run(transport));
    expect(other.connections()).toBe(0);
    expect(peer.seen).toHaveLength(1);
  });

  it.each([
    ["401 with a challenge", 401, BEARER, true],
    ["401 without one", 401, undefined, true],
    ["401 with a broken one", 401, 'Bearer error="', true],
    ["401 with several", 401, ["Negotiate", BEARER], true],
    ["403 for want of scope", 403, 'Bearer error="insufficient_scope", scope="x:write"', true],
    ["403 for another reason", 403, BEARER, false],
    ["403 without a challenge", 403, undefined, false],
  ])("B166: %s, with a token function", async (_what, status, challenge, answerable) => {
    const { transport, peer } = await setUp(refuse(status, challenge), { token: () => "t" });
    const failure = await failureOf(run(transport));
    expect(failure.error).toBeInstanceOf(HttpStatusError);
    expect(failure.challenge !== undefined).toBe(answerable);
    if (answerable) expect(failure.challenge).toBe((failure.error as HttpStatusError).challenge);
    expect(failure.challenge?.status ?? status).toBe(status);
    expect(peer.seen).toHaveLength(1);
  });

  it.each([
    ["a challenge", BEARER, {}, "failure"],
    ["a token function", undefined, { token: () => "t" }, "failure"],
    ["neither", undefined, {}, "response"],
  ])("a JSON-RPC error in a 401 with %s is a %4$s", async (_what, challenge, options, kind) => {
    const text = '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Unauthorized"}}';
    const { transport } = await setUp(refuse(401, challenge, text), options);
    const end = await run(transport).end;
    expect(end).toHaveProperty(kind);
    if ("response" in end) expect(end.envelope?.status).toBe(401);
  });
});
