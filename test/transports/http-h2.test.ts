import { readFileSync } from "node:fs";
import {
  createSecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import type { AddressInfo, Server } from "node:net";
import { Agent } from "undici";
import { describe, expect, it } from "vitest";
import type { HttpTransportOptions } from "../../transports/http.ts";
import { attach, ends, event, failureOf, listen, responseOf, resultText, run } from "./http-peer.ts";

const fixture = (name: string) => readFileSync(new URL(`../fixtures/${name}`, import.meta.url));
const CERT = fixture("loopback-cert.pem");
const KEY = fixture("loopback-key.pem");

interface SeenH2 {
  readonly req: Http2ServerRequest;
  readonly res: Http2ServerResponse;
  readonly frame: { id: number; method: string };
  /** Resolves when the stream is gone, with the code of its end. */
  readonly closed: Promise<number>;
}

/** A TLS server that speaks HTTP/2 and HTTP/1.1, and a transport to it. */
async function setUp(
  handler: (seen: SeenH2) => void = () => {},
  options: HttpTransportOptions = { allowH2: true, tls: { ca: CERT } },
) {
  const sessions: ServerHttp2Session[] = [];
  const seen: SeenH2[] = [];
  const waiting: ((one: SeenH2) => void)[] = [];
  let taken = 0;
  let connections = 0;
  const server = createSecureServer({ cert: CERT, key: KEY, allowHTTP1: true }, (req, res) => {
    let body = "";
    req.on("data", (chunk) => {
      body += chunk;
    });
    req.on("end", () => {
      const closed = new Promise<number>((resolve) => {
        res.on("close", () => resolve(res.stream?.rstCode ?? 0));
      });
      const one = { req, res, frame: JSON.parse(body), closed };
      seen.push(one);
      waiting.shift()?.(seen[taken++]!);
      handler(one);
    });
  });
  server.on("session", (session) => sessions.push(session));
  server.on("secureConnection", () => connections++);
  const stop = await listen(server as unknown as Server);
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  const attached = attach(url, options);
  ends.push(stop, () => attached.transport.close());
  const next = (): Promise<SeenH2> =>
    taken < seen.length
      ? Promise.resolve(seen[taken++]!)
      : new Promise((resolve) => {
          waiting.push(resolve);
        });
  return { ...attached, seen, sessions, next, connections: () => connections };
}

function answer({ res, frame }: SeenH2): void {
  res.writeHead(200, { "content-type": "application/json" });
  res.end(resultText(frame.id));
}

describe("HTTP/2", () => {
  it("HTTP-05: is spoken when it is allowed and the server offers it, with the same headers", async () => {
    const { transport, seen, sessions } = await setUp(answer);
    const { envelope } = await responseOf(
      run(transport, { name: "é", mirrored: [{ name: "Region", value: "eu" }] }),
    );
    expect(envelope?.status).toBe(200);
    expect(sessions).toHaveLength(1);
    expect(seen[0]?.req.httpVersion).toBe("2.0");
    expect(seen[0]?.req.headers).toMatchObject({
      accept: "application/json, text/event-stream",
      "mcp-method": "tools/call",
      "mcp-name": "=?base64?w6k=?=",
      "mcp-param-region": "eu",
    });
  });

  it("HTTP-05: is not spoken unless it is allowed", async () => {
    const { transport, seen } = await setUp(answer, { tls: { ca: CERT } });
    await responseOf(run(transport));
    expect(seen[0]?.req.httpVersion).toBe("1.1");
  });

  it("HTTP-05: puts many calls on one connection, also the first ones", async () => {
    const all = await setUp();
    const calls = Array.from({ length: 50 }, () => run(all.transport));
    const seen = await Promise.all(calls.map(() => all.next()));
    for (const one of seen.reverse()) answer(one);
    for (const call of calls) expect((await responseOf(call)).response.kind).toBe("result");
    expect(all.connections()).toBe(1);
  });

  it("HTTP-05: over a server that speaks HTTP/1.1 alone, no call waits behind the answer of another", async () => {
    const { createServer } = await import("node:https");
    const held: (() => void)[] = [];
    const server = createServer({ cert: CERT, key: KEY }, (req, res) => {
      let body = "";
      req.on("data", (chunk) => {
        body += chunk;
      });
      req.on("end", () => {
        const frame = JSON.parse(body);
        res.writeHead(200, { "content-type": "text/event-stream" });
        res.flushHeaders();
        if (frame.method === "tools/call") held.push(() => res.end(event(resultText(frame.id))));
        else res.end(event(resultText(frame.id)));
      });
    });
    const stop = await listen(server);
    const { transport } = attach(`https://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, {
      allowH2: true,
      tls: { ca: CERT },
    });
    ends.push(stop, () => transport.close());
    const slow = run(transport);
    await expect.poll(() => held.length).toBe(1);
    for (let count = 0; count < 5; count++) await responseOf(run(transport, { method: "tools/list" }));
    held[0]!();
    await responseOf(slow);
  });

  it("CAN-01: cancelling closes the stream and keeps the connection", async () => {
    const all = await setUp();
    const before = run(all.transport);
    const seen = await all.next();
    before.exchange.cancel("enough");
    await seen.closed;

    const during = run(all.transport);
    const open = await all.next();
    open.res.writeHead(200, { "content-type": "text/event-stream" });
    open.res.write(": hello\n\n");
    const sibling = run(all.transport, { method: "tools/list" });
    const other = await all.next();
    during.exchange.cancel("enough");
    await open.closed;
    answer(other);
    await responseOf(sibling);
    expect(before.ends() + during.ends()).toBe(0);
    expect(all.connections()).toBe(1);
    expect(all.seen).toHaveLength(3);
  });

  it("CAN-01: cancelling calls while the first connection is being made sends none of them", async () => {
    const all = await setUp();
    const calls = Array.from({ length: 10 }, () => run(all.transport));
    for (const call of calls) call.exchange.cancel("enough");
    const last = run(all.transport, { method: "tools/list" });
    answer(await all.next());
    await responseOf(last);
    expect(all.seen.map(({ frame }) => frame.method)).toEqual(["tools/list"]);
  });

  it("a stream that the server resets, and one that ends without a response, are lost", async () => {
    const all = await setUp(({ res, frame }) => {
      if (frame.method === "tools/call") res.stream.close(8);
      else {
        res.writeHead(200, { "content-type": "text/event-stream" });
        res.end();
      }
    });
    expect(await failureOf(run(all.transport))).toMatchObject({
      delivery: "unknown",
      error: { code: "connection-lost" },
    });
    expect(await failureOf(run(all.transport, { method: "x" }))).toMatchObject({ delivery: "unknown" });
  });

  it.each([
    ["is destroyed", (session: ServerHttp2Session) => session.destroy()],
    ["says goodbye", (session: ServerHttp2Session) => session.goaway(0)],
  ])("no request is sent a second time when the connection %s", async (_what, kill) => {
    const all = await setUp();
    const calls = Array.from({ length: 5 }, () => run(all.transport));
    await Promise.all(calls.map(() => all.next()));
    kill(all.sessions[0]!);
    for (const call of calls) {
      expect(await failureOf(call)).toMatchObject({
        delivery: "unknown",
        error: { code: "connection-lost" },
      });
      expect(call.ends()).toBe(1);
    }
    // The next call shows that whatever undici meant to send again has been dropped by now.
    const last = run(all.transport, { method: "tools/list" });
    answer(await all.next());
    await responseOf(last);
    expect(all.seen).toHaveLength(6);
  });

  it("works on a dispatcher of the host", async () => {
    const agent = new Agent({ allowH2: true, pipelining: 10, connect: { ca: CERT } });
    const all = await setUp(answer, { dispatcher: agent, allowH2: true });
    await responseOf(run(all.transport));
    expect(all.seen[0]?.req.httpVersion).toBe("2.0");
    await agent.close();
  });

  it("a certificate that is not trusted is a ConnectError that says what to do, and nothing is sent", async () => {
    const all = await setUp(answer, { allowH2: true });
    const calls = [run(all.transport), run(all.transport)];
    for (const call of calls) {
      const failure = await failureOf(call);
      expect(failure).toMatchObject({ delivery: "not-sent", error: { code: "connect" } });
      expect(failure.error.message).toContain("tls.ca");
    }
    expect(all.seen).toHaveLength(0);
  });
});
