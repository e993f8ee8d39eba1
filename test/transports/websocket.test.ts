import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { ClosedError, ConnectError, ConnectionLostError, LimitError, UsageError } from "../../src/errors.ts";
import type { AuthChallenge, Transport } from "../../src/transport.ts";
import { type WebSocketOptions, webSocketTransport } from "../../transports/websocket.ts";
import { type Recorder, record } from "./recorder.ts";

interface Frame {
  readonly id: number;
  readonly method: string;
  readonly params: Record<string, unknown>;
}

/** A WebSocket server that echoes, and lets a test see and steer each connection. */
interface TestServer {
  readonly url: string;
  readonly upgrades: IncomingMessage[];
  readonly sockets: WebSocket[];
  readonly frames: Frame[];
  readonly closes: number[];
}

const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function listen(server: Server | TcpServer): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => new Promise((resolve) => server.close(resolve)));
  return (server.address() as AddressInfo).port;
}

async function serve(
  act: (socket: WebSocket, frame: Frame) => void = () => {},
  options: { autoPong?: boolean; maxPayload?: number } = {},
): Promise<TestServer> {
  const http = createServer();
  const port = await listen(http);
  const server: TestServer = {
    url: `ws://127.0.0.1:${port}/mcp`,
    upgrades: [],
    sockets: [],
    frames: [],
    closes: [],
  };
  const webSockets = new WebSocketServer({ server: http, ...options });
  webSockets.on("connection", (socket, request) => {
    server.upgrades.push(request);
    server.sockets.push(socket);
    socket.on("error", () => {});
    socket.on("close", (code) => server.closes.push(code));
    socket.on("message", (data) => {
      const frame = JSON.parse(String(data)) as Frame;
      server.frames.push(frame);
      if (frame.method === "echo") reply(socket, frame);
      else act(socket, frame);
    });
  });
  cleanups.push(async () => {
    for (const socket of webSockets.clients) socket.terminate();
    webSockets.close();
  });
  return server;
}

function reply(socket: WebSocket, { id, params }: Frame): void {
  socket.send(JSON.stringify({ jsonrpc: "2.0", id, result: params }));
}

/** A server that answers every upgrade with one HTTP response. */
async function refuse(status: number, headers: Record<string, string> = {}): Promise<string> {
  const http = createServer();
  http.on("upgrade", (_request, socket) => {
    const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(
      `HTTP/1.1 ${status} Refused\r\n${fields.join("")}Content-Length: 0\r\nConnection: close\r\n\r\n`,
    );
  });
  return `ws://127.0.0.1:${await listen(http)}/mcp`;
}

function connect(
  url: string,
  options: WebSocketOptions & { messageBytes?: number } = {},
): Recorder & { transport: Transport } {
  const { messageBytes, ...more } = options;
  const transport = webSocketTransport(url, { closeMs: 200, ...more });
  cleanups.push(() => transport.close());
  return Object.assign(record(transport, messageBytes), { transport });
}

describe("messages", () => {
  it("WS-01: one message per text frame over one connection, made when the first call needs it", async () => {
    const server = await serve();
    const { send, links, transport } = connect(server.url);
    expect(links).toEqual([]);
    const calls = [send("echo", { n: 1 }), send("echo", { text: "é€😀" }), send("echo", { n: 3 })];
    expect(await Promise.all(calls.map((call) => call.result))).toEqual([
      { n: 1 },
      { text: "é€😀" },
      { n: 3 },
    ]);
    expect(server.upgrades).toHaveLength(1);
    expect(server.upgrades[0]!.headers["sec-websocket-protocol"]).toBe("mcp");
    expect(server.upgrades[0]!.headers["sec-websocket-extensions"]).toBeUndefined();
    await transport.close();
    expect(links).toEqual(["connecting", "up", "closed"]);
  });

  it("WS-01 B133: a text frame that is no single message is told, and the connection goes on", async () => {
    const server = await serve((socket, frame) => {
      socket.send("not JSON");
      socket.send(
        `{"jsonrpc":"2.0","id":${frame.id},"result":{}}\n{"jsonrpc":"2.0","method":"notifications/x"}`,
      );
      reply(socket, frame);
    });
    const { send, anomalies } = connect(server.url);
    const call = send("noisy", { fine: true });
    expect(await call.result).toEqual({ fine: true });
    expect(anomalies.map(({ kind }) => kind)).toEqual(["bad-frame", "bad-frame"]);
    expect(call.ends).toHaveLength(1);
  });

  it("WS-01 B133: a message in fragments that are cut inside a character arrives whole", async () => {
    const server = await serve((socket, { id }) => {
      const bytes = Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, result: { text: "€😀" } }));
      for (const [at, byte] of bytes.entries()) {
        socket.send(Buffer.of(byte), { binary: false, fin: at === bytes.length - 1 });
      }
    });
    const { send } = connect(server.url);
    expect(await send("fragments").result).toEqual({ text: "€😀" });
  });

  it("WS-01 B133: a binary frame closes the connection with 1003, whatever is in it", async () => {
    const server = await serve((socket, { id }) =>
      socket.send(Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, result: {} }))),
    );
    const { send } = connect(server.url);
    const { error } = await send("binary").failure;
    expect(error).toBeInstanceOf(ConnectionLostError);
    expect(error).toMatchObject({ closeCode: 1003, delivery: "unknown" });
    expect((await send("echo").failure).error).toMatchObject({ closeCode: 1003, delivery: "not-sent" });
    expect(server.upgrades).toHaveLength(1);
    while (server.closes.length === 0)
      await new Promise((resolve) => server.sockets[0]!.once("close", resolve));
    expect(server.closes).toEqual([1003]);
  });

  it("WS-01 CAN-02: cancelling a written request sends one notification; one that was not written sends nothing", async () => {
    const server = await serve();
    const { send } = connect(server.url);
    send("never").handle.cancel("changed my mind");
    const call = send("silent");
    await send("echo").result;
    call.handle.cancel("enough");
    call.handle.cancel("enough");
    await send("echo").result;
    expect(server.frames.map(({ method }) => method)).toEqual([
      "silent",
      "echo",
      "notifications/cancelled",
      "echo",
    ]);
    expect(server.frames[2]!.params).toEqual({ requestId: call.id, reason: "enough" });
  });

  it("LIM-01 WS-02: a message over the limit closes with 1009 and is a LimitError; the next call connects anew", async () => {
    const server = await serve((socket, frame) =>
      reply(socket, { ...frame, params: { text: "x".repeat(20_000) } }),
    );
    const { send } = connect(server.url, { messageBytes: 10_000 });
    const other = send("echo");
    await other.result;
    const { error } = await send("big").failure;
    expect(error).toBeInstanceOf(LimitError);
    expect(error).toMatchObject({ limit: "messageBytes", allowed: 10_000, delivery: "unknown" });
    expect(await send("echo", { again: true }).result).toEqual({ again: true });
    expect(server.closes).toEqual([1009]);
  });
});

describe("the upgrade", () => {
  it("WS-01: carries the headers and the bearer token; functions are given the context of the call", async () => {
    const server = await serve();
    const fixed = connect(server.url, {
      headers: { "X-Tenant": "blue", Authorization: "Basic bm8=", "Sec-WebSocket-Protocol": "other" },
      token: "t0ken",
    });
    await fixed.send("echo").result;
    expect(server.upgrades[0]!.headers).toMatchObject({
      "x-tenant": "blue",
      authorization: "Bearer t0ken",
      "sec-websocket-protocol": "mcp",
    });
    const made = connect(server.url, {
      headers: ({ context }) => ({ "X-User": String(context) }),
      token: async ({ context }) => `token-of-${String(context)}`,
    });
    await made.send("echo", {}, { context: "ada" }).result;
    expect(server.upgrades[1]!.headers).toMatchObject({
      "x-user": "ada",
      authorization: "Bearer token-of-ada",
    });
  });

  const challenged = { "WWW-Authenticate": 'Bearer error="invalid_token", scope="mcp"' };
  const challenge: AuthChallenge = {
    status: 401,
    scheme: "bearer",
    params: { error: "invalid_token", scope: "mcp" },
  };

  it("WS-01 B134: a 401 is handed on as a challenge when a token function may answer it, which then hears it", async () => {
    const url = await refuse(401, challenged);
    const heard: unknown[] = [];
    const { send } = connect(url, {
      token: (call) => {
        heard.push(call);
        return "t0ken";
      },
    });
    const failure = await send("echo").failure;
    expect(failure).toMatchObject({ delivery: "not-sent", challenge, error: { status: 401 } });
    expect(failure.error).toBeInstanceOf(ConnectError);
    expect(failure.error.message).not.toContain("t0ken");
    await send("echo", {}, { challenge }).failure;
    expect(heard).toEqual([{ context: undefined }, { context: undefined, challenge }]);
  });

  it("WS-01 B134: with a fixed token there is no challenge to answer, only the error", async () => {
    const { send } = connect(await refuse(401, challenged), { token: "t0ken" });
    const failure = await send("echo").failure;
    expect(failure.challenge).toBeUndefined();
    expect(failure.error).toMatchObject({ code: "connect", status: 401, delivery: "not-sent" });
  });

  const refusals: {
    status: number;
    headers?: Record<string, string>;
    message: RegExp;
    retryAfterMs?: number;
  }[] = [
    { status: 404, message: /HTTP 404.*check the path/ },
    {
      status: 302,
      headers: { Location: "ws://127.0.0.1:1/" },
      message: /HTTP 302.*redirects are not followed/,
    },
    { status: 503, headers: { "Retry-After": "2" }, message: /HTTP 503/, retryAfterMs: 2000 },
    { status: 200, message: /HTTP 200/ },
  ];
  for (const { status, headers, message, retryAfterMs } of refusals) {
    it(`WS-01 B134: refused with ${status} is a ConnectError with the status, for every waiting call`, async () => {
      const { send, links } = connect(await refuse(status, headers));
      for (const call of [send("echo"), send("echo")]) {
        const failure = await call.failure;
        expect(failure.error).toBeInstanceOf(ConnectError);
        expect(failure.error).toMatchObject({ status, delivery: "not-sent" });
        expect(failure.error.message).toMatch(message);
        expect(failure.retryAfterMs).toBe(retryAfterMs);
      }
      expect(links).toEqual(["connecting", "down"]);
    });
  }

  it("WS-01: a server that does not choose the subprotocol is not spoken to", async () => {
    const http = createServer();
    const webSockets = new WebSocketServer({ server: http, handleProtocols: () => false });
    const url = `ws://127.0.0.1:${await listen(http)}/`;
    cleanups.push(async () => webSockets.close());
    const { send } = connect(url);
    expect((await send("echo").failure).error).toMatchObject({
      code: "connect",
      message: expect.stringMatching(/subprotocol/),
    });
  });

  it("WS-01: refused connections, silence, and functions that fail are ConnectErrors", async () => {
    const gone = createServer();
    const port = await listen(gone);
    await new Promise((resolve) => gone.close(resolve));
    const refused = connect(`ws://127.0.0.1:${port}/mcp`);
    expect((await refused.send("echo").failure).error).toMatchObject({
      code: "connect",
      message: expect.stringMatching(/ECONNREFUSED/),
    });

    const silent = createTcpServer((socket) => cleanups.push(async () => socket.destroy()));
    const timedOut = connect(`ws://127.0.0.1:${await listen(silent)}/mcp`, { handshakeMs: 50 });
    expect((await timedOut.send("echo").failure).error).toMatchObject({
      code: "connect",
      message: expect.stringMatching(/timed out/),
    });

    const server = await serve();
    const boom = () => {
      throw new Error("no keychain");
    };
    for (const options of [{ token: boom }, { headers: boom }, { headers: () => ({ "X-User": "Marić" }) }]) {
      const { error, delivery } = await connect(server.url, options).send("echo").failure;
      expect(error).toBeInstanceOf(ConnectError);
      expect(delivery).toBe("not-sent");
    }
    expect(server.upgrades).toEqual([]);
  });

  it("SAF-01: neither query nor credentials of the URL are in peer, errors or their causes", async () => {
    const url = await refuse(403);
    const { send, transport } = connect(`${url}?key=hunter2`);
    const { error } = await send("echo").failure;
    expect(transport.peer).toBe(url);
    expect(`${error.message} ${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`).not.toContain(
      "hunter2",
    );
    for (const bad of ["ws://user:hunter2@localhost/", "http://localhost/?hunter2", "hunter2"]) {
      let thrown: unknown;
      try {
        webSocketTransport(bad);
      } catch (caught) {
        thrown = caught;
      }
      expect(thrown).toBeInstanceOf(UsageError);
      expect(String(thrown)).not.toContain("hunter2");
    }
  });

  it("options that cannot work are a UsageError at once, without their values", () => {
    const url = "ws://127.0.0.1/";
    for (const options of [{ token: "two words" }, { headers: { "X-User": "Marić" } }, { pingMs: -1 }]) {
      expect(() => webSocketTransport(url, options as WebSocketOptions)).toThrow(UsageError);
    }
    expect(() => webSocketTransport(url, { headers: { "X-User": "Marić" } })).toThrow(/X-User(?!.*Marić)/);
  });
});

describe("loss", () => {
  it("WS-02 B131: when the socket breaks, all in flight fail once as unknown, and the next call connects anew", async () => {
    const server = await serve();
    const { send, links, causes } = connect(server.url);
    await send("echo").result;
    const calls = [send("a"), send("b"), send("c")];
    await send("echo").result;
    server.sockets[0]!.terminate();
    for (const call of calls) {
      const { error, delivery } = await call.failure;
      expect(error).toBeInstanceOf(ConnectionLostError);
      expect(error).toMatchObject({ closeCode: 1006, delivery: "unknown" });
      expect(delivery).toBe("unknown");
    }
    expect(await send("echo", { again: true }).result).toEqual({ again: true });
    expect(calls.map(({ ends }) => ends.length)).toEqual([1, 1, 1]);
    expect(links).toEqual(["connecting", "up", "down", "connecting", "up"]);
    expect(causes[2]).toBeInstanceOf(ConnectionLostError);
  });

  for (const code of [1000, 1001, 1011, 1012]) {
    it(`WS-02: after a close with ${code} the next call connects anew`, async () => {
      const server = await serve((socket) => socket.close(code, "bye"));
      const { send } = connect(server.url);
      const { error } = await send("close").failure;
      expect(error).toMatchObject({ closeCode: code, delivery: "unknown" });
      expect(error.message).toContain(`${code} (bye)`);
      await send("echo").result;
      expect(server.upgrades).toHaveLength(2);
    });
  }

  for (const code of [1002, 1003, 1007, 1008, 1009]) {
    it(`WS-02: after a close with ${code} it never connects again, and says how to get out`, async () => {
      const server = await serve((socket) => socket.close(code));
      const { send, links } = connect(server.url);
      expect((await send("close").failure).error).toMatchObject({ closeCode: code, delivery: "unknown" });
      for (let index = 0; index < 3; index++) {
        const { error, delivery } = await send("echo").failure;
        expect(error).toMatchObject({
          closeCode: code,
          delivery: "not-sent",
          message: expect.stringMatching(/new transport/),
        });
        expect(delivery).toBe("not-sent");
      }
      expect(server.upgrades).toHaveLength(1);
      expect(links).toEqual(["connecting", "up", "down"]);
    });
  }

  it("WS-02: text that is not UTF-8 is a broken protocol, and not retried", async () => {
    const server = await serve((socket) => socket.send(Buffer.from([0xff, 0xfe]), { binary: false }));
    const { send } = connect(server.url);
    expect((await send("bad").failure).error).toMatchObject({ code: "connection-lost", closeCode: 1007 });
    expect((await send("echo").failure).error).toMatchObject({ closeCode: 1007, delivery: "not-sent" });
  });

  it("WS-02: connections in a row wait longer each time, and calls share the next one", async () => {
    const server = await serve((socket) => socket.terminate());
    const { send } = connect(server.url, { reconnect: { initialMs: 60, maxMs: 200 } });
    const delays: number[] = [];
    for (let index = 0; index < 4; index++) {
      const asked = performance.now();
      await Promise.all([send("echo").result, send("echo").result]);
      delays.push(performance.now() - asked);
      await send("die").failure;
    }
    expect(server.upgrades).toHaveLength(4);
    // Jitter takes away at most a half: the third waits 30 to 60 ms, the fourth 60 to 120 ms.
    expect(delays[2]).toBeGreaterThan(29);
    expect(delays[3]).toBeGreaterThan(59);
  });

  it("WS-02: with reconnect false, later calls fail with the loss", async () => {
    const server = await serve((socket) => socket.close(1001));
    const { send } = connect(server.url, { reconnect: false });
    await send("close").failure;
    expect((await send("echo").failure).error).toMatchObject({ closeCode: 1001, delivery: "not-sent" });
    expect(server.upgrades).toHaveLength(1);
  });
});

describe("keep-alive", () => {
  it("WS-02: a peer that goes silent is found by a ping, and its calls fail", async () => {
    const server = await serve(() => {}, { autoPong: false });
    const { send, links } = connect(server.url, { pingMs: 20, pongMs: 30 });
    await send("echo").result;
    const { error } = await send("silent").failure;
    expect(error).toBeInstanceOf(ConnectionLostError);
    expect(error).toMatchObject({
      delivery: "unknown",
      message: expect.stringMatching(/no ping within 30 ms/),
    });
    await send("echo").result;
    expect(links).toEqual(["connecting", "up", "down", "connecting", "up"]);
  });

  it("WS-02: a message that is still coming in counts as a sign of life", async () => {
    const parts = 8;
    const server = await serve(
      (socket, { id }) => {
        const bytes = Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, result: { text: "x".repeat(800) } }));
        const size = Math.ceil(bytes.length / parts);
        let at = 0;
        const timer = setInterval(() => {
          const fin = at + size >= bytes.length;
          socket.send(bytes.subarray(at, at + size), { binary: false, fin });
          at += size;
          if (fin) clearInterval(timer);
        }, 25);
      },
      { autoPong: false },
    );
    const { send, links } = connect(server.url, { pingMs: 10, pongMs: 60 });
    expect(await send("slow").result).toEqual({ text: "x".repeat(800) });
    expect(links).toEqual(["connecting", "up"]);
  });

  it("WS-02 B137: a server that never pings keeps its connection for as long as it answers ours", async () => {
    const server = await serve();
    const { send } = connect(server.url, { pingMs: 5, pongMs: 100 });
    await send("echo").result;
    let pings = 0;
    await new Promise<void>((resolve) => {
      server.sockets[0]!.on("ping", () => ++pings === 3 && resolve());
    });
    await send("echo").result;
    expect(server.upgrades).toHaveLength(1);
  });
});

describe("back-pressure", () => {
  it("WS-02 B136: to a server that stops reading, memory stays bounded, calls are refused, and cancelled ones leave the queue", async () => {
    const server = await serve((socket, { method }) => {
      if (method === "stop reading") socket.pause();
    });
    const { send } = connect(server.url, { outboundBytes: 8_000_000 });
    await send("echo").result;
    send("stop reading");
    await new Promise<void>((resolve) => {
      const check = () => (server.sockets[0]!.isPaused ? resolve() : setImmediate(check));
      check();
    });
    const before = process.memoryUsage().arrayBuffers;
    const text = "x".repeat(1_000_000);
    const calls: ReturnType<typeof send>[] = [];
    for (let index = 0; index < 300; index++) {
      calls.push(send("big", { text }));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(30_000_000);
    const refused = calls.filter(({ ends }) => ends.length > 0);
    expect(refused.length).toBeGreaterThan(270);
    expect((await refused[0]!.failure).error).toMatchObject({
      code: "limit",
      limit: "outboundBytes",
      delivery: "not-sent",
    });
    const waiting = calls.filter(({ ends }) => ends.length === 0);
    for (const call of waiting) call.handle.cancel("enough");
    const next = send("echo", { fine: true });
    server.sockets[0]!.resume();
    expect(await next.result).toEqual({ fine: true });
    // What was written before the buffer was full went out, with its cancel; the rest of the queue was dropped.
    const big = server.frames.filter(({ method }) => method === "big").length;
    expect(big).toBeLessThan(waiting.length);
    expect(server.frames.filter(({ method }) => method === "notifications/cancelled")).toHaveLength(big);
  });
});

describe("close", () => {
  it("WS-01: says goodbye with 1000, fails what is pending as closed, and never connects again", async () => {
    const server = await serve();
    const { send, transport, links } = connect(server.url);
    const call = send("silent");
    await send("echo").result;
    await transport.close();
    expect((await call.failure).error).toBeInstanceOf(ClosedError);
    expect((await call.failure).delivery).toBe("unknown");
    expect(server.closes).toEqual([1000]);
    expect((await send("echo").failure).error).toBeInstanceOf(ClosedError);
    expect(server.upgrades).toHaveLength(1);
    expect(links).toEqual(["connecting", "up", "closed"]);
  });

  it("WS-01: is bounded when the peer does not say goodbye", async () => {
    const server = await serve((socket) => socket.pause());
    const { send, transport } = connect(server.url, { closeMs: 60 });
    await send("echo").result;
    send("stop reading");
    const asked = performance.now();
    await transport.close();
    expect(performance.now() - asked).toBeLessThan(500);
  });

  it("WS-01: while the upgrade is under way, and while the token is awaited", async () => {
    const silent = createTcpServer((socket) => cleanups.push(async () => socket.destroy()));
    const url = `ws://127.0.0.1:${await listen(silent)}/mcp`;
    const upgrading = connect(url);
    const call = upgrading.send("echo");
    await new Promise((resolve) => silent.once("connection", resolve));
    await upgrading.transport.close();
    expect(await call.failure).toMatchObject({ delivery: "not-sent", error: { code: "closed" } });

    const server = await serve();
    let give!: (token: string) => void;
    const token = new Promise<string>((resolve) => {
      give = resolve;
    });
    const waiting = connect(server.url, { token: () => token });
    const second = waiting.send("echo");
    await waiting.until(() => waiting.links.includes("connecting"));
    await waiting.transport.close();
    give("late");
    expect((await second.failure).error).toBeInstanceOf(ClosedError);
    await connect(server.url).send("echo").result;
    expect(server.upgrades).toHaveLength(1);
  });
});

describe("docs/websocket-binding.md", () => {
  it("WS-01: the minimal server of the page serves this transport", async () => {
    const page = await readFile(new URL("../../docs/websocket-binding.md", import.meta.url), "utf8");
    const code = /```js\n([\s\S]*?)```/.exec(page)![1]!;
    const aborted: unknown[] = [];
    const handle = (method: string, params: unknown, signal: AbortSignal) =>
      method === "echo"
        ? { result: params }
        : new Promise((resolve) => {
            signal.addEventListener("abort", () => {
              aborted.push(method);
              resolve({ result: {} });
            });
          });
    const run = new Function(
      "WebSocketServer",
      "handle",
      `${code.replace(/^import .*$/m, "").replace("port: 8080", 'host: "127.0.0.1", port: 0')}; return server;`,
    );
    const server = run(WebSocketServer, handle) as WebSocketServer;
    cleanups.push(async () => server.close());
    await new Promise((resolve) => server.once("listening", resolve));
    const { send, transport } = connect(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const call = send("slow");
    expect(await send("echo", { n: 1 }).result).toEqual({ n: 1 });
    call.handle.cancel("enough");
    await send("echo").result;
    expect(aborted).toEqual(["slow"]);
    await transport.close();
  });
});
