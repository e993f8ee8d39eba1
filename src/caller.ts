/**
 * How a client runs one request: past the cache, with what is known of the tool, through the engine, and back to a
 * checked result.
 */

import { type CacheTicket, isCacheable, metaForKey, ResponseCache } from "./cache.ts";
import { type CallOptions, type ClientOptions, checkOneOf } from "./client-options.ts";
import type { Clock } from "./clock.ts";
import type { Engine } from "./engine.ts";
import { type RallyError, RpcError } from "./errors.ts";
import type { EventBus } from "./events.ts";
import { type ListMethod, type ListOptions, readPages } from "./lists.ts";
import type { Result } from "./mcp-types.ts";
import { type CacheStore, memoryCache } from "./memory-cache.ts";
import { type Negotiation, readDiscovery } from "./negotiation.ts";
import { type Outcome, outcomeOf, promised, suspendedError } from "./outcome.ts";
import type { PendingOperation, SettledPhase } from "./pending.ts";
import { NO_MIRRORED, type Planner, type Run } from "./planner.ts";
import { CODE, nameParam } from "./protocol.ts";
import { type EncodedParams, encodeParams } from "./request.ts";
import { type ToolCall, ToolCalls } from "./tool-calls.ts";
import type { MirroredField } from "./transport.ts";
import type { SchemaValidator } from "./validate.ts";
import type { JsonObject } from "./wire.ts";

/** What a caller is made from; the engine is given afterwards, since it calls back. */
export interface CallerParts {
  readonly options: ClientOptions;
  readonly peer: string;
  readonly clock: Clock;
  readonly events: EventBus;
  readonly planner: Planner;
  readonly negotiation: Negotiation;
  readonly validator: SchemaValidator;
}

/** One per client. */
export class Caller {
  readonly cache: ResponseCache | undefined;
  readonly #options: ClientOptions;
  readonly #peer: string;
  readonly #clock: Clock;
  readonly #events: EventBus;
  readonly #planner: Planner;
  readonly #negotiation: Negotiation;
  readonly #tools: ToolCalls;
  #engine!: Engine;

  constructor(parts: CallerParts) {
    this.#options = parts.options;
    this.#peer = parts.peer;
    this.#clock = parts.clock;
    this.#events = parts.events;
    this.#planner = parts.planner;
    this.#negotiation = parts.negotiation;
    this.cache = this.#makeCache(parts.options.cache);
    this.#tools = new ToolCalls({
      clock: parts.clock,
      events: parts.events,
      validator: parts.validator,
      uncheckedOutput: parts.options.uncheckedOutput ?? "fail",
      operationMs: parts.planner.timeouts.operationMs,
      pages: (list) => this.pages("tools/list", list),
    });
  }

  /** Gives the engine, once. */
  attach(engine: Engine): void {
    this.#engine = engine;
  }

  /** Runs one request to its result; a cached one is given without asking. */
  run<R>(method: string, params: EncodedParams, name: string | undefined, options: CallOptions): Promise<R> {
    const ticket = this.#ticket(method, params, name, options);
    const hit = options.cache === "refresh" ? undefined : ticket?.find(this.#negotiation.version);
    if (hit !== undefined) {
      if (method === "tools/list") this.#tools.book.learn(hit, false);
      return Promise.resolve(hit as R);
    }
    const tool = this.toolCall(method, name, params.text, options);
    return promised<R>((resolve, reject) => {
      this.#engine.start(
        this.#planner.plan({
          method,
          params,
          name,
          mirrored: tool?.mirrored ?? NO_MIRRORED,
          tool,
          options,
          manual: false,
          settled: (phase, operation) => {
            if (phase.at === "succeeded")
              this.#received(phase.result, operation, { tool, ticket, resolve, reject });
            else {
              if (ticket !== undefined) this.#refused(method, params, phase);
              reject(phase.at === "suspended" ? suspendedError(phase, method) : phase.error);
            }
          },
        }),
      );
    });
  }

  /** A complete result came: what can be learned from it is kept, what can be checked is checked, and then it is given. */
  #received<R>(
    result: JsonObject,
    operation: PendingOperation,
    call: {
      readonly tool: ToolCall | undefined;
      readonly ticket?: CacheTicket | undefined;
      readonly resolve: (result: R) => void;
      readonly reject: (error: unknown) => void;
    },
  ): void {
    if (call.tool !== undefined) return call.tool.finish(result, operation, call.resolve, call.reject);
    if (operation.method === "tools/list") this.#tools.book.learn(result);
    const { responses, requestState } = operation.state.inputs;
    // What was answered by way of inputs depends on more than the cache key holds (MRTR-12).
    if (responses === undefined && requestState === undefined) call.ticket?.store(result, operation.version);
    call.resolve(result as R);
  }

  /** Runs one request to its outcome; no handler runs. */
  manual(run: Omit<Run, "manual" | "settled">): Promise<Outcome> {
    return promised<Outcome>((resolve, reject) => {
      this.#engine.start(
        this.#planner.plan({
          ...run,
          manual: true,
          settled: (phase, operation) => {
            if (phase.at === "succeeded") {
              const complete = (result: Result) => resolve({ status: "complete", result });
              this.#received(phase.result, operation, { tool: run.tool, resolve: complete, reject });
            } else if (phase.at === "suspended") resolve(outcomeOf(phase));
            else reject(phase.error);
          },
        }),
      );
    });
  }

  /** What goes with a request that is a call of a tool. */
  toolCall(
    method: string,
    name: string | undefined,
    params: string,
    options: CallOptions,
    mirrored?: readonly MirroredField[],
  ): ToolCall | undefined {
    if (method !== "tools/call" || name === undefined) return undefined;
    return this.#tools.prepare(name, params, options, mirrored);
  }

  /** Every item of a list, or of one page. */
  async list<T>(method: ListMethod, member: string, options: ListOptions): Promise<T[]> {
    const hits = this.cache?.hits ?? 0;
    const startedAt = this.#clock.now();
    try {
      return await this.#collect<T>(method, member, options);
    } catch (error) {
      // A cached page may name a cursor that is no longer valid. The cache has dropped the list by now: once more from
      // the beginning. {@link https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching#interaction-with-pagination}
      const mayBeStale = options.cursor === undefined && (this.cache?.hits ?? 0) > hits;
      if (!mayBeStale || !isInvalidParams(error)) throw error;
      const { operationMs } = options;
      const leftMs = operationMs && Math.max(0, operationMs - (this.#clock.now() - startedAt));
      return this.#collect<T>(method, member, { ...options, operationMs: leftMs });
    }
  }

  async #collect<T>(method: ListMethod, member: string, options: ListOptions): Promise<T[]> {
    const items: T[] = [];
    for await (const page of this.pages(method, options)) {
      for (const item of page[member] as T[]) {
        // The specification wants tools with invalid annotations left out, so that they harm no others (HDR-02).
        if (method !== "tools/list" || !this.#tools.book.isRejected(item)) items.push(item);
      }
      if (options.cursor !== undefined) break;
    }
    return items;
  }

  /** The raw pages of a list. */
  pages(method: ListMethod, options: ListOptions): AsyncIterable<Result> {
    return readPages(
      method,
      options,
      (params, call) => this.run<Result>(method, encodeParams(params), undefined, call),
      (reason) => {
        if (!this.#events.watched) return;
        this.#events.publish({ type: "list.stopped", method, reason, atMs: this.#clock.now() });
      },
    );
  }

  /** Takes the discovery of a link's probe: the version that it leads to, and the result for {@link run} to find. */
  adopt(result: JsonObject): RallyError | undefined {
    // That it is a discovery was seen when it came.
    const error = this.#negotiation.adopt(readDiscovery(result)!);
    if (error !== undefined) return error;
    const ticket = this.#ticket("server/discover", encodeParams(undefined), undefined, {});
    ticket?.store(result, this.#negotiation.version);
    return undefined;
  }

  #makeCache(option: boolean | CacheStore | undefined): ResponseCache | undefined {
    if (option === false) return undefined;
    const { transport, cachePartition } = this.#options;
    let partition: (context: unknown) => string | undefined;
    if (typeof cachePartition === "function") partition = cachePartition;
    else if (cachePartition !== undefined) partition = () => cachePartition;
    else partition = (context) => transport.partition?.(context);
    return new ResponseCache({
      store: typeof option === "object" ? option : memoryCache(),
      peer: this.#peer,
      partition,
      clock: this.#clock,
      events: this.#events,
    });
  }

  /** The way of one request past the cache; undefined when it has nothing to do with it. */
  #ticket(
    method: string,
    params: EncodedParams,
    uri: string | undefined,
    options: CallOptions,
  ): CacheTicket | undefined {
    checkOneOf(options.cache, ["use", "refresh", "bypass"], "cache");
    if (this.cache === undefined || !isCacheable(method) || options.cache === "bypass") return undefined;
    if (params.responses !== undefined || params.requestState !== undefined) return undefined;
    // These two are the engine's to refuse.
    if (this.#engine.isClosed || options.signal?.aborted === true) return undefined;
    const meta = metaForKey(params.meta, options.meta);
    if (meta === undefined) return undefined;
    const { hostMeta } = this.#planner;
    const own = typeof hostMeta === "string" ? hostMeta : "";
    const declared = `${this.#planner.declared(options).metaTail},${own}`;
    return this.cache.ticket({ method, params: params.text, uri, meta, declared, context: options.context });
  }

  /** A cursor that the server refused makes the pages that led to it worthless. */
  #refused(method: string, params: EncodedParams, phase: SettledPhase): void {
    if (phase.at !== "failed" || !isInvalidParams(phase.error)) return;
    if (method !== "resources/read" && params.text.includes('"cursor":')) this.cache?.evict(method);
  }
}

function isInvalidParams(error: unknown): boolean {
  return error instanceof RpcError && error.rpcCode === CODE.invalidParams;
}

/** The name that a binding mirrors, read from the encoded text: what is mirrored can't differ from what is sent. */
export function nameIn(method: string, params: string): string | undefined {
  const key = nameParam(method);
  if (key === undefined) return undefined;
  const value = (JSON.parse(`{${params}}`) as JsonObject)[key];
  return typeof value === "string" ? value : undefined;
}
