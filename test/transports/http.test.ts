import { randomBytes } from "node:crypto";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { ConnectError, ConnectionLostError, FrameError, UsageError } from "../../src/errors.ts";
import { httpTransport } from "../../transports/http.ts";
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

/** A bare server that answers every request with these bytes, and ends the connection after them if asked to. */
async function setUpBytes(answer: string | Buffer, finish: "end" | "keep" | "reset" = "keep") {
  const peer = await startBytes((socket) => {
    socket.write(answer, () => {
      if (finish === "end") socket.end();
      if (finish === "reset") socket.resetAndDestroy();
    });
  });
  const attached = attach(peer.url);
  ends.push(peer.stop, () => attached.transport.close());
  return { ...attached, peer };
}

function head(type: string, more = ""): string {
  return `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\n${more}\r\n`;
}

/** Text that does not compress to nothing. */
function randomText(length: number): string {
  return randomBytes(length).toString("base64").slice(0, length);
}

/** A whole answer with a length. */
function whole(type: string, body: string, status = "200 OK"): string {
  return `HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

describe("the request", () => {
  it("HDR-01: is one POST with the metadata headers, the body as it is, and both types in Accept", async () => {
    const { transport, peer } = await setUp(answerJson);
    const running = run(transport, { method: "tools/call", name: "deploy", protocolVersion: "2026-07-28" });
    await responseOf(running);
    const [{ req, body }] = peer.seen as [Seen];
    expect(req.method).toBe("POST");
    expect(req.url).toBe("/mcp");
    expect(body).toBe(running.request.body);
    expect(req.headers).toMatchObject({
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body)),
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": "deploy",
    });
    expect(req.headers).not.toHaveProperty("authorization");
    expect(req.headers).not.toHaveProperty("mcp-session-id");
  });

  it("HDR-01: Mcp-Protocol-Version is the version of the request's _meta", async () => {
    const { transport, peer } = await setUp(answerJson);
    await responseOf(run(transport, { protocolVersion: "2027-01-01" }));
    expect(peer.seen[0]?.req.headers["mcp-protocol-version"]).toBe("2027-01-01");
  });

  it("HDR-01: Mcp-Name is there when the method names something, and only then", async () => {
    const { transport, peer } = await setUp(answerJson);
    await responseOf(run(transport, { method: "tools/list" }));
    await responseOf(run(transport, { method: "resources/read", name: "file:///ü" }));
    expect(peer.seen[0]?.req.headers).not.toHaveProperty("mcp-name");
    expect(peer.seen[1]?.req.headers["mcp-name"]).toBe("=?base64?ZmlsZTovLy/DvA==?=");
  });

  it("HDR-02: mirrored fields become Mcp-Param-* headers, in their encoding", async () => {
    const { transport, peer } = await setUp(answerJson);
    const mirrored = [
      { name: "Region", value: "us-west1" },
      { name: "Empty", value: "" },
      { name: "Text", value: " padded " },
    ];
    await responseOf(run(transport, { mirrored }));
    expect(peer.seen[0]?.req.headers).toMatchObject({
      "mcp-param-region": "us-west1",
      "mcp-param-empty": "",
      "mcp-param-text": "=?base64?IHBhZGRlZCA=?=",
    });
  });

  it("HDR-02 B059: no value of a call can add a header", async () => {
    const { transport, peer } = await setUp(answerJson);
    const hostile = "a\r\nX-Evil: 1\r\n\r\nPOST / HTTP/1.1";
    await responseOf(run(transport, { name: hostile, mirrored: [{ name: "Region", value: hostile }] }));
    const { headers } = peer.seen[0]!.req;
    expect(headers).not.toHaveProperty("x-evil");
    const encoded = `=?base64?${Buffer.from(hostile).toString("base64")}?=`;
    expect(headers).toMatchObject({ "mcp-name": encoded, "mcp-param-region": encoded });
    expect(peer.seen).toHaveLength(1);
  });

  it.each(["Re gion", "Region:", "Région", "", "a\r\nX-Evil"])(
    "HDR-02 B059: the field name %j is refused before anything is sent",
    async (name) => {
      const { transport, peer } = await setUp(answerJson);
      const failure = await failureOf(run(transport, { mirrored: [{ name, value: "x" }] }));
      expect(failure.delivery).toBe("not-sent");
      expect(failure.error.message).toContain("x-mcp-header");
      expect(peer.seen).toHaveLength(0);
    },
  );

  it("HDR-01: a method that no header can carry is refused before anything is sent", async () => {
    const { transport, peer } = await setUp(answerJson);
    expect((await failureOf(run(transport, { method: "tools/call\r\nX: 1" }))).delivery).toBe("not-sent");
    expect(peer.seen).toHaveLength(0);
  });
});

describe("headers of the host", () => {
  it("are sent with every request, and the path and query of the URL are kept", async () => {
    const peer = await startPeer(answerJson);
    const { transport } = attach(`${peer.origin}/a/b?key=v`, {
      headers: { "X-Api-Key": "k", "X-None": undefined },
    });
    ends.push(peer.stop, () => transport.close());
    await responseOf(run(transport));
    expect(peer.seen[0]?.req.url).toBe("/a/b?key=v");
    expect(peer.seen[0]?.req.headers["x-api-key"]).toBe("k");
    expect(peer.seen[0]?.req.headers).not.toHaveProperty("x-none");
  });

  it("come from a function for every attempt, with the context of the call", async () => {
    const { transport, peer } = await setUp(answerJson, {
      headers: ({ context }) => ({ "X-User": String(context) }),
    });
    await responseOf(run(transport, { context: "ann" }));
    await responseOf(run(transport, { context: "bob" }));
    expect(peer.seen.map(({ req }) => req.headers["x-user"])).toEqual(["ann", "bob"]);
  });

  it.each([["object"], ["function"]])("never replace the protocol's own (%s)", async (kind) => {
    const headers = {
      accept: "text/html",
      "CONTENT-TYPE": "text/plain",
      "Content-Length": "1",
      Host: "evil.example",
      "mcp-method": "other",
      "Mcp-Param-Region": "x",
      "MCP-Protocol-Version": "1999-01-01",
      Connection: "close",
      "Transfer-Encoding": "chunked",
      Expect: "100-continue",
      "X-Mine": "yes",
    };
    const { transport, peer } = await setUp(answerJson, {
      headers: kind === "object" ? headers : () => headers,
    });
    await responseOf(run(transport));
    const [{ req }] = peer.seen as [Seen];
    expect(req.headers).toMatchObject({
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      host: new URL(peer.url).host,
      "mcp-method": "tools/call",
      "mcp-protocol-version": "2026-07-28",
      connection: "keep-alive",
      "x-mine": "yes",
    });
    expect(req.headers).not.toHaveProperty("mcp-param-region");
    expect(req.headers).not.toHaveProperty("transfer-encoding");
  });

  it.each([
    ["a character outside ASCII", { "X-User": "Marić" }, "X-User"],
    ["a line break", { "X-User": "a\r\nb" }, "X-User"],
    ["a number", { "X-User": 5 }, "X-User"],
    ["a bad name", { "X User": "a" }, "X User"],
  ])("B061: %s is an error that names the header and not its value", async (_what, headers, name) => {
    const bad = headers as unknown as Record<string, string>;
    expect(() => httpTransport("http://127.0.0.1/", { headers: bad })).toThrow(UsageError);
    expect(() => httpTransport("http://127.0.0.1/", { headers: bad })).toThrow(name);

    const { transport, peer } = await setUp(answerJson, { headers: () => bad });
    const failure = await failureOf(run(transport));
    expect(failure).toMatchObject({ delivery: "not-sent", error: { code: "connect" } });
    expect(failure.error.message).toContain(name);
    expect(failure.error.message).not.toContain("Mari");
    expect(peer.seen).toHaveLength(0);
  });

  it("SAF-02: a headers function that throws fails its call, with the cause", async () => {
    const cause = new Error("no headers today");
    const { transport } = await setUp(answerJson, {
      headers: () => {
        throw cause;
      },
    });
    const failure = await failureOf(run(transport));
    expect(failure).toMatchObject({ delivery: "not-sent", error: { code: "connect", cause } });
  });
});

describe("options", () => {
  it.each([
    ["not a url", "not a URL"],
    ["ws://127.0.0.1/", "http or https"],
    ["file:///etc/passwd", "http or https"],
    ["https://user:pw@example.com/", "credentials"],
    ["https://user@example.com/", "credentials"],
  ])("the URL %s is refused without repeating it", (url, reason) => {
    let error: unknown;
    try {
      httpTransport(url);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(UsageError);
    expect((error as Error).message).toContain(reason);
    expect((error as Error).message).not.toMatch(/pw|user|passwd/);
  });

  it.each([{ maxConnections: 0 }, { maxConnections: 1.5 }, { connectMs: -1 }, { connectMs: Number.NaN }])(
    "%j is refused",
    (options) => {
      expect(() => httpTransport("http://127.0.0.1/", options)).toThrow(UsageError);
    },
  );

  it("the peer is origin and path", () => {
    expect(httpTransport("https://example.com:8443/mcp?token=secret#x")).toMatchObject({
      name: "http",
      peer: "https://example.com:8443/mcp",
    });
  });
});

describe("a JSON answer", () => {
  it.each(["application/json", "application/json; charset=UTF-8", 'APPLICATION/JSON;charset="utf-8"'])(
    "HTTP-01: comes as %s",
    async (type) => {
      const { transport } = await setUpBytes(
        whole(type, resultText(1, { resultType: "complete", text: "é🎾" })),
      );
      const { response, envelope } = await responseOf(run(transport, { id: 1 }));
      expect(response).toEqual({ kind: "result", id: 1, result: { resultType: "complete", text: "é🎾" } });
      expect(envelope?.status).toBe(200);
      expect(envelope?.headers).toMatchObject({ "content-type": type });
    },
  );

  it("HTTP-01: is read in any chunking, with a byte order mark, after interim answers", async () => {
    const text = `\uFEFF${resultText(1, { text: "é世🎾".repeat(50) })}`;
    const body = Array.from(Buffer.from(text), (byte) => `1\r\n${String.fromCharCode(byte)}\r\n`).join("");
    const answer = Buffer.from(
      `HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n${head("application/json", "Transfer-Encoding: chunked\r\n")}${body}0\r\n\r\n`,
      "latin1",
    );
    const { transport } = await setUpBytes(answer);
    const { response } = await responseOf(run(transport, { id: 1 }));
    expect(response).toMatchObject({ result: { text: "é世🎾".repeat(50) } });
  });

  it("HTTP-01: may end with its connection", async () => {
    const { transport } = await setUpBytes(head("application/json") + resultText(1), "end");
    expect((await responseOf(run(transport, { id: 1 }))).response).toMatchObject({ kind: "result" });
  });

  it.each([
    ["gzip", gzipSync],
    ["x-gzip", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
    ["identity", (text: string) => Buffer.from(text)],
  ])("HTTP-01: compressed as %s, though nobody asked", async (encoding, compress) => {
    const { transport, peer } = await setUp((seen) => {
      seen.res.writeHead(200, { "content-type": "application/json", "content-encoding": encoding });
      seen.res.end(compress(resultText(seen.frame.id, { text: "x".repeat(100_000) })));
    });
    const { response } = await responseOf(run(transport));
    expect(response).toMatchObject({ result: { text: "x".repeat(100_000) } });
    expect(peer.seen[0]?.req.headers).not.toHaveProperty("accept-encoding");
  });

  it.each([
    ["a JSON-RPC error with our id", 7],
    ["a JSON-RPC error with another id", 8],
    ["a JSON-RPC error with the id null", null],
    ["a JSON-RPC error without an id", undefined],
  ])("REQ-02: %s is the answer of its POST", async (_what, id) => {
    const error = { code: -32602, message: "no", data: { why: 1 } };
    const { transport } = await setUp((seen) =>
      answerJson(seen, JSON.stringify({ jsonrpc: "2.0", id, error })),
    );
    const { response, envelope } = await responseOf(run(transport, { id: 7 }));
    expect(response).toEqual({ kind: "error", id, error });
    expect(envelope?.status).toBe(200);
  });

  it.each([
    ["REQ-02 B140: another id", resultText(0), "id 0"],
    ["REQ-02 B140: our id as a string", resultText("7"), 'id "7"'],
    ["REQ-02: the id null", resultText(null), "null"],
    ["REQ-02: no id", JSON.stringify({ jsonrpc: "2.0", result: {} }), "none"],
    ["REQ-03 B145: jsonrpc 1.0", '{"jsonrpc":"1.0","id":7,"result":{}}', "jsonrpc"],
    ["REQ-03 B145: no jsonrpc", '{"id":7,"result":{}}', "jsonrpc"],
    [
      "REQ-03 B145: both result and error",
      '{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":""}}',
      "both",
    ],
    ["REQ-03 B145: neither", '{"jsonrpc":"2.0","id":7}', "neither"],
    ["REQ-03 B145: error is a string", '{"jsonrpc":"2.0","id":7,"error":"x"}', "error"],
    ["REQ-03 B145: a fractional code", '{"jsonrpc":"2.0","id":7,"error":{"code":1.5,"message":""}}', "code"],
    ["REQ-03: a batch", `[${resultText(7)}]`, "array"],
    ["REQ-03: no JSON", "hello", "JSON"],
    ["B095: an empty object", "{}", "jsonrpc"],
    ["REQ-04 B146: a request", '{"jsonrpc":"2.0","id":7,"method":"ping"}', "request"],
    ["a notification", '{"jsonrpc":"2.0","method":"notifications/progress"}', "notification"],
    ["HTTP-02 B098: nothing at all", "", "empty"],
  ])("%s is a FrameError at once", async (_what, text, fault) => {
    const { transport, peer } = await setUp((seen) => answerJson(seen, text));
    const failure = await failureOf(run(transport, { id: 7 }));
    expect(failure).toMatchObject({ delivery: "unknown", error: { code: "frame" } });
    expect(failure.error).toBeInstanceOf(FrameError);
    expect(failure.error.message).toContain(fault);
    expect(peer.seen).toHaveLength(1);
  });

  it("HTTP-01: bytes that are not UTF-8 are a FrameError", async () => {
    const { transport } = await setUp((seen) => {
      seen.res.writeHead(200, { "content-type": "application/json" });
      seen.res.end(Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"a":"\xff"}}', "latin1"));
    });
    expect((await failureOf(run(transport, { id: 1 }))).error.message).toContain("UTF-8");
  });

  it.each([
    ["an encoding that nobody knows", "zstd-x", Buffer.from("x"), "zstd-x"],
    ["two encodings", "gzip, br", Buffer.from("x"), "gzip, br"],
    ["a damaged body", "gzip", Buffer.from("not gzip"), "damaged"],
    ["a body cut short", "gzip", gzipSync(resultText(1, { a: randomText(5000) })).subarray(0, 2000), "JSON"],
  ])("HTTP-01: %s is a FrameError", async (_what, encoding, body, fault) => {
    const { transport } = await setUp((seen) => {
      seen.res.writeHead(200, { "content-type": "application/json", "content-encoding": encoding });
      seen.res.end(body);
    });
    const failure = await failureOf(run(transport, { id: 1 }));
    expect(failure.error).toBeInstanceOf(FrameError);
    expect(failure.error.message).toContain(fault);
  });
});

describe("an event stream", () => {
  const note = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}';

  it("HTTP-01 B095: gives notifications in order, then the response", async () => {
    const { transport, anomalies } = await setUp((seen) => {
      const res = answerEvents(seen);
      res.write(event(note));
      res.write(event('{"jsonrpc":"2.0","method":"notifications/message"}'));
      res.end(event(resultText(seen.frame.id)));
    });
    const running = run(transport);
    const { response, envelope } = await responseOf(running);
    expect(running.notifications.map(({ method }) => method)).toEqual([
      "notifications/progress",
      "notifications/message",
    ]);
    expect(response).toEqual({ kind: "result", id: running.request.id, result: { resultType: "complete" } });
    expect(envelope?.headers).toMatchObject({ "content-type": "text/event-stream" });
    expect(anomalies).toEqual([]);
  });

  it("HTTP-01: a notification is delivered when it comes, not when the stream ends", async () => {
    const { transport, peer } = await setUp();
    let told: () => void = () => {};
    const first = new Promise<void>((resolve) => {
      told = resolve;
    });
    const running = run(transport, {}, { notification: () => told() });
    const res = answerEvents(await peer.next());
    res.write(event(note));
    await first;
    expect(running.ends()).toBe(0);
    res.end(event(resultText(running.request.id)));
    await responseOf(running);
  });

  it("HTTP-01 B107: any chunking, CRLF, comments, other types and empty data", async () => {
    const text = `\uFEFF: hi\r\n\r\nid: 0\r\nretry: 1000\r\ndata: \r\n\r\nevent: ping\r\ndata: {}\r\n\r\nevent: message\r\ndata: {"jsonrpc":"2.0",\r\ndata: "id":1,"result":{"text":"é🎾"}}\r\n\r\n`;
    const body = Array.from(Buffer.from(text), (byte) => `1\r\n${String.fromCharCode(byte)}\r\n`).join("");
    const { transport, anomalies } = await setUpBytes(
      Buffer.from(
        `${head("text/event-stream; charset=utf-8", "Transfer-Encoding: chunked\r\n")}${body}0\r\n\r\n`,
        "latin1",
      ),
    );
    const { response } = await responseOf(run(transport, { id: 1 }));
    expect(response).toMatchObject({ result: { text: "é🎾" } });
    expect(anomalies).toEqual([]);
  });

  it.each([["gzip", gzipSync] as const, ["br", brotliCompressSync] as const])(
    "HTTP-01: compressed as %s",
    async (encoding, compress) => {
      const { transport } = await setUp((seen) => {
        seen.res.writeHead(200, { "content-type": "text/event-stream", "content-encoding": encoding });
        seen.res.end(compress(event(note) + event(resultText(seen.frame.id))));
      });
      const running = run(transport);
      await responseOf(running);
      expect(running.notifications).toHaveLength(1);
    },
  );

  it("HTTP-01: what a compressed stream has flushed is delivered before its end", async () => {
    const { createGzip } = await import("node:zlib");
    const { transport, peer } = await setUp();
    const running = run(transport);
    const { res } = await peer.next();
    res.writeHead(200, { "content-type": "text/event-stream", "content-encoding": "gzip" });
    const gzip = createGzip();
    gzip.pipe(res);
    gzip.write(event(resultText(running.request.id)));
    gzip.flush();
    await responseOf(running);
    gzip.end();
  });

  it.each([
    ["our id", (id: number) => id],
    ["the id null", () => null],
    ["no id", () => undefined],
  ])("REQ-02: an error with %s is the answer of this exchange", async (_what, idOf) => {
    const error = { code: -32602, message: "no" };
    const { transport } = await setUp((seen) => {
      answerEvents(seen).end(event(JSON.stringify({ jsonrpc: "2.0", id: idOf(seen.frame.id), error })));
    });
    expect((await responseOf(run(transport))).response).toMatchObject({ kind: "error", error });
  });

  it("REQ-02 B140: an answer with another id is an anomaly, and the stream goes on", async () => {
    const { transport, anomalies } = await setUp((seen) => {
      const res = answerEvents(seen);
      res.write(event(resultText(String(seen.frame.id))));
      res.write(event('{"jsonrpc":"2.0","id":999,"error":{"code":1,"message":""}}'));
      res.end(event(resultText(seen.frame.id)));
    });
    const running = run(transport, { id: 7 });
    await responseOf(running);
    expect(running.ends()).toBe(1);
    expect(anomalies).toEqual([
      { kind: "unknown-id", detail: { exchange: 7, id: "7" } },
      { kind: "unknown-id", detail: { exchange: 7, id: 999 } },
    ]);
  });

  it("REQ-04 B146: a request of the peer is an anomaly, is not answered, and resolves nothing", async () => {
    const { transport, anomalies, peer } = await setUp((seen) => {
      const res = answerEvents(seen);
      res.write(event(JSON.stringify({ jsonrpc: "2.0", id: seen.frame.id, method: "ping" })));
      res.write(
        event(
          JSON.stringify({ jsonrpc: "2.0", id: seen.frame.id, method: "sampling/createMessage", params: {} }),
        ),
      );
      res.end(event(resultText(seen.frame.id, { own: true })));
    });
    const { response } = await responseOf(run(transport, { id: 7 }));
    expect(response).toMatchObject({ result: { own: true } });
    expect(anomalies).toEqual([
      { kind: "peer-request", detail: { exchange: 7, id: 7, method: "ping" } },
      { kind: "peer-request", detail: { exchange: 7, id: 7, method: "sampling/createMessage" } },
    ]);
    expect(peer.seen).toHaveLength(1);
  });

  it.each([
    ["B145: a result that is no object", '{"jsonrpc":"2.0","id":7,"result":5}', "result"],
    ["B145: no jsonrpc", '{"id":7,"result":{}}', "jsonrpc"],
    [
      "B145: both result and error",
      '{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":""}}',
      "both",
    ],
    ["a batch", `[${resultText(7)}]`, "array"],
    ["no JSON", "hello", "JSON"],
    ["a result without an id", '{"jsonrpc":"2.0","result":{}}', "id"],
  ])("REQ-03 %s ends the exchange at once, though the stream is open", async (_what, data, fault) => {
    const { transport, peer } = await setUp();
    const running = run(transport, { id: 7 });
    const seen = await peer.next();
    answerEvents(seen).write(event(data));
    const failure = await failureOf(running);
    expect(failure).toMatchObject({ delivery: "unknown", error: { code: "frame" } });
    expect(failure.error.message).toContain(fault);
    await seen.closed;
  });

  it("REQ-03: a malformed frame for another id is an anomaly", async () => {
    const { transport, anomalies } = await setUp((seen) => {
      const res = answerEvents(seen);
      res.write(event('{"jsonrpc":"2.0","id":999,"result":5}'));
      res.end(event(resultText(seen.frame.id)));
    });
    await responseOf(run(transport, { id: 7 }));
    expect(anomalies).toMatchObject([{ kind: "bad-frame", detail: { exchange: 7, id: 999 } }]);
  });

  it("REQ-02: a second answer is a late-response anomaly and reaches no sink", async () => {
    const { transport, anomalies } = await setUp((seen) => {
      answerEvents(seen).end(event(resultText(seen.frame.id)).repeat(2));
    });
    const running = run(transport, { id: 7 });
    await responseOf(running);
    expect(running.ends()).toBe(1);
    await expect.poll(() => anomalies).toEqual([{ kind: "late-response", detail: { exchange: 7, id: 7 } }]);
  });

  it("HTTP-01: bytes that are not UTF-8 are a FrameError", async () => {
    const { transport } = await setUp((seen) => {
      answerEvents(seen).write(Buffer.from("data: \xff\n\n", "latin1"));
    });
    const failure = await failureOf(run(transport));
    expect(failure.error).toBeInstanceOf(FrameError);
    expect(failure.error.message).toContain("UTF-8");
  });
});

describe("HTTP-02: an answer that is none", () => {
  it.each([
    ["B098 B097: 202, empty", 202, { "content-type": "text/plain; charset=UTF-8" }, "", "202"],
    ["B098: 202 with JSON", 202, { "content-type": "application/json" }, resultText(7), "202"],
    ["B098: 204", 204, {}, "", "204"],
    ["B098: 200 with Content-Length 0", 200, { "content-length": "0" }, "", "Content-Type"],
    ["B098: 200 with an empty JSON body", 200, { "content-type": "application/json" }, "", "empty"],
    ["B095: HTML", 200, { "content-type": "text/html" }, "<html>", "text/html"],
    ["an unknown type", 200, { "content-type": "application/x-foo" }, "x", "application/x-foo"],
    ["JSON without a type", 200, {}, resultText(7), "Content-Type"],
  ])("%s: a FrameError", async (_what, status, headers, body, fault) => {
    const { transport } = await setUp((seen) => {
      seen.res.writeHead(status, headers as Record<string, string>);
      seen.res.end(body);
    });
    const failure = await failureOf(run(transport, { id: 7 }));
    expect(failure).toMatchObject({ delivery: "unknown", error: { code: "frame" } });
    expect(failure.error.message).toContain(fault);
  });

  it.each([
    [202, "text/plain"],
    [200, "text/html"],
  ])("B098: %i with %s is told at once, though the body goes on", async (status, type) => {
    const { transport, peer } = await setUp();
    const running = run(transport);
    const { res } = await peer.next();
    res.writeHead(status, { "content-type": type });
    res.write("…");
    expect((await failureOf(running)).error).toBeInstanceOf(FrameError);
  });

  it.each([
    ["B086: zero bytes", [], "end"],
    ["B086: a notification", [event('{"jsonrpc":"2.0","method":"notifications/progress"}')], "end"],
    [
      "B086: a notification, then a reset",
      [event('{"jsonrpc":"2.0","method":"notifications/progress"}')],
      "reset",
    ],
    ["B086: comments", [": ping\n\n"], "end"],
    ["an answer to something else", [event(resultText(999))], "end"],
    ["B088: half an answer", [`data: ${resultText(7).slice(0, -5)}`], "end"],
    ["half an answer, then a reset", [`data: ${resultText(7).slice(0, -5)}`], "reset"],
  ] as const)("a stream that ends without the response: %s", async (_what, pieces, finish) => {
    const { transport } = await setUp((seen) => {
      const res = answerEvents(seen);
      for (const piece of pieces) res.write(piece);
      if (finish === "end") res.end();
      else setImmediate(() => res.socket?.resetAndDestroy());
    });
    const start = performance.now();
    const failure = await failureOf(run(transport, { id: 7 }));
    expect(failure).toMatchObject({ delivery: "unknown", error: { code: "connection-lost" } });
    expect(failure.error).toBeInstanceOf(ConnectionLostError);
    expect(performance.now() - start).toBeLessThan(1000);
  });

  it.each([["end"], ["destroy"]] as const)(
    "B088: an answer whose closing blank line never came counts when the stream ends by %s",
    async (finish) => {
      const { transport } = await setUp((seen) => {
        const res = answerEvents(seen);
        res.write(`data: ${resultText(seen.frame.id)}\n`, () => {
          if (finish === "end") res.end();
          else res.destroy();
        });
      });
      expect((await responseOf(run(transport))).response).toMatchObject({ kind: "result" });
    },
  );

  it("B088 B089: a stream that is silent, or half written, stays open until it is cancelled", async () => {
    const { transport, peer } = await setUp();
    const running = run(transport);
    const seen = await peer.next();
    answerEvents(seen).write(`data: ${resultText(running.request.id)}\n`);
    running.exchange.cancel("the engine's timer");
    await seen.closed;
    expect(running.ends()).toBe(0);
  });
});

describe("a connection that fails", () => {
  it("B043: connection refused: a ConnectError, nothing sent", async () => {
    const peer = await startPeer();
    await peer.stop();
    const { transport } = attach(peer.url);
    ends.push(() => transport.close());
    const failure = await failureOf(run(transport));
    expect(failure).toMatchObject({ delivery: "not-sent", error: { code: "connect", delivery: "not-sent" } });
    expect(failure.error.message).toContain("refused");
    expect(failure.error.message).toContain(peer.url);
  });

  it("an unknown host: a ConnectError, nothing sent", async () => {
    const { transport } = attach("http://nowhere.invalid/mcp");
    ends.push(() => transport.close());
    const failure = await failureOf(run(transport));
    expect(failure.delivery).toBe("not-sent");
    expect(failure.error).toBeInstanceOf(ConnectError);
  });

  it("B043: TLS to a server that speaks none: a ConnectError, nothing sent", async () => {
    const { peer } = await setUp();
    const { transport } = attach(peer.url.replace("http:", "https:"));
    ends.push(() => transport.close());
    expect(await failureOf(run(transport))).toMatchObject({
      delivery: "not-sent",
      error: { code: "connect" },
    });
  });

  it.each([
    ["a reset instead of an answer", "", "reset"],
    ["an end instead of an answer", "", "end"],
    ["an end inside the headers", "HTTP/1.1 200 OK\r\nContent-", "end"],
    ["an end inside a JSON body", `${head("application/json", "Content-Length: 100\r\n")}{"json`, "end"],
    ["a reset inside a JSON body", `${head("application/json", "Content-Length: 100\r\n")}{"json`, "reset"],
    ["something that is not HTTP", "SSH-2.0-x\r\n", "keep"],
  ] as const)("B101: %s: the outcome is unknown", async (_what, bytes, finish) => {
    const { transport, peer } = await setUpBytes(bytes, finish);
    const failure = await failureOf(run(transport));
    expect(failure).toMatchObject({
      delivery: "unknown",
      error: { code: "connection-lost", delivery: "unknown" },
    });
    expect(peer.requests).toHaveLength(1);
  });

  it("B092: a server that never answers is waited for, and can be cancelled", async () => {
    const { transport, peer } = await setUp();
    const running = run(transport);
    const seen = await peer.next();
    running.exchange.cancel("the engine's timer");
    await seen.closed;
    expect(running.ends()).toBe(0);
  });
});
