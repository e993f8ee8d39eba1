/** The default store of the response cache: bounded, least recently used first out. */

/** One cached result, as a store keeps it. Deep-frozen. */
export interface CachedResult {
  readonly result: Readonly<Record<string, unknown>>;
  /** Until when it is fresh: monotonic milliseconds of the client's clock. It means nothing in another process. */
  readonly freshUntilMs: number;
  /** When it was received, by the same clock. */
  readonly receivedAtMs: number;
  /** About how much memory it takes. */
  readonly bytes: number;
}

/**
 * Where responses are cached. A Map has this shape, but no bounds. A store lives in one process, and may be given to
 * several clients: they keep apart what must be (by the peer's name, the authorization, the capabilities). It is
 * synchronous, so that no call can hang on it. A store that throws, or gives what it was not given, counts as empty.
 */
export interface CacheStore {
  get(key: string): CachedResult | undefined;
  set(key: string, entry: CachedResult): unknown;
  delete(key: string): unknown;
  /** Every key, for evictions. A key may be deleted while they are read. */
  keys(): Iterable<string>;
}

/** Options of {@link memoryCache}. */
export interface MemoryCacheOptions {
  /** The most results. Default 1,000. */
  readonly entries?: number;
  /** The most memory for them all, in bytes, roughly. Default 16 MiB. */
  readonly bytes?: number;
}

/** Makes the store that a client makes for itself, for instance to share it between clients or to give it other bounds. */
export function memoryCache(options: MemoryCacheOptions = {}): CacheStore {
  return new MemoryCache(options.entries ?? 1000, options.bytes ?? 16 * 1024 * 1024);
}

class MemoryCache implements CacheStore {
  readonly #mostEntries: number;
  readonly #mostBytes: number;
  /** In the order of use: the first was not used for the longest time. */
  readonly #entries = new Map<string, CachedResult>();
  #bytes = 0;

  constructor(mostEntries: number, mostBytes: number) {
    this.#mostEntries = mostEntries;
    this.#mostBytes = mostBytes;
  }

  get(key: string): CachedResult | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry;
  }

  set(key: string, entry: CachedResult): void {
    this.delete(key);
    if (entry.bytes + key.length > this.#mostBytes) return;
    this.#entries.set(key, entry);
    this.#bytes += entry.bytes + key.length;
    while (this.#entries.size > this.#mostEntries || this.#bytes > this.#mostBytes) {
      this.delete(this.#entries.keys().next().value!);
    }
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#bytes -= entry.bytes + key.length;
  }

  keys(): Iterable<string> {
    return this.#entries.keys();
  }
}
