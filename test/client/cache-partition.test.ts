/** Private results and who may see them, told by the transports themselves (CCH-01). */

import { afterEach, describe, expect, it } from "vitest";
import { createClient } from "../../src/client.ts";
import { memoryCache } from "../../src/memory-cache.ts";
import type { PeerRequest, ScriptedPeer } from "../../src/testing/peer-types.ts";
import { createScriptedPeer } from "../../src/testing/scripted-peer.ts";
import type { Transport } from "../../src/transport.ts";
import { httpTransport } from "../../transports/http.ts";
import { memoryTransport } from "../../transports/memory.ts";
import { stdioTransport } from "../../transports/stdio.ts";
import { webSocketTransport } from "../../transports/websocket.ts";

const info = { name: "host", version: "1.0.0" };

/** Whose list it is, as the peer tells from the request's own authorization. */
function privateTools({ headers }: PeerRequest) {
  const name = String(headers?.authorization ?? "nobody");
  const tools = [{ name, inputSchema: { type: "object" } }];
  return { resultType: "complete", tools, ttlMs: 60_000, cacheScope: "private" };
}

let peer: ScriptedPeer;
afterEach(() => peer.close());

/** The names that two clients with one store see, one after the other. */
async function seenThrough(first: Transport, second: Transport): Promise<unknown[]> {
  const cache = memoryCache();
  const seen: unknown[] = [];
  for (const transport of [first, second]) {
    await using client = createClient({ transport, info, cache, peer: "the server" });
    seen.push((await client.listTools()).map(({ name }) => name));
    seen.push((await client.listTools()).map(({ name }) => name));
  }
  return seen;
}

describe("two clients with one store", () => {
  it("CCH-01 B163: over HTTP, two tokens at the same URL never see each other's lists, and each is asked for once", async () => {
    peer = createScriptedPeer((request, exchange) => exchange.result(privateTools(request)));
    const { url } = await peer.http({ answer: "json" });
    const seen = await seenThrough(
      httpTransport(url, { token: "ann" }),
      httpTransport(url, { token: "bob" }),
    );
    expect(seen).toEqual([["Bearer ann"], ["Bearer ann"], ["Bearer bob"], ["Bearer bob"]]);
    expect(peer.requests).toHaveLength(2);
  });

  it("CCH-01 B163: over HTTP, the same token shares, and a token function keeps nothing that is private", async () => {
    peer = createScriptedPeer((request, exchange) => exchange.result(privateTools(request)));
    const { url } = await peer.http({ answer: "json" });
    await seenThrough(httpTransport(url, { token: "ann" }), httpTransport(url, { token: "ann" }));
    expect(peer.requests).toHaveLength(1);
    await seenThrough(
      httpTransport(url, { token: () => "ann" }),
      httpTransport(url, { headers: () => ({}) }),
    );
    expect(peer.requests).toHaveLength(5);
  });
});

describe("what a transport tells of its authorization", () => {
  const url = "https://example.com/mcp";
  it.each<[string, Transport, Transport]>([
    ["the query", httpTransport(`${url}?user=ann`), httpTransport(`${url}?user=bob`)],
    ["a header", httpTransport(url, { headers: { "x-user": "ann" } }), httpTransport(url)],
    [
      "the token",
      webSocketTransport("wss://example.com", { token: "ann" }),
      webSocketTransport("wss://example.com"),
    ],
    [
      "the environment",
      stdioTransport({ command: "server", env: { KEY: "a" } }),
      stdioTransport({ command: "server" }),
    ],
    [
      "an argument",
      stdioTransport({ command: "server", args: ["ann"] }),
      stdioTransport({ command: "server" }),
    ],
    ["the handler", memoryTransport(() => ({})), memoryTransport(() => ({}))],
  ])("CCH-01 B163 SAF-01: %s makes a difference, and does not show", (_what, one, other) => {
    peer = createScriptedPeer([]);
    expect(one.partition?.(undefined)).toBeTypeOf("string");
    expect(one.partition?.(undefined)).not.toBe(other.partition?.(undefined));
    expect(one.partition?.(undefined)).not.toContain("ann");
  });
});
