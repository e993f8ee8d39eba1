import { inspect } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ExchangeRequest } from "../../src/transport.ts";
import type { HttpTransportOptions } from "../../transports/http.ts";
import {
  answerEvents,
  answerJson,
  attach,
  ends,
  event,
  failureOf,
  run,
  type Seen,
  startBytes,
  startPeer,
} from "./http-peer.ts";

/** All that can be seen of an error: message, stack, properties, causes, JSON. */
function shown(error: unknown): string {
  return `${inspect(error, { depth: 20, showHidden: true, getters: true })}\n${JSON.stringify(error)}`;
}

const SECRETS = ["s3cret-query", "s3cret-token", "s3cret-key", "s3cret-cookie"];
const OPTIONS: HttpTransportOptions = {
  token: "s3cret-token",
  headers: { "X-Api-Key": "s3cret-key", Cookie: "sid=s3cret-cookie" },
};

/** A server that repeats everything it was told, as debugging pages do. */
function echo({ req, body }: Seen): string {
  return `${req.url}\n${JSON.stringify(req.headers)}\n${decodeURIComponent(req.url ?? "")}\n${body}`;
}

describe("SAF-01 B176: no error shows the query, a token or a header", () => {
  it.each<[string, (seen: Seen) => void]>([
    [
      "a status with a page that echoes the request",
      (seen) => {
        seen.res.writeHead(500, { "content-type": "text/plain", "x-request-id": "r" });
        seen.res.end(echo(seen));
      },
    ],
    [
      "a 401 that echoes the request",
      (seen) => {
        seen.res.writeHead(401, { "content-type": "text/plain", "www-authenticate": "Bearer" });
        seen.res.end(echo(seen));
      },
    ],
    [
      "a page whose excerpt ends inside a secret",
      (seen) => {
        seen.res.writeHead(500, { "content-type": "text/plain" });
        seen.res.end("x".repeat(2040) + echo(seen).slice(1));
      },
    ],
    [
      "a redirect that echoes the query",
      (seen) => {
        seen.res.writeHead(302, { location: `http://127.0.0.1:1${seen.req.url}` });
        seen.res.end();
      },
    ],
    [
      "a redirect within the origin",
      (seen) => {
        seen.res.writeHead(301, { location: `/x${seen.req.url}` });
        seen.res.end();
      },
    ],
    [
      "HTML",
      (seen) => {
        seen.res.writeHead(200, { "content-type": "text/html" });
        seen.res.end(echo(seen));
      },
    ],
    [
      "202",
      (seen) => {
        seen.res.writeHead(202);
        seen.res.end();
      },
    ],
    ["another id", (seen) => answerJson(seen, '{"jsonrpc":"2.0","id":0,"result":{}}')],
    [
      "a reset",
      (seen) => {
        seen.res.socket?.resetAndDestroy();
      },
    ],
    [
      "a stream that ends",
      (seen) => {
        answerEvents(seen).end();
      },
    ],
    [
      "an answer above the limit",
      (seen) => {
        answerEvents(seen).end(event("x".repeat(20_000)));
      },
    ],
  ])("%s", async (_what, handler) => {
    const peer = await startPeer(handler);
    const { transport } = attach(`${peer.url}?token=s3cret-query`, OPTIONS, 10_000);
    ends.push(peer.stop, () => transport.close());
    const failure = await failureOf(run(transport));
    expect(transport.peer).toBe(peer.url);
    expect(failure.error.message).toContain(peer.origin);
    for (const secret of SECRETS) expect(shown(failure)).not.toContain(secret);
    expect(shown(failure)).not.toContain("s3cret");
  });

  it("connection refused, closed, and bytes that are not HTTP", async () => {
    const gone = await startPeer();
    await gone.stop();
    const noise = await startBytes((socket, request) => {
      socket.write(`SSH ${request}`);
    });
    ends.push(noise.stop);
    for (const url of [gone.url, noise.url]) {
      const { transport } = attach(`${url}?token=s3cret-query`, OPTIONS);
      ends.push(() => transport.close());
      expect(shown(await failureOf(run(transport)))).not.toContain("s3cret");
      await transport.close();
      expect(shown(await failureOf(run(transport)))).not.toContain("s3cret");
    }
  });

  it("neither the transport nor a running exchange shows a secret when it is printed", async () => {
    const peer = await startPeer();
    const { transport } = attach(`${peer.url}?token=s3cret-query`, OPTIONS);
    ends.push(peer.stop, () => transport.close());
    const running = run(transport);
    expect(shown(running.exchange)).not.toContain("s3cret");
    expect(shown(transport)).not.toContain("s3cret");
    running.exchange.cancel("seen enough");
  });
});

describe("SAF-02", () => {
  it("whatever a server writes, an exchange has exactly one end, and nothing is thrown elsewhere", async () => {
    const pieces = [
      "HTTP/1.1 200 OK\r\n",
      "HTTP/1.1 100 Continue\r\n\r\n",
      "HTTP/1.1 204 No Content\r\n\r\n",
      "HTTP/1.1 307 Temporary Redirect\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 2\r\n\r\n{}",
      "Content-Type: application/json\r\n",
      "Content-Type: text/event-stream\r\n",
      "Content-Encoding: gzip\r\n",
      "Content-Encoding: br\r\n",
      "Content-Length: 5\r\n",
      "Content-Length: -1\r\n",
      "Transfer-Encoding: chunked\r\n",
      "WWW-Authenticate: ,,=\r\n",
      "__proto__: x\r\n",
      "\r\n",
      "5\r\nhello\r\n",
      "0\r\n\r\n",
      "ffffffffffffffff\r\n",
      'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n',
      'data: {"jsonrpc":"2.0","method":"ping","id":1}\n\n',
      '{"jsonrpc":"2.0","id":1,"result":{}}',
      "\x1f\x8b\x08\x00",
      "\xff\xfe\x00",
    ];
    let script: readonly string[] = [];
    const peer = await startBytes((socket) => {
      for (const piece of script) socket.write(Buffer.from(piece, "latin1"));
      socket.end();
    });
    const { transport } = attach(peer.url, { token: () => "t" });
    ends.push(peer.stop, () => transport.close());
    const stray: unknown[] = [];
    const keep = (error: unknown) => stray.push(error);
    process.on("unhandledRejection", keep);
    process.on("uncaughtExceptionMonitor", keep);
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(fc.constantFrom(...pieces), { maxLength: 8 }), async (chosen) => {
          script = chosen;
          const running = run(transport, { id: 1 });
          await running.end;
          expect(running.ends()).toBe(1);
        }),
        { numRuns: 300 },
      );
    } finally {
      process.off("unhandledRejection", keep);
      process.off("uncaughtExceptionMonitor", keep);
    }
    expect(stray).toEqual([]);
  });

  it("a dispatcher of the host that throws or answers at once is no harm", async () => {
    const { Dispatcher } = await import("undici");
    class Odd extends Dispatcher {
      throws = true;
      override dispatch(
        _options: unknown,
        handler: Parameters<InstanceType<typeof Dispatcher>["dispatch"]>[1],
      ): boolean {
        if (this.throws) throw new Error("not today");
        const controller = {
          aborted: false,
          paused: false,
          reason: null,
          rawHeaders: null,
          rawTrailers: null,
          abort() {},
          pause() {},
          resume() {},
        } as unknown as Parameters<NonNullable<typeof handler.onRequestStart>>[0];
        handler.onRequestStart?.(controller, {});
        handler.onResponseStart?.(controller, 200, { "content-type": "application/json" });
        handler.onResponseData?.(controller, Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}'));
        handler.onResponseEnd?.(controller, {});
        return true;
      }
    }
    const dispatcher = new Odd();
    const { transport } = attach("http://127.0.0.1:1/mcp", { dispatcher });
    expect(await failureOf(run(transport, { id: 1 }))).toMatchObject({ delivery: "not-sent" });
    dispatcher.throws = false;
    expect(await run(transport, { id: 1 }).end).toMatchObject({ response: { kind: "result" } });
    await transport.close();
  });

  it("requests that nothing can be made of fail and do not throw", async () => {
    const peer = await startPeer(answerJson);
    const { transport } = attach(peer.url);
    ends.push(peer.stop, () => transport.close());
    for (const over of [{ mirrored: null }, { name: "\ud800" }, { body: 5 }]) {
      const running = run(transport, { ...over } as unknown as Partial<ExchangeRequest>);
      if ("name" in over) running.exchange.cancel("a lone surrogate is sent as U+FFFD");
      else expect((await failureOf(running)).delivery).toBe("not-sent");
    }
  });
});
