/**
 * The connections of one origin, on undici's pool (HTTP-05).
 *
 * undici is loaded with the first request, and of it only what a pool needs: its root entry also loads fetch, WebSocket,
 * caches and mocks, which takes several times as long. That rests on undici publishing no `exports` map, as all its
 * versions so far; should a version have one, the root entry is used instead.
 */

import type { ConnectionOptions } from "node:tls";
import type { buildConnector, Dispatcher, Pool } from "undici";

/** TLS settings for a server with a certificate authority of its own, or one that wants a client certificate. */
export type HttpTlsOptions = Pick<ConnectionOptions, "ca" | "cert" | "key" | "passphrase" | "servername">;

/** How a pool connects. */
export interface PoolSettings {
  readonly origin: string;
  readonly allowH2: boolean;
  /** Undefined: as many as are needed. */
  readonly maxConnections: number | undefined;
  readonly connectMs: number;
  readonly tls: HttpTlsOptions | undefined;
}

/** Someone who waits for a dispatcher. */
export interface PoolUser {
  /** Hands the request over. False when it is no longer wanted. */
  dispatchOn(dispatcher: Dispatcher): boolean;
  /** No dispatcher can be had. */
  refuse(cause: unknown): void;
}

/** Gives users a dispatcher, at once or when there is one. */
export interface DispatcherSource {
  run(user: PoolUser): void;
  /** Ends the connections; resolves when they are gone. */
  destroy(): Promise<void>;
}

/** Requests on one HTTP/2 connection at a time; more open another one. The bound that undici assumes of a server as well. */
const STREAMS_PER_CONNECTION = 100;

interface UndiciParts {
  readonly Pool: typeof Pool;
  readonly buildConnector: typeof buildConnector;
}

/** The dispatcher of the host: used as it is, never closed. */
export class HostDispatcher implements DispatcherSource {
  readonly #dispatcher: Dispatcher;

  constructor(dispatcher: Dispatcher) {
    this.#dispatcher = dispatcher;
  }

  run(user: PoolUser): void {
    // A dispatcher of another make, a mock for one, may answer before it returns; a transport must not.
    queueMicrotask(() => user.dispatchOn(this.#dispatcher));
  }

  async destroy(): Promise<void> {}
}

/**
 * A pool of our own. The states of it:
 * - `unloaded`: nobody wanted anything yet.
 * - `loading`: undici is being loaded; users wait.
 * - `probing`: HTTP/2 is allowed and the first connection is being made. The others wait to see what the server speaks,
 *   or each of them would open a connection that it could have shared.
 * - `open`: users are served at once.
 * - `destroyed`.
 */
type PoolState = "unloaded" | "loading" | "probing" | "open" | "destroyed";

export class HttpPool implements DispatcherSource {
  readonly #settings: PoolSettings;
  #state: PoolState = "unloaded";
  #pool: Pool | undefined;
  #waiting: PoolUser[] = [];

  constructor(settings: PoolSettings) {
    this.#settings = settings;
  }

  run(user: PoolUser): void {
    if (this.#state === "open") {
      user.dispatchOn(this.#pool!);
      return;
    }
    if (this.#state === "destroyed") return;
    this.#waiting.push(user);
    if (this.#state === "unloaded") void this.#load();
  }

  async destroy(): Promise<void> {
    this.#state = "destroyed";
    this.#waiting = [];
    await this.#pool?.destroy();
  }

  async #load(): Promise<void> {
    this.#state = "loading";
    try {
      const parts = await loadUndici();
      if (this.#isDestroyed()) return;
      this.#pool = makePool(parts, this.#settings, () => this.#open());
    } catch (cause) {
      if (this.#isDestroyed()) return;
      this.#state = "unloaded";
      for (const user of this.#takeWaiting()) user.refuse(cause);
      return;
    }
    if (this.#settings.allowH2) this.#probe(this.#pool);
    else this.#open();
  }

  #isDestroyed(): boolean {
    return this.#state === "destroyed";
  }

  #probe(pool: Pool): void {
    this.#state = "probing";
    let first = this.#waiting.shift();
    while (first !== undefined && !first.dispatchOn(pool)) first = this.#waiting.shift();
    if (first === undefined) this.#open();
  }

  #open(): void {
    if (this.#state === "open" || this.#isDestroyed()) return;
    this.#state = "open";
    for (const user of this.#takeWaiting()) user.dispatchOn(this.#pool!);
  }

  #takeWaiting(): PoolUser[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }
}

function makePool(undici: UndiciParts, settings: PoolSettings, onConnected: () => void): Pool {
  const connect = undici.buildConnector({
    ...settings.tls,
    allowH2: settings.allowH2,
    timeout: settings.connectMs,
    autoSelectFamily: true,
  });
  let protocol: string | false | null = false;
  const pool = new undici.Pool(settings.origin, {
    connections: settings.maxConnections ?? null,
    allowH2: settings.allowH2,
    pipelining: settings.allowH2 ? STREAMS_PER_CONNECTION : 1,
    // The engine's timers decide how long an answer may take; a listen stream may be silent for days (HTTP-04).
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (options, callback) =>
      connect(options, (...result) => {
        protocol = (result[1] as { alpnProtocol?: string | false | null } | null)?.alpnProtocol ?? false;
        callback(...result);
      }),
  });
  if (settings.allowH2) {
    pool.on("connect", (_origin, targets) => {
      // Over HTTP/1.1 a request must not wait behind the answer of another.
      const client = targets[targets.length - 1] as { pipelining?: number } | undefined;
      if (protocol !== "h2" && client !== undefined) client.pipelining = 1;
      // The connection takes its first request right after this event; only then does it accept another one.
      queueMicrotask(onConnected);
    });
    pool.on("connectionError", onConnected);
  }
  pool.on("connectionError", (_origin, targets) => {
    // The pool forgets a connection that failed without ending it. One that the server said goodbye to (GOAWAY) would
    // connect again by itself, to send what it had sent before, and then stay open for good.
    const client = targets[targets.length - 1];
    if (client !== undefined && client !== pool) void client.destroy();
  });
  return pool;
}

let undici: Promise<UndiciParts> | undefined;

/** Loads it once: an import costs a little each time, and a host may make a transport for every server it knows. */
function loadUndici(): Promise<UndiciParts> {
  undici ??= importUndici().catch((error: unknown) => {
    undici = undefined;
    throw error;
  });
  return undici;
}

async function importUndici(): Promise<UndiciParts> {
  try {
    const [pool, connect] = await Promise.all([
      // @ts-expect-error undici publishes no types for its inner files; this is the Pool of its root entry
      import("undici/lib/dispatcher/pool.js") as Promise<{ default: typeof Pool }>,
      // @ts-expect-error the same: the buildConnector of the root entry
      import("undici/lib/core/connect.js") as Promise<{ default: typeof buildConnector }>,
    ]);
    return { Pool: pool.default, buildConnector: connect.default };
  } catch {
    return await import("undici");
  }
}
