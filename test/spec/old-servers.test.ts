import { describe, expect, it } from "vitest";
import { ConnectError, type LegacyPeerError } from "../../src/errors.ts";
import type { PeerHttpAnswer } from "../../src/testing/peer-types.ts";
import { complete } from "../../src/testing/replies.ts";
import { createScriptedPeer } from "../../src/testing/scripted-peer.ts";
import { httpTransport } from "../../transports/http.ts";
import { stdioTransport } from "../../transports/stdio.ts";
import { httpJson, rigOver } from "../support/bindings.ts";
import { errorOf } from "../support/outcomes.ts";
import { legacyStdio, startLegacyHttp } from "../support/servers.ts";

// Servers that speak only the older revisions, and what must not be taken for one.

describe("an old server over HTTP", () => {
  const rpcError = (code: number, id: unknown = null) =>
    JSON.stringify({ jsonrpc: "2.0", id, error: { code, message: "nope" } });
  const answers: [title: string, answer: PeerHttpAnswer, code: string][] = [
    ["400 with the text of a session error", { status: 400, body: rpcError(-32000) }, "legacy-peer"],
    ["400 without body", { status: 400 }, "legacy-peer"],
    [
      "404 with HTML",
      { status: 404, headers: { "content-type": "text/html" }, body: "<h1>no</h1>" },
      "legacy-peer",
    ],
    ["405", { status: 405 }, "legacy-peer"],
    ["406", { status: 406, body: "not acceptable" }, "legacy-peer"],
    ["400 with -32021", { status: 400, body: rpcError(-32021, 1) }, "capability-required"],
    ["400 with -32021 and no id", { status: 400, body: rpcError(-32021) }, "capability-required"],
    ["404 with -32601 for this request", { status: 404, body: rpcError(-32601, 1) }, "rpc"],
    ["401", { status: 401 }, "http-status"],
    ["403", { status: 403, body: "forbidden" }, "http-status"],
    ["429", { status: 429 }, "http-status"],
    ["500", { status: 500, body: "oops" }, "http-status"],
    [
      "502",
      { status: 502, headers: { "content-type": "text/html" }, body: "<h1>bad gateway</h1>" },
      "http-status",
    ],
    ["200 with broken JSON", { headers: { "content-type": "application/json" }, body: "{" }, "frame"],
    ["200 with HTML", { headers: { "content-type": "text/html" }, body: "<h1>hi</h1>" }, "frame"],
  ];
  it.each(answers)("VER-02 B043: the answer %s", async (_title, answer, code) => {
    const rig = await httpJson.open((_request, exchange) => exchange.http(answer), { reissue: "never" });
    const error = await errorOf<LegacyPeerError>(rig.client.callTool("t"));
    expect(error.code).toBe(code);
    if (code === "legacy-peer") {
      expect(error.status).toBe(answer.status);
      expect(error.message).toContain("initialize");
      expect(typeof error.body).toBe("string");
    }
    expect(rig.peer.requests).toHaveLength(1);
  });

  it("VER-02: a 4xx of a server that is known to be modern is no old server", async () => {
    const rig = await httpJson.open([
      complete("done"),
      (_request, exchange) => exchange.http({ status: 404 }),
    ]);
    await rig.client.callTool("t");
    expect((await errorOf(rig.client.callTool("t"))).code).toBe("http-status");
  });

  it("VER-02 B043: a refused connection is no old server", async () => {
    const peer = createScriptedPeer(complete("done"));
    const { url } = await peer.http();
    await peer.close();
    const rig = rigOver(peer, httpTransport(url), { reissue: { max: 0 } });
    const error = await errorOf(rig.client.callTool("t"));
    expect([error.code, error instanceof ConnectError]).toEqual(["connect", true]);
  });

  it("B046: no GET and no DELETE is ever sent", async () => {
    const rig = await httpJson.open(complete("done"));
    await rig.client.callTool("t");
    await rig.close();
    expect(rig.peer.received.map((text) => JSON.parse(text).method)).toEqual(["tools/call"]);
  });
});

describe("the published server of the older revisions", () => {
  it("VER-02: over HTTP is a LegacyPeerError within a second", async () => {
    const server = await startLegacyHttp();
    try {
      const rig = rigOver(createScriptedPeer({}), httpTransport(server.url));
      const startedAt = performance.now();
      const error = await errorOf<LegacyPeerError>(rig.client.callTool("echo", { message: "hi" }));
      expect(performance.now() - startedAt).toBeLessThan(1000);
      expect(error).toMatchObject({ code: "legacy-peer", status: 400, body: expect.any(String) });
      await rig.close();
    } finally {
      await server.close();
    }
  });

  it("VER-02: over stdio is a LegacyPeerError within a second of its answer", async () => {
    const { command, args } = legacyStdio();
    const rig = rigOver(createScriptedPeer({}), stdioTransport({ command, args }));
    expect((await errorOf(rig.client.callTool("echo"))).code).toBe("legacy-peer");
    // The process runs by now, so this is the time of the answer alone.
    const startedAt = performance.now();
    expect((await errorOf(rig.client.callTool("echo"))).code).toBe("legacy-peer");
    expect(performance.now() - startedAt).toBeLessThan(1000);
  });
});
