/** The in-process binding of a scripted peer: frame texts, no sockets. */

import type { MemoryHandler } from "../../transports/memory.ts";
import {
  ClosedError,
  ConnectionLostError,
  FrameError,
  LimitError,
  RpcError,
  type TransportError,
} from "../errors.ts";
import type { Exchange, ExchangeSink, Limits, Transport, TransportHost } from "../transport.ts";
import { decodeFrame, isObject } from "../wire.ts";
import { noHttp, type Outlet, type PeerCore, type RunningExchange } from "./peer-core.ts";

/** Makes a transport. Each of its exchanges is a stream of its own, as over HTTP. */
export function peerMemoryTransport(core: PeerCore): Transport {
  const link = core.nextLink();
  const open = new Set<MemoryExchange>();
  let host = NO_HOST;
  let closed = false;
  const partition = crypto.randomUUID();
  return {
    name: "memory",
    peer: "scripted-peer",
    partition: () => partition,
    attach(given) {
      host = given;
    },
    exchange(request, sink) {
      const exchange = new MemoryExchange(request.id, host, sink, open);
      // The sink may not be called before the caller has the exchange.
      queueMicrotask(() => {
        if (closed) exchange.close();
        else exchange.send(core, request.body, link);
      });
      return exchange;
    },
    async close() {
      closed = true;
      for (const exchange of [...open]) exchange.close();
    },
  };
}

/** Makes a handler for `memoryTransport`: what is answered settles a promise, and there is no wire to misuse. */
export function peerMemoryHandler(core: PeerCore): MemoryHandler {
  const link = core.nextLink();
  return (request, exchange) =>
    new Promise((resolve, reject) => {
      function answer(text: string): void {
        const frame = decodeFrame(text);
        if (frame.kind === "result") resolve(frame.result);
        else if (frame.kind === "error")
          reject(new RpcError(frame.error.message, frame.error.code, frame.error.data));
        else throw new Error("over memoryTransport a script can only answer with results and errors");
      }
      const outlet: Outlet = {
        frame(text) {
          const frame = decodeFrame(text);
          if (frame.kind === "notification") exchange.notify(frame.method, frame.params);
          else answer(text);
        },
        final: answer,
        pieces: async (_parts, whole) => answer(whole),
        bytes: noWire,
        drop: noWire,
        crash: noWire,
        http: noHttp,
      };
      const received = core.receive(JSON.stringify({ jsonrpc: "2.0", ...request }), { link }, () => outlet);
      if (received.kind === "answered") answer(received.text);
      if (received.kind !== "request") return;
      const running = received.exchange;
      const { signal } = exchange;
      signal.addEventListener("abort", () => {
        if (signal.reason instanceof ClosedError) running.gone("the transport was closed");
        else running.cancel(isObject(signal.reason) ? String(signal.reason.message) : "cancelled");
      });
    });
}

function noWire(): never {
  throw new Error("memoryTransport has no wire to lose or to write bytes to; peer.memory() plays losses");
}

class MemoryExchange implements Exchange, Outlet {
  readonly #id: number;
  readonly #host: TransportHost;
  readonly #sink: ExchangeSink;
  readonly #open: Set<MemoryExchange>;
  #running: RunningExchange | undefined;
  #sent = false;

  constructor(id: number, host: TransportHost, sink: ExchangeSink, open: Set<MemoryExchange>) {
    this.#id = id;
    this.#host = host;
    this.#sink = sink;
    this.#open = open;
    open.add(this);
  }

  send(core: PeerCore, body: string, link: number): void {
    if (!this.#open.has(this)) return;
    this.#sent = true;
    const received = core.receive(body, { link }, () => this);
    if (received.kind === "request") this.#running = received.exchange;
    if (received.kind === "answered") this.final(received.text);
  }

  fail(error: TransportError): void {
    if (!this.#open.delete(this)) return;
    this.#running?.gone(error.message);
    this.#sink.failure({ delivery: error.delivery, error });
  }

  close(): void {
    this.fail(new ClosedError("the transport was closed", this.#sent ? "unknown" : "not-sent"));
  }

  cancel(reason: string, options?: { readonly silent?: boolean }): void {
    if (!this.#open.delete(this)) return;
    if (options?.silent) this.#running?.gone(reason);
    else this.#running?.cancel(reason);
  }

  frame(text: string): void {
    if (isLarger(text, this.#host.limits)) {
      const { messageBytes } = this.#host.limits;
      this.fail(
        new LimitError(`a message is larger than ${messageBytes} bytes`, "messageBytes", messageBytes),
      );
      return;
    }
    const frame = decodeFrame(text);
    if (!this.#open.has(this)) {
      this.#host.anomaly("late-response", frame);
      return;
    }
    switch (frame.kind) {
      case "notification":
        this.#sink.notification(frame);
        break;
      case "request":
        this.#host.anomaly("peer-request", frame);
        break;
      case "bad":
        if (frame.id !== undefined && frame.id !== this.#id) this.#host.anomaly("bad-frame", frame);
        else this.fail(new FrameError(`the answer is no valid frame: ${frame.fault}`));
        break;
      default:
        if (frame.id !== this.#id) this.#host.anomaly("unknown-id", frame);
        else if (this.#open.delete(this)) this.#sink.response(frame);
    }
  }

  final(text: string): void {
    this.frame(text);
  }

  async pieces(_parts: readonly Uint8Array[], whole: string): Promise<void> {
    this.frame(whole);
  }

  bytes(): Promise<void> {
    return Promise.reject(new Error("exchange.bytes() does not work in memory: there is no wire"));
  }

  drop(): void {
    this.fail(new ConnectionLostError("the peer ended the exchange without an answer", "unknown"));
  }

  crash(): void {
    this.drop();
  }

  http(): never {
    noHttp();
  }
}

function isLarger(text: string, { messageBytes }: Limits): boolean {
  return (
    text.length > messageBytes || (text.length * 3 > messageBytes && Buffer.byteLength(text) > messageBytes)
  );
}

const NO_HOST: TransportHost = {
  limits: { messageBytes: 16 * 1024 * 1024 },
  notification() {},
  link() {},
  anomaly() {},
};
