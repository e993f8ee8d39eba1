/**
 * The in-process reference transport: a handler function is the peer. Frames still travel as text, so both sides see
 * what a real wire would give them, and neither can reach into the other's objects.
 */

import { ClosedError, FrameError, LimitError, RpcError, type TransportError } from "../src/errors.ts";
import { CODE } from "../src/protocol.ts";
import type { Exchange, ExchangeRequest, ExchangeSink, Transport, TransportHost } from "../src/transport.ts";
import { decodeFrame, type JsonObject, type WireId } from "../src/wire.ts";

/** A request as the handler gets it, parsed. */
export interface MemoryRequest {
  readonly id: WireId;
  readonly method: string;
  readonly params: JsonObject;
}

/** What a handler can do besides returning its result. */
export interface MemoryExchange {
  /** Aborts when the client cancels the exchange or closes. */
  readonly signal: AbortSignal;
  /** Sends a notification that belongs to this exchange, such as `notifications/progress`. */
  notify(method: string, params?: JsonObject): void;
}

/**
 * Plays the server. What it returns is the `result`; an {@link RpcError} that it throws is sent as that JSON-RPC error,
 * anything else as -32603 with the message.
 */
export type MemoryHandler = (request: MemoryRequest, exchange: MemoryExchange) => unknown;

/**
 * Makes a transport whose peer is a function in this process.
 *
 * @example
 * const transport = memoryTransport(({ method }) =>
 *   method === "tools/call" ? { resultType: "complete", content: [] } : { resultType: "complete" });
 */
export function memoryTransport(handler: MemoryHandler, options: { peer?: string } = {}): Transport {
  return new MemoryTransport(handler, options.peer ?? "memory");
}

class MemoryTransport implements Transport {
  readonly name = "memory";
  readonly peer: string;
  readonly #handler: MemoryHandler;
  readonly #running = new Set<MemoryRun>();
  #host: TransportHost | undefined;
  /** A handler function is its own authority: nothing of one is another's. */
  readonly #partition = crypto.randomUUID();
  #closed = false;

  constructor(handler: MemoryHandler, peer: string) {
    this.#handler = handler;
    this.peer = peer;
  }

  partition(): string {
    return this.#partition;
  }

  attach(host: TransportHost): void {
    this.#host = host;
  }

  exchange(request: ExchangeRequest, sink: ExchangeSink): Exchange {
    const run = new MemoryRun(request.id, sink, this.#running, this.#host!);
    queueMicrotask(() => (this.#closed ? run.close() : run.start(this.#handler, request.body)));
    return run;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const run of [...this.#running]) run.close();
    this.#host?.link("closed");
  }
}

/** One exchange: the handler's view of it and the engine's handle at once, so that a call costs one object. */
class MemoryRun implements Exchange, MemoryExchange {
  #sink: ExchangeSink | undefined;
  readonly #id: WireId;
  readonly #running: Set<MemoryRun>;
  readonly #host: TransportHost;
  #abort: AbortController | undefined;
  #started = false;

  constructor(id: WireId, sink: ExchangeSink, running: Set<MemoryRun>, host: TransportHost) {
    this.#id = id;
    this.#sink = sink;
    this.#running = running;
    this.#host = host;
    running.add(this);
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#sink === undefined) this.#abort.abort();
    }
    return this.#abort.signal;
  }

  start(handler: MemoryHandler, body: string): void {
    if (this.#sink === undefined) return;
    this.#started = true;
    let outcome: unknown;
    try {
      outcome = handler(JSON.parse(body) as MemoryRequest, this);
    } catch (error) {
      return this.#answerError(error);
    }
    if (!isThenable(outcome)) return this.#answer(outcome);
    outcome.then(
      (result) => this.#answer(result),
      (error) => this.#answerError(error),
    );
  }

  // A getter, so that a handler may take `notify` out of its argument as any function.
  get notify(): MemoryExchange["notify"] {
    return (method, params) => {
      if (this.#sink === undefined) return;
      const text = this.#encode({ method, params });
      if (text === undefined) return;
      const frame = decodeFrame(text);
      if (frame.kind === "notification") this.#sink.notification(frame);
      else this.#host.anomaly("bad-frame", frame);
    };
  }

  cancel(reason: string): void {
    if (this.#end() !== undefined) this.#abort?.abort(new Error(reason));
  }

  close(): void {
    const delivery = this.#started ? "unknown" : "not-sent";
    const error = new ClosedError("the memory transport was closed; make a new client to go on", delivery);
    this.#end()?.failure({ delivery, error });
    this.#abort?.abort(error);
  }

  #answer(result: unknown): void {
    this.#deliver({ id: this.#id, result });
  }

  #answerError(error: unknown): void {
    const isRpc = error instanceof RpcError;
    const message = error instanceof Error ? error.message : String(error);
    const code = isRpc ? error.rpcCode : CODE.internalError;
    this.#deliver({ id: this.#id, error: { code, message, data: isRpc ? error.data : undefined } });
  }

  #deliver(members: JsonObject): void {
    const text = this.#encode(members);
    if (text === undefined) return;
    const frame = decodeFrame(text);
    if (frame.kind === "result" || frame.kind === "error") return this.#end()?.response(frame);
    const fault = frame.kind === "bad" ? frame.fault : `it is a ${frame.kind}`;
    this.#fail(new FrameError(`the handler's answer is no valid frame: ${fault}`));
  }

  /** The frame as text; undefined when there is none to deliver, and the exchange has failed. */
  #encode(members: JsonObject): string | undefined {
    let text: string;
    try {
      text = JSON.stringify({ jsonrpc: "2.0", ...members });
    } catch (cause) {
      const why = (cause as Error).message;
      this.#fail(new FrameError(`the handler gave what JSON cannot say: ${why}`, { cause }));
      return undefined;
    }
    const { messageBytes } = this.#host.limits;
    if (text.length * 3 <= messageBytes || new TextEncoder().encode(text).length <= messageBytes) return text;
    const message = `the message is longer than ${messageBytes} bytes; raise limits.messageBytes to accept it`;
    this.#fail(new LimitError(message, "messageBytes", messageBytes));
    return undefined;
  }

  #fail(error: TransportError): void {
    this.#end()?.failure({ delivery: error.delivery, error });
  }

  /** Ends the exchange once; gives the sink to whoever was first. */
  #end(): ExchangeSink | undefined {
    const sink = this.#sink;
    this.#sink = undefined;
    this.#running.delete(this);
    return sink;
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | undefined | null)?.then === "function";
}
