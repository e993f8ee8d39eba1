/** Real servers on the loopback for the HTTP tests, and a sink that keeps what it was given. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createNetServer, type Server, type Socket } from "node:net";
import { afterEach } from "vitest";
import type {
  AnomalyKind,
  Envelope,
  Exchange,
  ExchangeFailure,
  ExchangeRequest,
  ExchangeSink,
  NotificationFrame,
  ResponseFrame,
  Transport,
} from "../../src/transport.ts";
import { type HttpTransportOptions, httpTransport } from "../../transports/http.ts";

/** One request as the server saw it. */
export interface Seen {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly body: string;
  readonly frame: { id: number; method: string };
  /** Resolves when the client closed the stream. */
  readonly closed: Promise<void>;
}

/** A server whose end checks that the client left no socket open. */
export interface Peer {
  readonly url: string;
  readonly origin: string;
  readonly seen: Seen[];
  /** How many connections were ever accepted. */
  readonly connections: () => number;
  /** The next request that no one took yet. */
  next(): Promise<Seen>;
  stop(): Promise<void>;
}

/** Starts an HTTP server. Without a handler requests are only kept for `next`. */
export async function startPeer(handler?: (seen: Seen) => void): Promise<Peer> {
  const seen: Seen[] = [];
  const waiting: ((one: Seen) => void)[] = [];
  let taken = 0;
  let accepted = 0;
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on("data", (chunk: Buffer) => chunks.push(chunk));
    req.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      const closed = new Promise<void>((resolve) => {
        res.on("close", () => resolve());
      });
      const one = { req, res, body, frame: JSON.parse(body || "{}"), closed };
      seen.push(one);
      waiting.shift()?.(seen[taken++]!);
      handler?.(one);
    });
  });
  server.on("connection", () => accepted++);
  const stop = await listen(server);
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: `${origin}/mcp`,
    origin,
    seen,
    connections: () => accepted,
    next: () =>
      taken < seen.length
        ? Promise.resolve(seen[taken++]!)
        : new Promise((resolve) => {
            waiting.push(resolve);
          }),
    stop,
  };
}

/** Starts a bare TCP server that gives a socket to `answer` once a whole HTTP request has come. */
export async function startBytes(
  answer: (socket: Socket, request: string) => void,
): Promise<{ url: string; requests: string[]; stop(): Promise<void> }> {
  const requests: string[] = [];
  const server = createNetServer((socket) => {
    let text = "";
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      const head = text.indexOf("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? "0");
      if (head === -1 || text.length < head + 4 + length) return;
      const request = text;
      text = "";
      requests.push(request);
      answer(socket, request);
    });
  });
  const stop = await listen(server);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, requests, stop };
}

/** Listens, and gives a function that waits for every socket to be gone. */
export async function listen(server: Server): Promise<() => Promise<void>> {
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  return async () => {
    let leaked = 0;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    const leak = setTimeout(() => {
      leaked = open.size;
      for (const socket of open) socket.destroy();
    }, 1500);
    await closed;
    clearTimeout(leak);
    if (leaked > 0) throw new Error(`the client left ${leaked} socket(s) open`);
  };
}

/** How an exchange ended. */
export type End =
  | { readonly response: ResponseFrame; readonly envelope: Envelope | undefined }
  | { readonly failure: ExchangeFailure };

/** A running exchange and what its sink was given. */
export interface Running {
  readonly exchange: Exchange;
  readonly request: ExchangeRequest;
  readonly notifications: NotificationFrame[];
  readonly end: Promise<End>;
  /** How many ends were delivered. */
  readonly ends: () => number;
}

let lastId = 0;

/** A request of the kind the engine makes. */
export function makeRequest(over: Partial<ExchangeRequest> = {}): ExchangeRequest {
  const id = over.id ?? ++lastId;
  const method = over.method ?? "tools/call";
  return {
    id,
    method,
    protocolVersion: "2026-07-28",
    body: JSON.stringify({ jsonrpc: "2.0", id, method, params: {} }),
    mirrored: [],
    ...over,
  };
}

/** Starts an exchange. */
export function run(
  transport: Transport,
  over: Partial<ExchangeRequest> = {},
  hooks: Partial<ExchangeSink> = {},
): Running {
  const request = makeRequest(over);
  const notifications: NotificationFrame[] = [];
  let ends = 0;
  let returned = false;
  let settle: (end: End) => void = () => {};
  const end = new Promise<End>((resolve) => {
    settle = resolve;
  });
  const finish = (value: End) => {
    if (!returned) throw new Error("the sink was called before exchange() returned");
    ends++;
    settle(value);
  };
  const exchange = transport.exchange(request, {
    notification(frame) {
      notifications.push(frame);
      hooks.notification?.(frame);
    },
    response(response, envelope) {
      finish({ response, envelope });
      hooks.response?.(response, envelope);
    },
    failure(failure) {
      finish({ failure });
      hooks.failure?.(failure);
    },
  });
  returned = true;
  return { exchange, request, notifications, end, ends: () => ends };
}

/** The failure that an exchange ended with. */
export async function failureOf(running: Running): Promise<ExchangeFailure> {
  const end = await running.end;
  if (!("failure" in end)) throw new Error(`expected a failure, got ${JSON.stringify(end)}`);
  return end.failure;
}

/** The response that an exchange ended with. */
export async function responseOf(
  running: Running,
): Promise<{ response: ResponseFrame; envelope: Envelope | undefined }> {
  const end = await running.end;
  if ("failure" in end) throw end.failure.error;
  return end;
}

/** An attached transport with the anomalies it told. */
export interface Attached {
  readonly transport: Transport;
  readonly anomalies: { kind: AnomalyKind; detail: unknown }[];
}

/** Makes a transport and attaches it. */
export function attach(
  url: string,
  options: HttpTransportOptions = {},
  messageBytes = 16 * 1024 * 1024,
): Attached {
  const transport = httpTransport(url, options);
  const anomalies: { kind: AnomalyKind; detail: unknown }[] = [];
  transport.attach({
    limits: { messageBytes },
    notification() {
      throw new Error("over HTTP no notification is outside an exchange");
    },
    link() {},
    anomaly(kind, detail) {
      anomalies.push({ kind, detail });
    },
  });
  return { transport, anomalies };
}

/** The text of a result for a request. */
export function resultText(id: unknown, result: object = { resultType: "complete" }): string {
  return JSON.stringify({ jsonrpc: "2.0", id, result });
}

/** One SSE event. */
export function event(data: string): string {
  return `data: ${data}\n\n`;
}

/** Answers with JSON. */
export function answerJson(seen: Seen, text = resultText(seen.frame.id), status = 200): void {
  seen.res.writeHead(status, { "content-type": "application/json" });
  seen.res.end(text);
}

/** Starts an event stream. */
export function answerEvents(seen: Seen, status = 200): ServerResponse {
  seen.res.writeHead(status, { "content-type": "text/event-stream" });
  seen.res.flushHeaders();
  return seen.res;
}

/** What a test leaves to be ended, the last first. */
export const ends: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** A server and a transport to it. The transport closes first, and the server then finds no socket left. */
export async function setUp(
  handler?: (seen: Seen) => void,
  options?: HttpTransportOptions,
  messageBytes?: number,
): Promise<Attached & { peer: Peer }> {
  const peer = await startPeer(handler);
  const attached = attach(peer.url, options, messageBytes);
  ends.push(peer.stop, () => attached.transport.close());
  return { ...attached, peer };
}
