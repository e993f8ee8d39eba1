/** A target (URL, command, or an `mcpServers` entry) to a transport. This module loads every transport. */

import type { Transport } from "../src/transport.ts";
import { type HttpTransportOptions, httpTransport } from "./http.ts";
import { type StdioOptions, stdioTransport } from "./stdio.ts";
import { type ResolveOptions, resolveTarget, type Target, webOptions } from "./target-entry.ts";
import { type WebSocketOptions, webSocketTransport } from "./websocket.ts";

export type { CommandTarget, ResolveOptions, Target, UrlTarget, Variables } from "./target-entry.ts";

/** Options of {@link transportFor}. */
export interface TargetOptions extends ResolveOptions {
  /** More options for the transport that the target leads to; those of the other transports are passed over. */
  readonly http?: Omit<HttpTransportOptions, "headers" | "token"> | undefined;
  readonly websocket?: Omit<WebSocketOptions, "headers" | "token"> | undefined;
  readonly stdio?: Omit<StdioOptions, "command" | "args" | "env" | "cwd"> | undefined;
}

/**
 * Makes the transport that a target stands for: a URL string (http, https, ws, wss), `{ command, args, env, cwd }`, or one
 * entry of the `mcpServers` JSON that hosts already keep, with `${VAR}` and `${VAR:-default}` in its strings. Nothing is
 * connected or started before the first call.
 *
 * @throws {UsageError} when the target or an option cannot work: it names the scheme, the member or the variable at fault,
 * and never a value.
 * @example
 * const { mcpServers } = JSON.parse(await readFile("mcp.json", "utf8"));
 * const client = createClient({ transport: transportFor(mcpServers.deploy), info });
 */
export function transportFor(target: Target, options: TargetOptions = {}): Transport {
  const resolved = resolveTarget(target, options);
  switch (resolved.kind) {
    case "http":
      return httpTransport(resolved.url, { ...options.http, ...webOptions(resolved) });
    case "websocket":
      return webSocketTransport(resolved.url, { ...options.websocket, ...webOptions(resolved) });
    case "stdio": {
      const { command, args, env, cwd } = resolved;
      return stdioTransport({ ...options.stdio, command, args, env, cwd });
    }
  }
}
