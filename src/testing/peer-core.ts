/** What all bindings of a scripted peer share: reading what came, running scripts, keeping the record. */

import type { Socket } from "node:net";
import { META } from "../protocol.ts";
import { isObject, type JsonObject, type RpcId } from "../wire.ts";
import type { PeerExchange, PeerHttpAnswer, PeerRequest, ScriptedPeerOptions, Step } from "./peer-types.ts";

/** How a binding writes. What a method means to a script is told at {@link PeerExchange}. */
export interface Outlet {
  readonly socket?: Socket;
  frame(text: string): void;
  /** Writes the text that ends the exchange. `status` matters to HTTP alone. */
  final(text: string, status?: number): void;
  pieces(parts: readonly Uint8Array[], whole: string): Promise<void>;
  bytes(data: Uint8Array | string): Promise<void>;
  drop(closeCode: number): void;
  crash(): void;
  http(answer: PeerHttpAnswer): void;
}

/** A request in progress, as its binding sees it. */
export interface RunningExchange {
  readonly id: RpcId;
  /** The client cancelled the request by name, or by closing its stream. */
  cancel(reason: string): void;
  /** The connection is gone. */
  gone(reason: string): void;
}

/** Where a request came from. */
export interface Origin {
  readonly link: number;
  readonly headers?: NonNullable<PeerRequest["headers"]>;
}

/** What a text that a client sent turned out to be. */
export type Received =
  | { readonly kind: "request"; readonly exchange: RunningExchange }
  | { readonly kind: "answered"; readonly text: string }
  | { readonly kind: "notification"; readonly method: string; readonly params: JsonObject }
  | { readonly kind: "garbage" };

/** One binding's running server, as `close` handles it. */
export interface BoundServer {
  /** Stops taking connections, waits `graceMs` for the client to leave, frees all. Gives what was left over. */
  close(graceMs: number): Promise<readonly string[]>;
}

interface Waiter {
  readonly count: number;
  readonly list: readonly unknown[];
  readonly resolve: () => void;
}

/** The shared state of one scripted peer. */
export class PeerCore {
  readonly requests: PeerRequest[] = [];
  readonly notifications: { method: string; params: JsonObject }[] = [];
  readonly received: string[] = [];
  readonly cancelled: RpcId[] = [];
  readonly faults: unknown[] = [];
  readonly servers = new Set<BoundServer>();
  readonly #steps: readonly Step[];
  readonly #discover: JsonObject | undefined;
  readonly #waiters = new Set<Waiter>();
  #links = 0;

  constructor(steps: readonly Step[], options: ScriptedPeerOptions) {
    this.#steps = steps;
    const { discover = true } = options;
    this.#discover = discover === true ? DISCOVER_RESULT : discover === false ? undefined : discover;
  }

  /** A number for a new connection. */
  nextLink(): number {
    return this.#links++;
  }

  /** Reads one text. A request's script has been called when this returns; `makeOutlet` is called for requests alone. */
  receive(text: string, origin: Origin, makeOutlet: () => Outlet): Received {
    this.received.push(text);
    const frame = parseObject(text);
    const { id, method } = frame ?? {};
    if (frame === undefined || typeof method !== "string") return { kind: "garbage" };
    const params = isObject(frame.params) ? frame.params : {};
    if (typeof id !== "string" && typeof id !== "number") {
      this.notifications.push({ method, params });
      return { kind: "notification", method, params };
    }
    if (method === "server/discover" && this.#discover !== undefined) {
      return { kind: "answered", text: JSON.stringify({ jsonrpc: "2.0", id, result: this.#discover }) };
    }
    const meta = isObject(params._meta) ? params._meta : {};
    return {
      kind: "request",
      exchange: this.#start({ id, method, params, meta, text, ...origin }, makeOutlet()),
    };
  }

  /** Resolves when `list` holds `count` items. */
  waitFor(list: readonly unknown[], what: string, count: number, timeoutMs: number): Promise<void> {
    if (list.length >= count) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiters.delete(waiter);
        reject(new Error(`waited ${timeoutMs} ms for ${count} ${what}; ${list.length} came`));
      }, timeoutMs);
      const waiter: Waiter = {
        count,
        list,
        resolve: () => {
          clearTimeout(timer);
          resolve();
        },
      };
      this.#waiters.add(waiter);
    });
  }

  #wake(): void {
    for (const waiter of this.#waiters) {
      if (waiter.list.length < waiter.count) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }

  #start(request: PeerRequest, outlet: Outlet): RunningExchange {
    const index = this.requests.push(request) - 1;
    const exchange = new ScriptedExchange(index, request.id, outlet);
    this.#wake();
    void this.#run(request, exchange);
    return {
      id: request.id,
      cancel: (reason) => {
        if (!exchange.abort(reason)) return;
        this.cancelled.push(request.id);
        this.#wake();
      },
      gone: (reason) => void exchange.abort(reason),
    };
  }

  async #run(request: PeerRequest, exchange: ScriptedExchange): Promise<void> {
    const step = this.#steps[Math.min(exchange.index, this.#steps.length - 1)];
    try {
      if (typeof step === "function") await step(request, exchange);
      else exchange.result(step ?? {});
    } catch (fault) {
      this.faults.push(fault);
      exchange.error(-32603, `the script failed: ${fault instanceof Error ? fault.message : String(fault)}`);
    }
  }
}

class ScriptedExchange implements PeerExchange {
  readonly index: number;
  readonly cancelled: Promise<string>;
  readonly #id: RpcId;
  readonly #outlet: Outlet;
  readonly #controller = new AbortController();
  #resolveCancelled: (reason: string) => void = () => {};
  #ended = false;

  constructor(index: number, id: RpcId, outlet: Outlet) {
    this.index = index;
    this.#id = id;
    this.#outlet = outlet;
    this.cancelled = new Promise((resolve) => {
      this.#resolveCancelled = resolve;
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get socket(): Socket {
    return this.#outlet.socket as Socket;
  }

  /** Marks the exchange as abandoned by the client. Gives false when it had ended before. */
  abort(reason: string): boolean {
    if (this.#ended || this.signal.aborted) return false;
    this.#resolveCancelled(reason);
    this.#controller.abort(new Error(reason));
    return true;
  }

  result(value: unknown): void {
    this.raw(JSON.stringify({ jsonrpc: "2.0", id: this.#id, result: value }));
  }

  error(code: number, message: string, data?: unknown, options: { readonly status?: number } = {}): void {
    this.#ended = true;
    const text = JSON.stringify({ jsonrpc: "2.0", id: this.#id, error: { code, message, data } });
    this.#outlet.final(text, options.status ?? STATUS_OF_CODE.get(code));
  }

  notify(method: string, params?: JsonObject): void {
    this.frame(JSON.stringify({ jsonrpc: "2.0", method, params }));
  }

  frame(text: string): void {
    this.#outlet.frame(text);
  }

  raw(text: string): void {
    this.#ended = true;
    this.#outlet.final(text);
  }

  pieces(text: string, size: number): Promise<void> {
    this.#ended = true;
    const bytes = new TextEncoder().encode(text);
    const parts: Uint8Array[] = [];
    for (let at = 0; at < bytes.length; at += size) parts.push(bytes.subarray(at, at + size));
    return this.#outlet.pieces(parts, text);
  }

  bytes(data: Uint8Array | string): Promise<void> {
    return this.#outlet.bytes(data);
  }

  drop(closeCode = 1001): void {
    this.#ended = true;
    this.#outlet.drop(closeCode);
  }

  crash(): void {
    this.#ended = true;
    this.#outlet.crash();
  }

  http(answer: PeerHttpAnswer): void {
    this.#ended = true;
    this.#outlet.http(answer);
  }
}

/** The outlet method of bindings that have no HTTP answer to give. */
export function noHttp(): never {
  throw new Error("exchange.http() works on the HTTP binding alone");
}

/** A turn of the event loop, so that what was written so far leaves by itself. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** What streamable-http.mdx demands of a server; see "Protocol Version Header" and "Server Validation" there. */
const STATUS_OF_CODE: ReadonlyMap<number, number> = new Map([
  [-32601, 404],
  [-32700, 400],
  [-32600, 400],
  [-32020, 400],
  [-32021, 400],
  [-32022, 400],
]);

const DISCOVER_RESULT: JsonObject = {
  resultType: "complete",
  supportedVersions: ["2026-07-28"],
  capabilities: { tools: {}, prompts: {}, resources: {}, completions: {}, logging: {} },
  ttlMs: 0,
  cacheScope: "private",
  _meta: { [META.serverInfo]: { name: "scripted-peer", version: "1.0.0" } },
};
