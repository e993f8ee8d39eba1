/**
 * What the exchanges of one transport share: the endpoint, what is sent with every request, the connections, and the
 * list of exchanges that are not over. All of it is private to the transport, since the path may hold a secret.
 */

import type { Dispatcher } from "undici";
import type { AnomalyKind, TransportHost } from "../src/transport.ts";
import type { HeaderBuilder } from "./http-headers.ts";
import { type DispatcherSource, HostDispatcher, HttpPool, type HttpTlsOptions } from "./http-pool.ts";
import type { TokenSource } from "./http-token.ts";

/** How a site is set up; everything has been checked. */
export interface SiteSettings {
  readonly endpoint: URL;
  readonly headers: HeaderBuilder;
  readonly token: TokenSource | undefined;
  /** A dispatcher of the host, in place of the connections described below. */
  readonly dispatcher: Dispatcher | undefined;
  readonly allowH2: boolean;
  readonly maxConnections: number | undefined;
  readonly connectMs: number;
  readonly tls: HttpTlsOptions | undefined;
}

/** What the site asks of an exchange. */
export interface SiteExchange {
  /** Ends the exchange because the transport closes. */
  close(): void;
  /** Gives up waiting for the end of an answered stream. */
  stopLingering(): void;
}

/** Used until the engine has told its own: the engine's default. */
const DEFAULT_MESSAGE_BYTES = 16 * 1024 * 1024;
/** How long an answered stream may take to end by itself. Closing it costs the connection. */
const LINGER_MS = 250;
/** `close` does not wait longer than this for sockets. */
const CLOSE_MS = 1000;

export class HttpSite {
  readonly origin: string;
  /** Path and query of the endpoint. */
  readonly path: string;
  /** Origin and path: all of the URL that may be shown. */
  readonly peer: string;
  readonly headers: HeaderBuilder;
  readonly token: TokenSource | undefined;
  /** Whether requests may share a connection. */
  readonly multiplex: boolean;
  /** Whether the connections are of our own making, and not a dispatcher of the host. */
  readonly ownsConnections: boolean;
  messageBytes = DEFAULT_MESSAGE_BYTES;
  readonly #calls: DispatcherSource;
  readonly #streams: DispatcherSource;
  readonly #running = new Set<SiteExchange>();
  /** Answered exchanges whose stream has yet to end, and since when. */
  readonly #lingering = new Map<SiteExchange, number>();
  #lingerTimer: ReturnType<typeof setTimeout> | undefined;
  #host: TransportHost | undefined;

  constructor(settings: SiteSettings) {
    const { endpoint, dispatcher } = settings;
    this.origin = endpoint.origin;
    this.path = endpoint.pathname + endpoint.search;
    this.peer = endpoint.origin + endpoint.pathname;
    this.headers = settings.headers;
    this.token = settings.token;
    this.multiplex = settings.allowH2;
    this.ownsConnections = dispatcher === undefined;
    if (dispatcher !== undefined) {
      this.#calls = this.#streams = new HostDispatcher(dispatcher);
      return;
    }
    const pool = {
      origin: this.origin,
      allowH2: settings.allowH2,
      maxConnections: settings.maxConnections,
      connectMs: settings.connectMs,
      tls: settings.tls,
    };
    this.#calls = new HttpPool(pool);
    // Streams that stay open for days must not use up the connections of calls.
    this.#streams = new HttpPool({ ...pool, maxConnections: undefined });
  }

  attach(host: TransportHost): void {
    this.#host = host;
    this.messageBytes = host.limits.messageBytes;
  }

  connections(longLived: boolean): DispatcherSource {
    return longLived ? this.#streams : this.#calls;
  }

  anomaly(kind: AnomalyKind, detail: unknown): void {
    this.#host?.anomaly(kind, detail);
  }

  /** A new exchange. */
  started(exchange: SiteExchange): void {
    this.#running.add(exchange);
  }

  /** The exchange needs nothing more. */
  finished(exchange: SiteExchange): void {
    this.#running.delete(exchange);
    this.#lingering.delete(exchange);
  }

  /** The exchange has its answer; its response stream should end by itself, soon. */
  lingers(exchange: SiteExchange): void {
    this.#running.delete(exchange);
    this.#lingering.set(exchange, performance.now());
    this.#armLinger();
  }

  /** Ends all exchanges and connections. */
  async close(): Promise<void> {
    for (const exchange of [...this.#running, ...this.#lingering.keys()]) exchange.close();
    clearTimeout(this.#lingerTimer);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSE_MS);
    });
    await Promise.race([Promise.all([this.#calls.destroy(), this.#streams.destroy()]), late]);
    clearTimeout(timer);
  }

  /** One timer for all of them, and none while there are none. */
  #armLinger(): void {
    if (this.#lingerTimer !== undefined) return;
    this.#lingerTimer = setTimeout(() => this.#sweepLingering(), LINGER_MS);
    this.#lingerTimer.unref();
  }

  #sweepLingering(): void {
    this.#lingerTimer = undefined;
    const latest = performance.now() - LINGER_MS + 1;
    for (const [exchange, since] of this.#lingering) {
      if (since <= latest) exchange.stopLingering();
    }
    if (this.#lingering.size > 0) this.#armLinger();
  }
}
