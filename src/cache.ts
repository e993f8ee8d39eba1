/**
 * The response cache: `ttlMs` and `cacheScope` of the six cacheable methods (CCH-01).
 *
 * A result is kept only under the very request that brought it: peer, method, params, protocol version, what was declared,
 * and, unless the server says "public", the authorization that it was given to.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching}
 */

import type { Clock } from "./clock.ts";
import { encodeHostMeta } from "./declarations.ts";
import type { EventBus } from "./events.ts";
import { freezeDeep } from "./freeze.ts";
import type { CachedResult, CacheStore } from "./memory-cache.ts";
import { isObject, type JsonObject, type NotificationFrame } from "./wire.ts";

/** What a call makes of the cache: take a fresh result and store the new one; store only; neither. */
export type CacheMode = "use" | "refresh" | "bypass";

const CACHEABLE: ReadonlySet<string> = new Set([
  "server/discover",
  "tools/list",
  "prompts/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
]);

/** Which lists a notification makes stale. */
const EVICTED_BY: ReadonlyMap<string, readonly string[]> = new Map([
  ["notifications/tools/list_changed", ["tools/list"]],
  ["notifications/prompts/list_changed", ["prompts/list"]],
  ["notifications/resources/list_changed", ["resources/list", "resources/templates/list"]],
]);

/** A ttl beyond this is taken for this: a day. No server knows longer what it will say. */
export const LONGEST_TTL_MS = 24 * 60 * 60 * 1000;

/** Whether results of `method` may be cached at all. */
export function isCacheable(method: string): boolean {
  return CACHEABLE.has(method);
}

/** What a {@link ResponseCache} is made from. */
export interface ResponseCacheOptions {
  readonly store: CacheStore;
  readonly peer: string;
  /** The authorization that a call of this context runs under; undefined when that can't be told. */
  readonly partition: (context: unknown) => string | undefined;
  readonly clock: Clock;
  readonly events: EventBus;
}

/** A request that may be answered from the cache. */
export interface CacheRequest {
  readonly method: string;
  /** P: the inner text of its params. */
  readonly params: string;
  /** The resource of a `resources/read`. */
  readonly uri: string | undefined;
  /** The call's own metadata as text, where it may bear on the answer. */
  readonly meta: string;
  /** The capabilities and the name that it declares, as text. */
  readonly declared: string;
  readonly context: unknown;
}

/** The cache of one client, over a store that it may share. */
export class ResponseCache {
  readonly #options: ResponseCacheOptions;
  readonly #store: CacheStore;
  readonly #prefix: string;
  /** How often each method was evicted, over all clients of the store. */
  readonly #evictions: Map<string, number>;
  /** A store that failed to delete would serve what is no longer true. */
  #broken = false;
  #hits = 0;

  constructor(options: ResponseCacheOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#prefix = `[${JSON.stringify(options.peer)},`;
    this.#evictions = evictionsOf(options.store);
  }

  /** How many results were given from the cache. */
  get hits(): number {
    return this.#hits;
  }

  /** Prepares the way of one request past the cache. Before it is sent: what is evicted from now on concerns it. */
  ticket(request: CacheRequest): CacheTicket {
    return new CacheTicket(this, request, this.#partitionOf(request.context), this.#evicted(request.method));
  }

  /** @internal The fresh result of a request, if there is one. */
  find(request: CacheRequest, partition: string | undefined, version: string): JsonObject | undefined {
    if (this.#broken) return undefined;
    const base = this.#base(request, version);
    const entry =
      this.#fresh(publicKey(base)) ??
      (partition === undefined ? undefined : this.#fresh(privateKey(base, partition)));
    if (entry === undefined) return undefined;
    this.#hits++;
    const { events, clock } = this.#options;
    if (events.watched) {
      const now = clock.now();
      events.publish({
        type: "cache.hit",
        method: request.method,
        ageMs: Math.max(0, now - entry.receivedAtMs),
        atMs: now,
      });
    }
    return entry.result;
  }

  #fresh(key: string): CachedResult | undefined {
    const entry: unknown = this.#guard("get", () => this.#store.get(key));
    if (!isObject(entry) || !isObject(entry.result)) return undefined;
    if (this.#options.clock.now() < (entry.freshUntilMs as number)) return entry as unknown as CachedResult;
    this.#guard("delete", () => this.#store.delete(key));
    return undefined;
  }

  /** @internal Stores a result, if the server allows it and nothing was evicted since it was sent for. */
  store(
    request: CacheRequest,
    sent: { readonly partition: string | undefined; readonly version: string; readonly evicted: number },
    result: JsonObject,
  ): void {
    const { method } = request;
    const ttlMs = readTtl(result.ttlMs);
    if (ttlMs === 0 || this.#broken || this.#evicted(method) !== sent.evicted) return;
    const base = this.#base(request, sent.version);
    let key: string;
    if (result.cacheScope === "public") key = publicKey(base);
    else if (sent.partition === undefined) return;
    else key = privateKey(base, sent.partition);
    const bytes = freezeDeep(result);
    const receivedAtMs = this.#options.clock.now();
    const entry: CachedResult = { result, bytes, receivedAtMs, freshUntilMs: receivedAtMs + ttlMs };
    this.#guard("set", () => this.#store.set(key, entry));
    const { events } = this.#options;
    if (events.watched) events.publish({ type: "cache.stored", method, ttlMs, atMs: receivedAtMs });
  }

  /** A notification came, by whichever way: what it makes stale is evicted. */
  notified(frame: NotificationFrame): void {
    if (frame.method === "notifications/resources/updated") {
      const uri = frame.params?.uri;
      if (typeof uri === "string") this.evict("resources/read", uri);
      return;
    }
    for (const method of EVICTED_BY.get(frame.method) ?? []) this.evict(method);
  }

  /** Forgets everything of this peer: its process was started anew, or notifications may have been missed. */
  evictAll(): void {
    for (const method of CACHEABLE) this.evict(method);
  }

  /**
   * Forgets the results of a method: of every resource, or of the one that was updated and those that it is a part of (an
   * update may name a sub-resource).
   */
  evict(method: string, updated?: string): void {
    this.#evictions.set(this.#prefix + method, this.#evicted(method) + 1);
    let entries = 0;
    const done = this.#guard("delete", () => {
      const prefix = `${this.#prefix}${JSON.stringify(method)},`;
      for (const key of [...this.#store.keys()]) {
        if (!key.startsWith(prefix)) continue;
        if (updated !== undefined && !updated.startsWith((JSON.parse(key) as string[])[2]!)) continue;
        this.#store.delete(key);
        entries++;
      }
      return true;
    });
    if (done !== true) this.#broken = true;
    const { events, clock } = this.#options;
    if (entries > 0 && events.watched) {
      events.publish({ type: "cache.evicted", method, entries, atMs: clock.now() });
    }
  }

  #evicted(method: string): number {
    return this.#evictions.get(this.#prefix + method) ?? 0;
  }

  #base({ method, params, uri, meta, declared }: CacheRequest, version: string): string {
    const rest = JSON.stringify([method, uri ?? "", params, version, declared, meta]);
    return this.#prefix + rest.slice(1, -1);
  }

  #partitionOf(context: unknown): string | undefined {
    const partition = this.#guard("partition", () => this.#options.partition(context));
    return typeof partition === "string" ? partition : undefined;
  }

  /** Calls what is the host's or the transport's own: if it throws, the call goes on without the cache. */
  #guard<T>(what: string, run: () => T): T | undefined {
    try {
      return run();
    } catch (error) {
      const { events, clock } = this.#options;
      if (events.watched) {
        const detail = {
          what: `cache.${what}`,
          message: error instanceof Error ? error.message : String(error),
        };
        events.publish({ type: "wire.anomaly", kind: "host-callback", detail, atMs: clock.now() });
      }
      return undefined;
    }
  }
}

/** One request on its way past the cache: what it was sent under is what its result is stored under. */
export class CacheTicket {
  readonly #cache: ResponseCache;
  readonly #request: CacheRequest;
  readonly #partition: string | undefined;
  readonly #evicted: number;

  /** Use {@link ResponseCache.ticket}. */
  constructor(cache: ResponseCache, request: CacheRequest, partition: string | undefined, evicted: number) {
    this.#cache = cache;
    this.#request = request;
    this.#partition = partition;
    this.#evicted = evicted;
  }

  /** The fresh result, if there is one. */
  find(version: string): JsonObject | undefined {
    return this.#cache.find(this.#request, this.#partition, version);
  }

  /** The request, sent with `version`, brought a complete result without any input on the way. */
  store(result: JsonObject, version: string): void {
    const sent = { partition: this.#partition, version, evicted: this.#evicted };
    this.#cache.store(this.#request, sent, result);
  }
}

const evictionsByStore = new WeakMap<CacheStore, Map<string, number>>();

function evictionsOf(store: CacheStore): Map<string, number> {
  let evictions = evictionsByStore.get(store);
  if (evictions === undefined) {
    evictions = new Map();
    evictionsByStore.set(store, evictions);
  }
  return evictions;
}

function publicKey(base: string): string {
  return `${base},"public"]`;
}

function privateKey(base: string, partition: string): string {
  return `${base},"private",${JSON.stringify(partition)}]`;
}

/** A hint that is absent, negative or malformed means "not cached"; fractions are cut, and no ttl is longer than a day. */
function readTtl(ttlMs: unknown): number {
  if (typeof ttlMs !== "number" || !(ttlMs >= 1)) return 0;
  return Math.min(Math.floor(ttlMs), LONGEST_TTL_MS);
}

/** Metadata that traces a call and bears on no answer. {@link https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta} */
const TRACE: ReadonlySet<string> = new Set(["traceparent", "tracestate", "baggage"]);

/**
 * The metadata that a call brings itself, as a part of the cache key. Undefined when it can't be known beforehand, because
 * a function makes it: then the call has to go past the cache.
 */
export function metaForKey(own: JsonObject | undefined, meta: unknown): string | undefined {
  if (typeof meta === "function") return undefined;
  if (own === undefined && meta === undefined) return "";
  const merged = Object.entries({ ...own, ...(meta as JsonObject | undefined) });
  return encodeHostMeta(Object.fromEntries(merged.filter(([key]) => !TRACE.has(key))));
}
