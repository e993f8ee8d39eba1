import { describe, expect, it } from "vitest";
import { HttpStatusError } from "../../src/errors.ts";
import {
  answerEvents,
  answerJson,
  attach,
  ends,
  event,
  failureOf,
  responseOf,
  resultText,
  run,
  type Seen,
  setUp,
  startBytes,
  startPeer,
} from "./http-peer.ts";

/** Answers with a status, headers and a body. */
function answer(status: number, headers: Record<string, string>, body = ""): (seen: Seen) => void {
  return ({ res }) => {
    res.writeHead(status, headers);
    res.end(body);
  };
}

const VERSION_ERROR = { code: -32022, message: "unsupported", data: { supported: ["2026-07-28"] } };

describe("HTTP-03: a JSON-RPC error with a 4xx or 5xx status", () => {
  it.each([
    [400, "application/json"],
    [400, "application/json; charset=utf-8"],
    [400, "text/plain"],
    [403, "application/json"],
    [404, "application/json"],
    [429, "application/json"],
    [500, "application/json"],
    [503, "application/json"],
  ])("B041 B055: %i as %s is the answer, with its status", async (status, type) => {
    for (const id of [7, 8, null, undefined]) {
      const text = JSON.stringify({ jsonrpc: "2.0", id, error: VERSION_ERROR });
      const { transport } = await setUp(answer(status, { "content-type": type }, text));
      const { response, envelope } = await responseOf(run(transport, { id: 7 }));
      expect(response).toEqual({ kind: "error", id, error: VERSION_ERROR });
      expect(envelope?.status).toBe(status);
      expect(envelope?.headers).toMatchObject({ "content-type": type });
    }
  });

  it("comes compressed", async () => {
    const { gzipSync } = await import("node:zlib");
    const { transport } = await setUp(({ res, frame }) => {
      res.writeHead(400, { "content-type": "application/json", "content-encoding": "gzip" });
      res.end(gzipSync(JSON.stringify({ jsonrpc: "2.0", id: frame.id, error: VERSION_ERROR })));
    });
    expect((await responseOf(run(transport))).envelope?.status).toBe(400);
  });

  it("comes as an event", async () => {
    const { transport } = await setUp((seen) => {
      const text = JSON.stringify({ jsonrpc: "2.0", id: seen.frame.id, error: VERSION_ERROR });
      answerEvents(seen, 400).end(event(text));
    });
    const { response, envelope } = await responseOf(run(transport));
    expect(response).toMatchObject({ kind: "error", error: VERSION_ERROR });
    expect(envelope?.status).toBe(400);
  });
});

describe("HTTP-03: a status without a JSON-RPC error", () => {
  it.each([
    [400, "rejected"],
    [404, "rejected"],
    [405, "rejected"],
    [413, "rejected"],
    [429, "rejected"],
    [503, "rejected"],
    [500, "unknown"],
    [502, "unknown"],
    [504, "unknown"],
  ] as const)("%i is an HttpStatusError, delivery %s", async (status, delivery) => {
    const page = "<html><body>something went wrong</body></html>";
    const { transport, peer } = await setUp(
      answer(status, { "content-type": "text/html", "x-request-id": "r1", "set-cookie": "s=secret" }, page),
    );
    const failure = await failureOf(run(transport));
    expect(failure.error).toBeInstanceOf(HttpStatusError);
    expect(failure).toMatchObject({ delivery, error: { code: "http-status", status, body: page, delivery } });
    const { headers } = failure.error as HttpStatusError;
    expect(headers).toMatchObject({ "content-type": "text/html", "x-request-id": "r1" });
    expect(headers).not.toHaveProperty("set-cookie");
    expect(failure.error.message).toContain(String(status));
    expect(failure).not.toHaveProperty("retryAfterMs");
    expect(failure).not.toHaveProperty("challenge");
    expect(peer.seen).toHaveLength(1);
  });

  it.each([
    ["no body", ""],
    ["JSON that is no JSON-RPC", '{"error":"invalid_token"}'],
    ["broken JSON", '{"jsonrpc":'],
    ["a JSON-RPC error that is malformed", '{"jsonrpc":"2.0","id":7,"error":{"code":"x"}}'],
    ["a result, which no error status can carry", resultText(7)],
  ])("%s", async (_what, body) => {
    const { transport } = await setUp(answer(400, { "content-type": "application/json" }, body));
    const failure = await failureOf(run(transport, { id: 7 }));
    expect(failure).toMatchObject({
      delivery: "rejected",
      error: { code: "http-status", status: 400, body },
    });
  });

  it("an event stream without an error in it", async () => {
    const { transport } = await setUp((seen) => {
      answerEvents(seen, 500).end(": nothing\n\n");
    });
    expect(await failureOf(run(transport))).toMatchObject({ error: { code: "http-status", status: 500 } });
  });

  it("LIM-01: of a long page only an excerpt is read and kept, at once", async () => {
    const { transport } = await setUp(({ res }) => {
      res.writeHead(502, { "content-type": "text/html" });
      // The page never ends.
      res.write("x".repeat(10_000));
    });
    const failure = await failureOf(run(transport));
    expect((failure.error as HttpStatusError).body).toBe("x".repeat(2048));
  });

  it("a body that breaks off does not hide the status", async () => {
    const peer = await startBytes((socket) => {
      socket.end("HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nnot he");
    });
    const { transport } = attach(peer.url);
    ends.push(peer.stop, () => transport.close());
    expect(await failureOf(run(transport))).toMatchObject({
      delivery: "rejected",
      error: { code: "http-status", status: 404, body: "not he" },
    });
  });
});

describe("HTTP-03 B104: Retry-After", () => {
  it.each([
    [429, "1", 1000],
    [503, "2", 2000],
    [429, "86400", 86_400_000],
    [503, "-1", undefined],
    [429, "abc", undefined],
    [503, undefined, undefined],
    [500, "1", undefined],
    [404, "1", undefined],
  ])("%i with %s waits %s ms", async (status, value, waitMs) => {
    const headers = {
      "content-type": "text/plain",
      ...(value !== undefined ? { "retry-after": value } : undefined),
    };
    const { transport } = await setUp(answer(status, headers, "busy"));
    const failure = await failureOf(run(transport));
    expect(failure.retryAfterMs).toBe(waitMs);
    expect((failure.error as HttpStatusError).headers["retry-after"]).toBe(value);
  });

  it("a date is turned into a wait", async () => {
    const at = new Date(Date.now() + 60_000).toUTCString();
    const { transport } = await setUp(answer(503, { "retry-after": at }));
    const { retryAfterMs } = await failureOf(run(transport));
    expect(retryAfterMs).toBeGreaterThan(50_000);
    expect(retryAfterMs).toBeLessThanOrEqual(60_000);
  });

  it("counts for more than a JSON-RPC error beside it, whose text is kept", async () => {
    const text = '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"slow down"}}';
    const { transport } = await setUp(
      answer(429, { "retry-after": "1", "content-type": "application/json" }, text),
    );
    expect(await failureOf(run(transport))).toMatchObject({
      delivery: "rejected",
      retryAfterMs: 1000,
      error: { status: 429, body: text },
    });
  });
});

describe("HTTP-04: redirects", () => {
  it.each([307, 308])("%i within the origin is followed with the same body and headers", async (status) => {
    const { transport, peer } = await setUp(
      (seen) => {
        if (seen.req.url === "/mcp") answer(status, { location: "/other?x=1" }, "moved")(seen);
        else answerJson(seen);
      },
      { token: "t", headers: { "x-mine": "1" } },
    );
    const running = run(transport, { name: "n" });
    await responseOf(running);
    const [first, second] = peer.seen as [Seen, Seen];
    expect(second.req.url).toBe("/other?x=1");
    expect(second.req.method).toBe("POST");
    expect(second.body).toBe(first.body);
    expect(second.req.headers).toEqual(first.req.headers);
    expect(peer.connections()).toBeLessThanOrEqual(2);
  });

  it("a redirect with an endless body is followed as well", async () => {
    const { transport } = await setUp((seen) => {
      if (seen.req.url !== "/mcp") return answerJson(seen);
      seen.res.writeHead(307, { location: "/other" });
      seen.res.write("x".repeat(10_000));
    });
    await responseOf(run(transport));
  });

  it("a loop of redirects ends", async () => {
    const { transport, peer } = await setUp(answer(307, { location: "/mcp" }));
    expect(await failureOf(run(transport))).toMatchObject({
      delivery: "rejected",
      error: { code: "http-status", status: 307 },
    });
    expect(peer.seen).toHaveLength(4);
  });

  it.each([301, 302, 303, 307, 308])(
    "B170 B173: %i to another origin is refused, and nothing goes there",
    async (status) => {
      const other = await startPeer(answerJson);
      ends.push(other.stop);
      const { transport, peer } = await setUp(answer(status, { location: `${other.url}?token=secret` }), {
        token: "t0ken-secret",
        headers: { "X-Api-Key": "k" },
      });
      const failure = await failureOf(run(transport));
      expect(failure.delivery).toBe(status === 303 ? "unknown" : "rejected");
      expect(failure.error).toMatchObject({ code: "http-status", status });
      expect(failure.error.message).toContain(`another origin, ${other.url},`);
      expect(failure.error.message).not.toContain("secret");
      expect(other.connections()).toBe(0);
      expect(peer.seen).toHaveLength(1);
    },
  );

  it.each([
    "file:///etc/passwd",
    "unix:///var/run/docker.sock",
    "pipe:x",
    "ftp://127.0.0.1/",
    "data:application/json,{}",
  ])("B172: a redirect to %s fails closed", async (location) => {
    const { transport, peer } = await setUp(answer(307, { location }));
    expect(await failureOf(run(transport))).toMatchObject({ error: { code: "http-status", status: 307 } });
    expect(peer.seen).toHaveLength(1);
  });

  it.each([301, 302, 303])(
    "%i within the origin is refused, because it would turn the POST into a GET",
    async (status) => {
      const { transport, peer } = await setUp(answer(status, { location: "/other" }));
      const failure = await failureOf(run(transport));
      expect(failure.error.message).toContain(`${peer.origin}/other`);
      expect(peer.seen).toHaveLength(1);
    },
  );

  it("cancelling between the hops sends nothing more", async () => {
    const { transport, peer } = await setUp((seen) => {
      seen.res.writeHead(307, { location: "/other" });
      seen.res.write("x", () => {
        running.exchange.cancel("enough");
      });
    });
    const running = run(transport);
    await (await peer.next()).closed;
    expect(running.ends()).toBe(0);
    expect(peer.seen).toHaveLength(1);
  });
});
