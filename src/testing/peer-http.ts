/** The Streamable HTTP binding of a scripted peer. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { closeServer, listenOnLoopback, watchSockets } from "./leftovers.ts";
import { type BoundServer, nextTurn, type Outlet, type PeerCore } from "./peer-core.ts";
import type { PeerHttpAnswer } from "./peer-types.ts";

const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
};

/** Starts the server. */
export async function startPeerHttp(
  core: PeerCore,
  answer: "json" | "sse",
): Promise<BoundServer & { url: string }> {
  const links = new WeakMap<object, number>();
  const server = createServer(
    { keepAliveTimeout: 0, requestTimeout: 0, noDelay: true },
    (request, response) => {
      void handle(core, answer, links.get(request.socket) ?? 0, request, response);
    },
  );
  server.on("connection", (socket) => links.set(socket, core.nextLink()));
  server.on("clientError", (_error, socket) => socket.destroy());
  const sockets = watchSockets(server);
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async close(graceMs) {
      // server.close() first would end idle keep-alive sockets, and with them the proof of a leak.
      const left = await sockets.drain(graceMs);
      await closeServer(server);
      return left === 0 ? [] : [`${left} HTTP socket(s) to 127.0.0.1:${port} still open`];
    },
  };
}

async function handle(
  core: PeerCore,
  answer: "json" | "sse",
  link: number,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== "POST") {
    response.writeHead(405, { allow: "POST" }).end();
    return;
  }
  const text = await readBody(request);
  if (text === undefined) return;
  const outlet = new HttpOutlet(request, response, answer);
  const received = core.receive(text, { link, headers: request.headers }, () => outlet);
  switch (received.kind) {
    case "request":
      response.once("close", () => {
        if (!response.writableFinished) received.exchange.cancel("the client closed the stream");
      });
      return;
    case "answered":
      outlet.final(received.text);
      return;
    case "notification":
      response.writeHead(202).end();
      return;
    case "garbage":
      outlet.final('{"jsonrpc":"2.0","error":{"code":-32700,"message":"the body is no JSON-RPC call"}}', 400);
  }
}

/** The body, or undefined when the client went away while it came. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const parts: Buffer[] = [];
  try {
    for await (const part of request) parts.push(part as Buffer);
    return Buffer.concat(parts).toString("utf8");
  } catch {
    return undefined;
  }
}

class HttpOutlet implements Outlet {
  readonly #response: ServerResponse;
  readonly #request: IncomingMessage;
  readonly #answer: "json" | "sse";

  constructor(request: IncomingMessage, response: ServerResponse, answer: "json" | "sse") {
    this.#request = request;
    this.#response = response;
    this.#answer = answer;
  }

  get socket() {
    return this.#request.socket;
  }

  get #over(): boolean {
    return this.#response.writableEnded || this.#response.destroyed;
  }

  frame(text: string): void {
    if (this.#over) return;
    this.#openStream();
    this.#response.write(event(text));
  }

  final(text: string, status = 200): void {
    if (this.#over) return;
    if (this.#streams(status)) {
      this.#openStream();
      this.#response.end(event(text));
    } else {
      this.#response.writeHead(status, { "content-type": "application/json" }).end(text);
    }
  }

  async pieces(parts: readonly Uint8Array[], whole: string): Promise<void> {
    if (this.#over) return;
    const stream = this.#streams(200);
    if (stream) {
      this.#openStream();
      // The same bytes as event(whole): the parts are the line after "data: ", and JSON has no line breaks of its own.
      if (whole.includes("\n")) throw new Error("pieces() takes a text without line breaks");
      await this.bytes("event: message\ndata: ");
    } else {
      this.#response.writeHead(200, { "content-type": "application/json" });
    }
    for (const part of parts) await this.#write(part);
    this.#response.end(stream ? "\n\n" : undefined);
  }

  async bytes(data: Uint8Array | string): Promise<void> {
    if (this.#over) return;
    this.#openStream();
    await this.#write(data);
  }

  drop(): void {
    if (this.#over) return;
    if (!this.#streams(200)) this.#response.writeHead(200, { "content-type": "application/json" });
    else this.#openStream();
    this.#response.end();
  }

  crash(): void {
    this.#request.socket.resetAndDestroy();
  }

  http(answer: PeerHttpAnswer): void {
    if (this.#over) return;
    this.#response.writeHead(answer.status ?? 200, answer.headers ?? {});
    const { body = "" } = answer;
    if (typeof body === "string" || body instanceof Uint8Array) this.#response.end(body);
    else void this.#writeParts(body);
  }

  async #writeParts(parts: readonly (string | Uint8Array)[]): Promise<void> {
    for (const part of parts) await this.#write(part);
    this.#response.end();
  }

  async #write(data: Uint8Array | string): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#response.write(data, () => resolve());
    });
    await nextTurn();
  }

  #streams(status: number): boolean {
    return this.#response.headersSent || (this.#answer === "sse" && status === 200);
  }

  #openStream(): void {
    if (this.#response.headersSent) return;
    this.#response.writeHead(200, STREAM_HEADERS);
    this.#response.flushHeaders();
  }
}

function event(text: string): string {
  return `event: message\ndata: ${text.replaceAll("\n", "\ndata: ")}\n\n`;
}
