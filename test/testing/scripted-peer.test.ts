import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { createInterface } from "node:readline";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import type { ScriptedPeerOptions, Step } from "../../src/testing/peer-types.ts";
import { complete, elicitForm, inputRequired } from "../../src/testing/replies.ts";
import { createScriptedPeer } from "../../src/testing/scripted-peer.ts";
import type { ResponseFrame } from "../../src/wire.ts";

// Clients here are raw sockets and processes, so that the peer is tested by nothing that is tested with the peer.

function call(id: number, params: object = { name: "t" }): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params });
}

/** Posts one body on a socket of its own. */
function post(url: string, body: string): { response: Promise<IncomingMessage>; abort(): void } {
  const request = httpRequest(url, {
    method: "POST",
    agent: false,
    headers: { "content-type": "application/json", "x-test": "1" },
  });
  const response = once(request, "response").then(([message]) => message as IncomingMessage);
  response.catch(() => {});
  request.on("error", () => {});
  request.end(body);
  return { response, abort: () => request.destroy() };
}

async function textOf(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}

let cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  cleanups = [];
});

function peerFor(script: Step | readonly Step[], options?: ScriptedPeerOptions) {
  const peer = createScriptedPeer(script, options);
  cleanups.push(() => peer.close());
  return peer;
}

describe("over HTTP", () => {
  it("gives each request its step, the last step to all later ones, and keeps the record", async () => {
    const question = inputRequired({ inputRequests: { sure: elicitForm("Sure?") }, requestState: "s" });
    const peer = peerFor([question, complete("done")]);
    const { url } = await peer.http();
    const answers: unknown[] = [];
    for (const id of [1, 2, 3]) {
      const response = await post(url, call(id)).response;
      expect(response.headers["content-type"]).toBe("application/json");
      answers.push(JSON.parse(await textOf(response)));
    }
    expect(answers).toEqual([
      { jsonrpc: "2.0", id: 1, result: question },
      { jsonrpc: "2.0", id: 2, result: complete("done") },
      { jsonrpc: "2.0", id: 3, result: complete("done") },
    ]);
    expect(peer.requests.map((request) => request.id)).toEqual([1, 2, 3]);
    expect(peer.requests[0]).toMatchObject({ method: "tools/call", params: { name: "t" }, text: call(1) });
    expect(peer.requests[0]?.headers).toMatchObject({ "x-test": "1" });
  });

  it("answers server/discover itself, or leaves it to the script", async () => {
    const discover = JSON.stringify({ jsonrpc: "2.0", id: 9, method: "server/discover", params: {} });
    const answered = peerFor({});
    const { url } = await answered.http();
    expect(await textOf(await post(url, discover).response)).toContain('"supportedVersions":["2026-07-28"]');
    expect(answered.requests).toEqual([]);
    expect(answered.received).toEqual([discover]);

    const scripted = peerFor((request, exchange) => exchange.result({ method: request.method }), {
      discover: false,
    });
    const { url: other } = await scripted.http();
    expect(await textOf(await post(other, discover).response)).toContain('"method":"server/discover"');
  });

  it("streams when asked to, and when there is a notification to carry", async () => {
    const peer = peerFor((_request, exchange) => {
      exchange.notify("notifications/progress", { progressToken: 1, progress: 1 });
      exchange.result({ ok: true });
    });
    for (const answer of ["json", "sse"] as const) {
      const { url } = await peer.http({ answer });
      const response = await post(url, call(1)).response;
      expect(response.headers["content-type"]).toBe("text/event-stream");
      expect(await textOf(response)).toBe(
        'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}\n\n' +
          'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{"ok":true}}\n\n',
      );
    }
  });

  it.each([
    { code: -32601, given: undefined, status: 404 },
    { code: -32022, given: undefined, status: 400 },
    { code: -32603, given: undefined, status: 200 },
    { code: -32603, given: 503, status: 503 },
  ])("answers error $code (status given: $given) with status $status", async ({ code, given, status }) => {
    const peer = peerFor((_request, exchange) =>
      exchange.error(code, "no", { why: 1 }, given === undefined ? {} : { status: given }),
    );
    const { url } = await peer.http({ answer: "json" });
    const response = await post(url, call(4)).response;
    expect(response.statusCode).toBe(status);
    expect(JSON.parse(await textOf(response))).toEqual({
      jsonrpc: "2.0",
      id: 4,
      error: { code, message: "no", data: { why: 1 } },
    });
  });

  it("writes what no server writes: raw text, bytes, an HTTP answer in parts, nothing, a reset", async () => {
    const peer = peerFor([
      (_request, exchange) => exchange.raw("not json"),
      async (_request, exchange) => {
        await exchange.bytes("data: ");
        await exchange.bytes("x\n\n");
        exchange.drop();
      },
      (_request, exchange) =>
        exchange.http({ status: 418, headers: { "x-a": "b" }, body: ["a", new Uint8Array([0xff])] }),
      (_request, exchange) => exchange.drop(),
      (_request, exchange) => exchange.crash(),
    ]);
    const { url } = await peer.http();
    expect(await textOf(await post(url, call(1)).response)).toBe("not json");
    expect(await textOf(await post(url, call(2)).response)).toBe("data: x\n\n");
    const odd = await post(url, call(3)).response;
    expect([odd.statusCode, odd.headers["x-a"], await textOf(odd)]).toEqual([418, "b", "a\ufffd"]);
    expect(await textOf(await post(url, call(4)).response)).toBe("");
    await expect(post(url, call(5)).response).rejects.toMatchObject({ code: "ECONNRESET" });
  });

  it.each(["json", "sse"] as const)(
    "cuts an answer into pieces, whole again at the end (%s)",
    async (answer) => {
      const text = '{"jsonrpc":"2.0","id":1,"result":{"text":"žluťoučký 🐎"}}';
      const peer = peerFor((_request, exchange) => exchange.pieces(text, 1));
      const { url } = await peer.http({ answer });
      const body = await textOf(await post(url, call(1)).response);
      expect(body).toBe(answer === "json" ? text : `event: message\ndata: ${text}\n\n`);
    },
  );

  it("tells the script when the client closes the stream", async () => {
    const reasons: string[] = [];
    const peer = peerFor(async (_request, exchange) => {
      reasons.push(await exchange.cancelled);
      assert(exchange.signal.aborted);
    });
    const { url } = await peer.http();
    const { abort } = post(url, call(7));
    await peer.waitFor(1);
    abort();
    await peer.waitForCancelled(1);
    expect(peer.cancelled).toEqual([7]);
    expect(reasons).toEqual(["the client closed the stream"]);
  });

  it("accepts a notification with 202 and refuses GET and DELETE with 405", async () => {
    const peer = peerFor({});
    const { url } = await peer.http();
    const accepted = await post(url, '{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1}}')
      .response;
    expect([accepted.statusCode, await textOf(accepted)]).toEqual([202, ""]);
    expect(peer.notifications).toEqual([{ method: "notifications/x", params: { a: 1 } }]);
    const response = await new Promise<IncomingMessage>((resolve) =>
      httpRequest(url, { method: "GET", agent: false }, resolve).end(),
    );
    expect([response.statusCode, await textOf(response)]).toEqual([405, ""]);
  });
});

interface Child {
  process: ChildProcess;
  lines: AsyncIterator<string>;
  send(text: string): void;
  exit: Promise<[number | null, string | null]>;
}

function start({ command, args }: { command: string; args: string[] }): Child {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"], env: {} });
  child.stdin.on("error", () => {});
  cleanups.push(() => void child.kill("SIGKILL"));
  return {
    process: child,
    lines: createInterface({ input: child.stdout })[Symbol.asyncIterator](),
    send: (text) => void child.stdin.write(`${text}\n`),
    exit: once(child, "exit") as Promise<[number | null, string | null]>,
  };
}

describe("over stdio", () => {
  it("runs scripts in this process behind a real child, which leaves when its stdin ends", async () => {
    const seen: number[] = [];
    const peer = peerFor(({ id, link }, exchange) => {
      seen.push(Number(id));
      exchange.notify("notifications/message", { link });
      exchange.result({ text: "žluťoučký 🐎" });
    });
    const command = await peer.stdio();
    for (const link of [0, 1]) {
      const child = start(command);
      child.send(call(5 + link));
      expect((await child.lines.next()).value).toBe(
        `{"jsonrpc":"2.0","method":"notifications/message","params":{"link":${link}}}`,
      );
      expect((await child.lines.next()).value).toContain(`"id":${5 + link},"result":{"text":"žluťoučký 🐎"}`);
      child.process.stdin?.end();
      expect(await child.exit).toEqual([0, null]);
    }
    expect(seen).toEqual([5, 6]);
  });

  it("sees cancellations by name, and can answer late and twice all the same", async () => {
    const peer = peerFor(async (_request, exchange) => {
      await exchange.cancelled;
      exchange.result({ n: 1 });
      exchange.result({ n: 2 });
    });
    const child = start(await peer.stdio());
    child.send(call(3));
    child.send(
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3,"reason":"enough"}}',
    );
    await peer.waitForCancelled(1);
    expect(peer.cancelled).toEqual([3]);
    expect((await child.lines.next()).value).toContain('"n":1');
    expect((await child.lines.next()).value).toContain('"n":2');
    child.process.stdin?.end();
    await child.exit;
  });

  it.each([
    { end: "drop", exit: [0, null] },
    { end: "crash", exit: [null, "SIGKILL"] },
  ] as const)("$end() ends the child as $exit", async ({ end, exit }) => {
    const peer = peerFor((_request, exchange) => exchange[end]());
    const child = start(await peer.stdio());
    child.send(call(1));
    expect(await child.exit).toEqual(exit);
  });

  it("writes bytes and pieces as they are, and carries 4 MiB each way", async () => {
    const big = "x".repeat(4 * 1024 * 1024);
    const peer = peerFor([
      async (_request, exchange) => {
        await exchange.bytes("noise without end");
        await exchange.bytes("\n");
        await exchange.pieces('{"é":1}', 1);
      },
      (request, exchange) => exchange.result(request.params),
    ]);
    const child = start(await peer.stdio());
    child.send(call(1));
    expect((await child.lines.next()).value).toBe("noise without end");
    expect((await child.lines.next()).value).toBe('{"é":1}');
    child.send(call(2, { big }));
    expect(JSON.parse((await child.lines.next()).value)).toEqual({ jsonrpc: "2.0", id: 2, result: { big } });
    child.process.stdin?.end();
    await child.exit;
  });
});

describe("over WebSocket", () => {
  async function connect(url: string): Promise<{ socket: WebSocket; next(): Promise<string> }> {
    const socket = new WebSocket(url, "mcp");
    cleanups.push(() => socket.terminate());
    const messages: string[] = [];
    socket.on("message", (data) => void messages.push(String(data)));
    socket.on("error", () => {});
    await once(socket, "open");
    return {
      socket,
      async next() {
        while (messages.length === 0) await once(socket, "message");
        return messages.shift() as string;
      },
    };
  }

  it("speaks the subprotocol mcp, one message per text frame, whole again after pieces", async () => {
    const peer = peerFor([complete("ok"), (_request, exchange) => exchange.pieces('{"é":1}', 1)]);
    const { socket, next } = await connect((await peer.websocket()).url);
    expect(socket.protocol).toBe("mcp");
    socket.send(call(1));
    expect(JSON.parse(await next())).toEqual({ jsonrpc: "2.0", id: 1, result: complete("ok") });
    socket.send(call(2));
    expect(await next()).toBe('{"é":1}');
    socket.close();
    await once(socket, "close");
  });

  it("drop() closes with the code given, crash() with none, and a binary frame is refused with 1003", async () => {
    const peer = peerFor([(_r, exchange) => exchange.drop(1011), (_r, exchange) => exchange.crash()]);
    const { url } = await peer.websocket();
    for (const [message, code] of [
      [call(1), 1011],
      [call(2), 1006],
      [Buffer.from("{}"), 1003],
    ] as const) {
      const { socket } = await connect(url);
      socket.send(message);
      expect((await once(socket, "close"))[0]).toBe(code);
    }
  });

  it("tells a gone connection from a cancelled request", async () => {
    const reasons: string[] = [];
    const peer = peerFor(async (_request, exchange) => void reasons.push(await exchange.cancelled));
    const { socket } = await connect((await peer.websocket()).url);
    socket.send(call(1));
    socket.send(call(2));
    socket.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"b"}}');
    await peer.waitForCancelled(1);
    socket.close();
    await once(socket, "close");
    await peer.close();
    expect(peer.cancelled).toEqual([2]);
    expect(reasons).toEqual(["b", "the WebSocket is closed"]);
  });
});

describe("in memory", () => {
  it("delivers after exchange() has returned, and is silent after cancel", async () => {
    const peer = peerFor((request, exchange) => {
      if (request.id === 1) exchange.result({ n: 1 });
    });
    const transport = peer.memory();
    transport.attach({ limits: { messageBytes: 1e6 }, notification() {}, link() {}, anomaly() {} });
    const events: unknown[] = [];
    function exchange(id: number) {
      const request = {
        id,
        method: "tools/call",
        protocolVersion: "2026-07-28",
        body: call(id),
        mirrored: [],
      };
      return transport.exchange(request, {
        notification: () => {},
        response: (frame: ResponseFrame) => void events.push(frame),
        failure: (failure) => void events.push(failure.error.code),
      });
    }
    exchange(1);
    expect(events).toEqual([]);
    const second = exchange(2);
    await peer.waitFor(2);
    expect(events).toEqual([{ kind: "result", id: 1, result: { n: 1 } }]);
    second.cancel("enough");
    expect(peer.cancelled).toEqual([2]);
    exchange(3);
    await peer.waitFor(3);
    await transport.close();
    expect(events.slice(1)).toEqual(["closed"]);
  });
});

describe("close()", () => {
  it("reports a socket that the client left open, and frees it", async () => {
    const peer = createScriptedPeer(complete("ok"), { closeGraceMs: 20 });
    const { url } = await peer.websocket();
    const socket = new WebSocket(url, "mcp");
    socket.on("error", () => {});
    await once(socket, "open");
    await expect(peer.close()).rejects.toThrow(/1 WebSocket\(s\) to 127.0.0.1:\d+ still open/);
    await once(socket, "close");
    await peer.close();
  });

  it("reports a child that still runs by its pid, and ends it", async () => {
    const peer = createScriptedPeer(complete("ok"), { closeGraceMs: 20 });
    const child = start(await peer.stdio());
    child.send(call(1));
    await child.lines.next();
    await expect(peer.close()).rejects.toThrow(`still running: ${child.process.pid}`);
    await child.exit;
  });

  it("rejects with what a script threw, which the client saw as -32603", async () => {
    const peer = createScriptedPeer(() => assert(false, "one is not two"));
    const { url } = await peer.http();
    expect(await textOf(await post(url, call(1)).response)).toContain(
      '"code":-32603,"message":"the script failed: one is not two"',
    );
    await expect(peer.close()).rejects.toThrow("one is not two");
  });

  it("waitFor() says what it waited for", async () => {
    const peer = peerFor({});
    await expect(peer.waitFor(1, 5)).rejects.toThrow("waited 5 ms for 1 requests; 0 came");
  });
});
