/**
 * The Streamable HTTP binding: every exchange is one POST, answered with JSON or an event stream.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http}
 */

import type { Dispatcher } from "undici";
import { UsageError } from "../src/errors.ts";
import type { Exchange, ExchangeRequest, ExchangeSink, Transport, TransportHost } from "../src/transport.ts";
import { HttpExchange } from "./http-exchange.ts";
import { type CallInfo, HeaderBuilder, type HttpHeaders } from "./http-headers.ts";
import type { HttpTlsOptions } from "./http-pool.ts";
import { HttpSite } from "./http-site.ts";
import { type TokenOption, TokenSource } from "./http-token.ts";
import { partitionOf } from "./partition.ts";

export type { CallInfo, HttpHeaders } from "./http-headers.ts";
export type { HttpTlsOptions } from "./http-pool.ts";
export type { TokenCall, TokenOption } from "./http-token.ts";

/** Options of {@link httpTransport}. */
export interface HttpTransportOptions {
  /**
   * Header fields to send besides the protocol's own: an object, or a function that is called for every attempt.
   * Fields that the protocol or the connection owns (`Accept`, `Content-Type`, `Content-Length`, `Host`, `Mcp-*`,
   * hop-by-hop fields) are passed over. A field that cannot be sent is a UsageError here, or a ConnectError of the call
   * when a function gave it.
   */
  readonly headers?: HttpHeaders | ((call: CallInfo) => HttpHeaders);
  /**
   * A bearer token for `Authorization`, instead of one in `headers`: a string, or a function that is called for every
   * attempt. After a 401, or a 403 that asks for more scope, the function is called with the challenge and the attempt
   * is made once more; calls with the same context that met the same challenge share one call of the function.
   */
  readonly token?: TokenOption;
  /**
   * An undici Dispatcher of your own, for a proxy, a Unix socket, or settings that are not here. It is never closed by the
   * transport. `maxConnections`, `connectMs` and `tls` are its own business then.
   */
  readonly dispatcher?: Dispatcher;
  /**
   * Speak HTTP/2 with a server that offers it over TLS. Default false. With a dispatcher of your own: whether that one
   * may put requests beside each other on one connection.
   */
  readonly allowH2?: boolean;
  /** The most connections for calls; further calls wait. Default: as many as there are calls at a time. */
  readonly maxConnections?: number;
  /** How long connecting may take, in milliseconds. Default 10,000. */
  readonly connectMs?: number;
  /** A certificate authority of your own, or a client certificate. */
  readonly tls?: HttpTlsOptions;
}

const DEFAULT_CONNECT_MS = 10_000;

/**
 * Makes a transport to an MCP endpoint. Nothing is connected before the first call. Connections are kept and shared
 * between calls; a `subscriptions/listen` stream has its own.
 *
 * Cancelling closes the response stream. Over HTTP/1.1 that costs the connection, and a later call opens a new one; over
 * HTTP/2 it costs nothing.
 *
 * @example
 * const transport = httpTransport("https://example.com/mcp", { token: () => readToken() });
 *
 * @throws UsageError when the URL is not an http(s) URL or holds credentials, or an option cannot work
 */
export function httpTransport(url: string | URL, options: HttpTransportOptions = {}): Transport {
  const endpoint = readEndpoint(url);
  const token = options.token === undefined ? undefined : new TokenSource(options.token);
  const { headers, dispatcher } = options;
  // What a function or a dispatcher of the host adds can't be told beforehand.
  const isKnown =
    typeof headers !== "function" && typeof options.token !== "function" && dispatcher === undefined;
  const partition = isKnown
    ? partitionOf(endpoint.href, headers ?? {}, options.token ?? null, options.tls?.cert ?? null)
    : undefined;
  return new HttpTransport(
    partition,
    new HttpSite({
      endpoint,
      token,
      headers: new HeaderBuilder({ headers: options.headers, withoutAuthorization: token !== undefined }),
      dispatcher: options.dispatcher,
      allowH2: options.allowH2 === true,
      maxConnections: readCount(options.maxConnections, "maxConnections"),
      connectMs: readCount(options.connectMs, "connectMs") ?? DEFAULT_CONNECT_MS,
      tls: options.tls,
    }),
  );
}

class HttpTransport implements Transport {
  readonly name = "http";
  readonly peer: string;
  readonly #partition: (() => string) | undefined;
  readonly #site: HttpSite;
  #closing: Promise<void> | undefined;

  constructor(partition: (() => string) | undefined, site: HttpSite) {
    this.peer = site.peer;
    this.#partition = partition;
    this.#site = site;
  }

  partition(): string | undefined {
    return this.#partition?.();
  }

  attach(host: TransportHost): void {
    this.#site.attach(host);
  }

  exchange(request: ExchangeRequest, sink: ExchangeSink): Exchange {
    const exchange = new HttpExchange(this.#site, request, sink);
    exchange.begin(this.#closing !== undefined);
    return exchange;
  }

  close(): Promise<void> {
    // Set before anything else: what the host does meanwhile already meets a closed transport.
    if (this.#closing === undefined) {
      let resolve: (closed: Promise<void>) => void = () => {};
      this.#closing = new Promise<void>((settle) => {
        resolve = settle;
      });
      resolve(this.#site.close());
    }
    return this.#closing;
  }
}

function readEndpoint(url: string | URL): URL {
  let endpoint: URL;
  try {
    endpoint = new URL(url);
  } catch {
    // The text may hold a secret, so it is not repeated.
    throw new UsageError("httpTransport: the url is not a URL; give one such as https://example.com/mcp.", {
      path: "url",
    });
  }
  if (endpoint.protocol !== "http:" && endpoint.protocol !== "https:") {
    throw new UsageError(
      `httpTransport: the url must be http or https, not ${endpoint.protocol.slice(0, 20)}`,
      {
        path: "url",
      },
    );
  }
  if (endpoint.username !== "" || endpoint.password !== "") {
    throw new UsageError(
      "httpTransport: the url must not hold credentials, because URLs end up in logs; use `token`, or an Authorization header.",
      { path: "url" },
    );
  }
  return endpoint;
}

function readCount(value: number | undefined, option: string): number | undefined {
  if (value !== undefined && !(Number.isInteger(value) && value > 0)) {
    throw new UsageError(`httpTransport: ${option} must be a positive integer, not ${String(value)}.`, {
      path: `options.${option}`,
    });
  }
  return value;
}
