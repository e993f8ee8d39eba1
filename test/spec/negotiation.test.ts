import { describe, expect, it } from "vitest";
import type { LegacyPeerError, UnsupportedVersionError } from "../../src/errors.ts";
import { META } from "../../src/protocol.ts";
import type { Script } from "../../src/testing/peer-types.ts";
import { complete, elicitForm, inputRequired } from "../../src/testing/replies.ts";
import { BINDINGS, HTTP_AND_STDIO, type RigOptions, stdio, webSocket } from "../support/bindings.ts";
import { manualClock } from "../support/clocks.ts";
import { retryParts } from "../support/frames.ts";
import { errorOf, expectAtRest, textOf } from "../support/outcomes.ts";

// Which revision is spoken, and how the probe of a link tells an old server from a modern one.

const DISCOVERY = {
  resultType: "complete",
  supportedVersions: ["2026-07-28"],
  capabilities: {},
  ttlMs: 0,
  cacheScope: "private",
} as const;
const UNPROBED: RigOptions = { discovery: DISCOVERY as never };
const scripted: RigOptions = { peerOptions: { discover: false } };

/** Refuses every version but `version`. */
function onlySpeaks(version: string, then: Script): Script {
  return (request, exchange) => {
    if (request.meta[META.protocolVersion] === version) return then(request, exchange);
    exchange.error(-32022, "unsupported", {
      supported: [version],
      requested: request.meta[META.protocolVersion],
    });
  };
}

for (const { name, open } of HTTP_AND_STDIO) {
  describe(`versions over ${name}`, () => {
    const done: Script = (_request, exchange) => exchange.result(complete("done"));

    it("VER-01 B041: -32022 names what the server speaks, and the call goes on in a mutual version", async () => {
      const rig = await open(onlySpeaks("2026-01-01", done), {
        ...UNPROBED,
        protocolVersions: ["2026-07-28", "2026-01-01"],
      });
      expect(textOf(await rig.client.callTool("t"))).toBe("done");
      expect(textOf(await rig.client.callTool("t"))).toBe("done");
      const spoken = rig.peer.requests.map(({ meta }) => meta[META.protocolVersion]);
      expect(spoken).toEqual(["2026-07-28", "2026-01-01", "2026-01-01"]);
      expectAtRest(rig);
    });

    it("VER-01: a -32022 that leaves no mutual version is an error with both lists", async () => {
      const answers: [title: string, data: unknown, supported: string[]][] = [
        ["another version", { supported: ["2025-11-25", "1.0"] }, ["2025-11-25", "1.0"]],
        ["only the version that it rejects", { supported: ["2026-07-28"] }, ["2026-07-28"]],
        ["nothing", undefined, []],
        ["no list", { supported: "2026-07-28" }, []],
        ["a list of other things", { supported: [1, null, "x"] }, ["x"]],
      ];
      const script = answers.map(
        ([, data]): Script =>
          (_request, exchange) =>
            exchange.error(-32022, "unsupported", data),
      );
      const rig = await open(script, UNPROBED);
      for (const [title, , supported] of answers) {
        const error = await errorOf<UnsupportedVersionError>(rig.client.callTool("t"));
        expect([title, error.code, error.supported]).toEqual([title, "unsupported-version", supported]);
        expect(error.wanted).toEqual(["2026-07-28"]);
      }
      expect(rig.peer.requests).toHaveLength(answers.length);
    });

    it("VER-01 MRTR-19: a server that goes back and forth between versions ends the call", async () => {
      const script: Script = ({ meta }, exchange) => {
        const other = meta[META.protocolVersion] === "a" ? "b" : "a";
        exchange.error(-32022, "unsupported", { supported: [other] });
      };
      const rig = await open(script, { ...UNPROBED, protocolVersions: ["a", "b"] });
      expect((await errorOf(rig.client.callTool("t"))).code).toBe("rpc");
      expect(rig.peer.requests).toHaveLength(2);
    });
  });
}

for (const { name, open } of [stdio, webSocket]) {
  describe(`the probe over ${name}`, () => {
    it("VER-02: server/discover is the first exchange, the others wait for it, and one probe does", async () => {
      const order: string[] = [];
      let release: () => void = () => {};
      const script: Script = ({ method }, exchange) => {
        order.push(method);
        if (method !== "server/discover") return exchange.result(complete("done"));
        release = () => exchange.result(DISCOVERY);
      };
      const rig = await open(script, scripted);
      const calls = Promise.all([1, 2, 3].map(() => rig.client.callTool("t")));
      await rig.peer.waitFor(1);
      expect(rig.client.operations).toHaveLength(3);
      expect(order).toEqual(["server/discover"]);
      release();
      await calls;
      await rig.client.callTool("t");
      expect(order).toEqual(["server/discover", ...Array(4).fill("tools/call")]);
      expect(rig.peer.requests[0]?.meta[META.protocolVersion]).toBe("2026-07-28");
      expect(rig.events.some((event) => "method" in event && event.method === "server/discover")).toBe(false);
    });

    it("VER-02: a call that is cancelled while it waits is never sent, and the others go on", async () => {
      let release: () => void = () => {};
      const script: Script = ({ method }, exchange) => {
        if (method !== "server/discover") return exchange.result(complete("done"));
        release = () => exchange.result(DISCOVERY);
      };
      const rig = await open(script, scripted);
      const controller = new AbortController();
      const other = rig.client.callTool("other");
      const cancelled = errorOf(rig.client.callTool("cancelled", {}, { signal: controller.signal }));
      await rig.peer.waitFor(1);
      controller.abort();
      expect((await cancelled).code).toBe("cancelled");
      release();
      await other;
      expect(rig.peer.requests.map(({ params }) => params.name)).toEqual([undefined, "other"]);
      expect(rig.peer.notifications).toEqual([]);
    });

    it("VER-02: what a host does for one call that was held back may end the next", async () => {
      const controller = new AbortController();
      const rig = await open(complete("done"));
      const first = rig.client.callTool(
        "first",
        {},
        {
          meta: () => {
            controller.abort();
            return {};
          },
        },
      );
      const second = errorOf(rig.client.callTool("second", {}, { signal: controller.signal }));
      await first;
      expect((await second).code).toBe("cancelled");
      await rig.client.callTool("third");
      expect(rig.peer.requests.map(({ params }) => params.name)).toEqual(["first", "third"]);
    });

    it("VER-02 B050 B053: a discovery that the host has skips it", async () => {
      const rig = await open(complete("done"), { ...scripted, ...UNPROBED });
      await rig.client.callTool("t");
      expect(rig.peer.requests.map(({ method }) => method)).toEqual(["tools/call"]);
    });

    it("VER-01 VER-02: picks the host's first version that the discovery lists, or names both lists", async () => {
      const discovery = { ...DISCOVERY, supportedVersions: ["c", "b"] };
      const script: Script = ({ method }, exchange) =>
        exchange.result(method === "server/discover" ? discovery : complete("done"));
      const rig = await open(script, { ...scripted, protocolVersions: ["a", "b", "c"] });
      await rig.client.callTool("t");
      expect(rig.peer.requests.map(({ meta }) => meta[META.protocolVersion])).toEqual(["a", "b"]);
      await rig.close();
      const none = await open(script, { ...scripted, protocolVersions: ["a"] });
      const error = await errorOf<UnsupportedVersionError>(none.client.callTool("t"));
      expect(error).toMatchObject({ code: "unsupported-version", supported: ["c", "b"], wanted: ["a"] });
    });

    it("VER-02: a modern error to the probe is no old server", async () => {
      const rig = await open(
        onlySpeaks("b", ({ method }, exchange) =>
          exchange.result(
            method === "server/discover" ? { ...DISCOVERY, supportedVersions: ["b"] } : complete("done"),
          ),
        ),
        { ...scripted, protocolVersions: ["a", "b"] },
      );
      expect(textOf(await rig.client.callTool("t"))).toBe("done");
      expect(rig.peer.requests.map(({ meta }) => meta[META.protocolVersion])).toEqual(["a", "b", "b"]);
    });

    const legacy: [title: string, script: Script][] = [
      ["-32601", (_request, exchange) => exchange.error(-32601, "Method not found")],
      ["-32602", (_request, exchange) => exchange.error(-32602, "Invalid request parameters")],
      ["-32600", (_request, exchange) => exchange.error(-32600, "Not initialized")],
      ["-32000", (_request, exchange) => exchange.error(-32000, "Server not initialized")],
      [
        "an error with an id of null",
        (_request, exchange) =>
          exchange.frame('{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}'),
      ],
      [
        "an error without id",
        (_request, exchange) => exchange.frame('{"jsonrpc":"2.0","error":{"code":-32600,"message":"x"}}'),
      ],
      [
        "an answer with another id",
        ({ id }, exchange) => exchange.frame(`{"jsonrpc":"2.0","id":"${id}","result":{}}`),
      ],
      ["a message that breaks off", (_request, exchange) => exchange.frame('{"jsonrpc":"2.0","id":0,')],
      [
        "a result that is a list",
        ({ id }, exchange) => exchange.raw(`{"jsonrpc":"2.0","id":${id},"result":[]}`),
      ],
      ["a result without versions", (_request, exchange) => exchange.result({ capabilities: {} })],
      [
        "versions that are no strings",
        (_request, exchange) => exchange.result({ ...DISCOVERY, supportedVersions: [1] }),
      ],
    ];
    it("VER-02 B037 B040 B052: any answer but a discovery or a modern error is an old server, at once", async () => {
      // After each the link is not known yet, so the next call probes it again: with the next script.
      const rig = await open(
        legacy.map(([, script]) => script),
        { ...scripted, clock: manualClock() },
      );
      for (const [at, [title]] of legacy.entries()) {
        const errors = await Promise.all([1, 2].map(() => errorOf(rig.client.callTool("t"))));
        expect([title, ...errors.map(({ code }) => code)]).toEqual([title, "legacy-peer", "legacy-peer"]);
        expect(errors[0]).not.toBe(errors[1]);
        expect(errors[0]?.message).toContain("initialize");
        expect(rig.peer.requests).toHaveLength(at + 1);
      }
    });

    it("VER-02 B049: a banner or a log line before the discovery is noise, and does no harm", async () => {
      const script: Script = ({ method }, exchange) => {
        if (method !== "server/discover") return exchange.result(complete("done"));
        for (const line of ["Starting…", "123", "[]", "null", '"x"']) exchange.frame(line);
        exchange.result(DISCOVERY);
      };
      const rig = await open(script, scripted);
      expect(textOf(await rig.client.callTool("t"))).toBe("done");
      expect(rig.events.filter(({ type }) => type === "wire.anomaly").length).toBeGreaterThan(0);
    });

    it("VER-02 B038 B077: silence for probeMs is one too; at most one cancel is sent, and a late answer is ignored", async () => {
      const clock = manualClock();
      let late: () => void = () => {};
      const rig = await open(
        (_request, exchange) => {
          late = () => exchange.result(DISCOVERY);
        },
        { ...scripted, clock, probeMs: 10_000 },
      );
      const call = errorOf<LegacyPeerError>(rig.client.callTool("t"));
      await rig.peer.waitFor(1);
      await clock.advance(10_000);
      const error = await call;
      expect(error.code).toBe("legacy-peer");
      expect(error.message).toContain("10000 ms");
      await rig.peer.waitForCancelled(1);
      late();
      const again = errorOf(rig.client.callTool("t"));
      await rig.peer.waitFor(2);
      expect(rig.peer.notifications).toHaveLength(1);
      await clock.advance(10_000);
      expect((await again).code).toBe("legacy-peer");
    });

    it("VER-02 B047: a server that exits at the probe is a loss with what it left, not an old server", async () => {
      const rig = await open((_request, exchange) => exchange.crash(), {
        ...scripted,
        reissue: { max: 1, backoffMs: 1 },
      });
      const error = await errorOf(rig.client.callTool("t"));
      expect(error.code).toBe("connection-lost");
      expect(rig.peer.requests.map(({ method }) => method)).toEqual(["server/discover", "server/discover"]);
    });

    it("VER-02: every link is probed anew", async () => {
      const rig = await open(
        ({ params, method }, exchange) => {
          if (method === "server/discover") exchange.result(DISCOVERY);
          else if (params.name === "crash" && exchange.index < 3) exchange.crash();
          else exchange.result(complete("done"));
        },
        { ...scripted, reissue: { backoffMs: 1 } },
      );
      expect(textOf(await rig.client.callTool("crash"))).toBe("done");
      expect(rig.peer.requests.map(({ method, link }) => [method, link])).toEqual([
        ["server/discover", 0],
        ["tools/call", 0],
        ["server/discover", 1],
        ["tools/call", 1],
      ]);
    });
  });
}

describe("recovery in the middle of rounds", () => {
  const ask = inputRequired({ inputRequests: { k: elicitForm("?") }, requestState: "s" });
  const answered = { inputResponses: { k: { action: "decline" } }, requestState: "s" };

  for (const { name, open } of BINDINGS) {
    it(`MRTR-19 VER-01 B014 over ${name}: -32022 to a retry keeps its answers, has a new id, and asks no one again`, async () => {
      let asked = 0;
      const rig = await open(
        [
          ask,
          (_request, exchange) => exchange.error(-32022, "no more", { supported: ["2026-01-01"] }),
          complete("done"),
        ],
        {
          ...UNPROBED,
          protocolVersions: ["2026-07-28", "2026-01-01"],
          inputs: {
            elicitForm: () => {
              asked++;
              return { action: "decline" };
            },
          },
        },
      );
      expect(textOf(await rig.client.callTool("t"))).toBe("done");
      expect(asked).toBe(1);
      expect(retryParts(rig.peer)).toEqual([{}, answered, answered]);
      expectAtRest(rig);
    });
  }
});
