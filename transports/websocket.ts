/**
 * The WebSocket binding: subprotocol `mcp`, one JSON-RPC message per text frame. The specification names no such binding;
 * `docs/websocket-binding.md` describes this one, so that a server can be written for it (WS-01).
 */

import type { Agent } from "node:http";
import { UsageError } from "../src/errors.ts";
import type { Transport } from "../src/transport.ts";
import type { BackoffOptions } from "./backoff.ts";
import { type CallInfo, flattenHeaders, type HttpHeaders, isSafeToken } from "./http-headers.ts";
import { type TokenOption, TokenSource } from "./http-token.ts";
import { linkTransport } from "./link.ts";
import { partitionOf } from "./partition.ts";
import { WebSocketLink, type WebSocketSettings } from "./websocket-link.ts";

export type { BackoffOptions } from "./backoff.ts";
export type { CallInfo, HttpHeaders } from "./http-headers.ts";
export type { TokenCall, TokenOption } from "./http-token.ts";

/** Options of {@link webSocketTransport}. Times are in milliseconds. */
export interface WebSocketOptions {
  /** Header fields of the upgrade request: an object, or a function called for every connection with the context of the call that needs it. */
  readonly headers?: HttpHeaders | ((call: CallInfo) => HttpHeaders) | undefined;
  /**
   * A bearer token for the upgrade request: a string, or a function called for every connection. When the upgrade is
   * refused with 401 or 403, the function is called once more with the challenge.
   */
  readonly token?: TokenOption | undefined;
  /**
   * How a lost connection is made again. The next call does it: at once the first time, then after a growing wait, and the
   * count begins anew after sustained uptime. `false`: never; later calls fail with the loss.
   */
  readonly reconnect?: BackoffOptions | false | undefined;
  /** Time between pings. 0: no pings. Default 30 000. */
  readonly pingMs?: number | undefined;
  /** How long after a ping nothing at all may come before the connection counts as dead. Default 10 000. */
  readonly pongMs?: number | undefined;
  /** How long connecting and the upgrade may take together. Default 10 000. */
  readonly handshakeMs?: number | undefined;
  /** How long `close()` waits for the peer's close frame. Default 1000. */
  readonly closeMs?: number | undefined;
  /** How much may wait to be sent, in characters. More fails with a `LimitError` that says "not-sent". Default 16 Mi. */
  readonly outboundBytes?: number | undefined;
  /** The agent that connects: for a proxy, or TLS settings. Default: Node's own. */
  readonly agent?: Agent | undefined;
}

/**
 * A transport to a WebSocket endpoint, connected when the first call needs it.
 *
 * A close with 1002, 1003, 1007, 1008 or 1009 says that connecting again would end the same way: it is not done, and later
 * calls fail with the cause. The way out is to remove the cause and make a new transport.
 *
 * @throws UsageError when the URL is not a ws(s) URL or holds credentials, or an option cannot work.
 * @example
 * webSocketTransport("wss://example.com/mcp", { token: () => readToken() })
 */
export function webSocketTransport(url: string | URL, options: WebSocketOptions = {}): Transport {
  const endpoint = readEndpoint(url);
  const settings = readSettings(endpoint, options);
  return linkTransport({
    name: "websocket",
    peer: settings.peer,
    partition: partitionFor(endpoint, options),
    open: (link, request) => new WebSocketLink(settings, link, request),
    reconnect: options.reconnect,
    outboundBytes: options.outboundBytes,
  });
}

/** What a function or an agent of the host adds can't be told beforehand. */
function partitionFor(
  { href }: URL,
  { headers, token, agent }: WebSocketOptions,
): (() => string) | undefined {
  if (typeof headers === "function" || typeof token === "function" || agent !== undefined) return undefined;
  return partitionOf(href, headers ?? {}, token ?? null);
}

function readEndpoint(url: string | URL): URL {
  let endpoint: URL;
  try {
    endpoint = new URL(url);
  } catch {
    // The text may hold a secret, so it is not repeated.
    throw usage("the url is not a URL; give one such as wss://example.com/mcp", "url");
  }
  if (endpoint.protocol !== "ws:" && endpoint.protocol !== "wss:") {
    throw usage(`the url must be ws or wss, not ${endpoint.protocol.slice(0, 20)}`, "url");
  }
  if (endpoint.username !== "" || endpoint.password !== "") {
    throw usage(
      "the url must not hold credentials, because URLs end up in logs; use `token` or `headers`",
      "url",
    );
  }
  endpoint.hash = "";
  return endpoint;
}

function readSettings(endpoint: URL, options: WebSocketOptions): WebSocketSettings {
  const { headers, token } = options;
  if (token !== undefined && typeof token !== "function" && !isSafeToken(token)) {
    throw usage(
      "token must be a function or a non-empty string of visible ASCII characters",
      "options.token",
    );
  }
  if (typeof headers !== "function") {
    const read = flattenHeaders(headers ?? {});
    if ("fault" in read) throw usage(read.fault, "options.headers");
  }
  return {
    url: endpoint.href,
    peer:
      endpoint.origin === "null"
        ? `${endpoint.protocol}//${endpoint.host}${endpoint.pathname}`
        : endpoint.origin + endpoint.pathname,
    headers: headers ?? {},
    token: token === undefined ? undefined : new TokenSource(token),
    pingMs: readMs(options.pingMs, "pingMs", 30_000),
    pongMs: readMs(options.pongMs, "pongMs", 10_000),
    handshakeMs: readMs(options.handshakeMs, "handshakeMs", 10_000),
    closeMs: readMs(options.closeMs, "closeMs", 1000),
    agent: options.agent,
  };
}

function readMs(value: number | undefined, option: string, byDefault: number): number {
  if (value === undefined) return byDefault;
  if (!(value >= 0 && value <= 2 ** 31 - 1)) {
    throw usage(`${option} must be a number of milliseconds, not ${String(value)}`, `options.${option}`);
  }
  return value;
}

function usage(fault: string, path: string): UsageError {
  return new UsageError(`webSocketTransport: ${fault}.`, { path });
}
