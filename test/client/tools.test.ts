/** Mirrored params of tool calls over real HTTP: on every way to call, on every attempt, and after -32020 (HDR-02, HDR-03). */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Client, createClient } from "../../src/client.ts";
import { RpcError } from "../../src/errors.ts";
import type { Tool } from "../../src/mcp-types.ts";
import { complete, elicitForm, inputRequired } from "../../src/testing/replies.ts";
import { httpTransport } from "../../transports/http.ts";
import { BINDINGS, httpJson, httpSse, memory, type Rig } from "../support/bindings.ts";
import { manualClock } from "../support/clocks.ts";
import { retryParts } from "../support/frames.ts";
import { errorOf, textOf, until } from "../support/outcomes.ts";
import { type StartedServer, startOfficialHttp } from "../support/servers.ts";
import { checkingServer, mirroredValue, type Offer, regionTool } from "./checking-server.ts";

const TOOL = regionTool("deploy", "Region");
const ARGS = { region: "eu-1" };
const ASK = inputRequired({ inputRequests: { sure: elicitForm("Deploy?") }, requestState: "s1" });

function methods({ peer }: Rig): string[] {
  return peer.requests.map(({ method }) => method);
}

function regions({ peer }: Rig, header = "Region"): (string | undefined)[] {
  const calls = peer.requests.filter(({ method }) => method === "tools/call");
  return calls.map((request) => mirroredValue(request, header));
}

describe("once the tool is known", () => {
  const ways: [string, (client: Client) => Promise<unknown>][] = [
    ["callTool", (client) => client.callTool("deploy", ARGS)],
    ["request", (client) => client.request("tools/call", { name: "deploy", arguments: ARGS })],
    ["begin", (client) => client.begin("tools/call", { name: "deploy", arguments: ARGS })],
  ];
  for (const { name, open } of [httpJson, httpSse]) {
    it.each(ways)(`HDR-02 B056: %s mirrors its params over ${name}`, async (_what, call) => {
      const rig = await open(checkingServer({ pages: [[TOOL]] }));
      await rig.client.listTools();
      await call(rig.client);
      expect(regions(rig)).toEqual(["eu-1"]);
      expect(rig.peer.requests.at(-1)!.headers).toMatchObject({
        "mcp-method": "tools/call",
        "mcp-name": "deploy",
      });
    });
  }

  it.each(BINDINGS)("HDR-02: a tool with annotations works over $name", async ({ open }) => {
    const answer: Offer["answer"] = (request, exchange) =>
      exchange.result(complete(JSON.stringify(request.params.arguments)));
    const rig = await open((request, exchange) => {
      if (request.method === "tools/list") exchange.result({ tools: [TOOL] });
      else answer(request, exchange);
    });
    expect(await rig.client.listTools()).toEqual([TOOL]);
    expect(textOf(await rig.client.callTool("deploy", ARGS))).toBe('{"region":"eu-1"}');
  });

  it.each([
    ["CR and LF", "a\r\nX-Evil: 1"],
    ["outer spaces", " pad "],
    ["the sentinel's own look", "=?base64?x?="],
    ["emoji", "🏓"],
    ["an empty string", ""],
  ])("HDR-02 B059: %s arrive as one header and no more", async (_what, region) => {
    const rig = await httpJson.open(checkingServer({ pages: [[TOOL]] }));
    await rig.client.listTools();
    await rig.client.callTool("deploy", { region });
    expect(regions(rig)).toEqual([region]);
    expect(rig.peer.requests.at(-1)!.headers).not.toHaveProperty("x-evil");
  });

  it("HDR-02 B059: null and missing values omit the header; 2^53 is refused and nothing is sent", async () => {
    const inputSchema = {
      type: "object",
      properties: { limit: { type: "integer", "x-mcp-header": "Limit" } },
    };
    const rig = await httpJson.open((request, exchange) => {
      if (request.method === "tools/list") exchange.result({ tools: [{ name: "query", inputSchema }] });
      else exchange.result(complete("ok"));
    });
    await rig.client.listTools();
    await rig.client.callTool("query", { limit: null });
    await rig.client.callTool("query");
    await rig.client.callTool("query", { limit: 42 });
    expect(regions(rig, "Limit")).toEqual([undefined, undefined, "42"]);
    const error = await errorOf(rig.client.callTool("query", { limit: 2 ** 53 }));
    expect(error).toMatchObject({ code: "usage", path: "arguments.limit" });
    expect(rig.peer.requests).toHaveLength(4);
  });

  it("HDR-02: what the caller changes after the call is neither sent nor mirrored", async () => {
    const rig = await httpJson.open(checkingServer({ pages: [[TOOL]] }));
    await rig.client.listTools();
    const args = { region: "eu-1" };
    const call = rig.client.callTool("deploy", args);
    args.region = "us-1";
    await call;
    expect(regions(rig)).toEqual(["eu-1"]);
  });

  it("HDR-02 B164: the header map outlives the list's ttl, and no list is fetched for it", async () => {
    const clock = manualClock();
    for (const ttlMs of [0, 1000]) {
      const more = { ttlMs, cacheScope: "public" };
      const rig = await httpJson.open(checkingServer({ pages: [[TOOL]], more }), { clock });
      await rig.client.listTools();
      await clock.advance(5000);
      await rig.client.callTool("deploy", ARGS);
      expect(regions(rig)).toEqual(["eu-1"]);
      expect(methods(rig)).toEqual(["tools/list", "tools/call"]);
    }
  });

  it("HDR-02 MRTR-06: every round mirrors the same", async () => {
    const answers = [ASK, complete("deployed")];
    const answer: Offer["answer"] = (_request, exchange) => exchange.result(answers.shift());
    const rig = await httpJson.open(checkingServer({ pages: [[TOOL]], answer }), {
      inputs: { elicitForm: () => ({ action: "accept", content: { ok: true } }) },
    });
    await rig.client.listTools();
    await rig.client.callTool("deploy", ARGS);
    expect(regions(rig)).toEqual(["eu-1", "eu-1"]);
  });

  it("HDR-02 MRTR-18: an attempt that is issued again mirrors the same", async () => {
    let lost = false;
    const answer: Offer["answer"] = (_request, exchange) => {
      if (lost) return exchange.result(complete("deployed"));
      lost = true;
      exchange.crash();
    };
    const rig = await httpSse.open(checkingServer({ pages: [[TOOL]], answer }));
    await rig.client.listTools();
    await rig.client.callTool("deploy", ARGS);
    expect(regions(rig)).toEqual(["eu-1", "eu-1"]);
  });

  it("HDR-02 MRTR-20: a continuation carries the mirrored fields to a client that never saw the list", async () => {
    const answers = [ASK, complete("deployed")];
    const answer: Offer["answer"] = (_request, exchange) => exchange.result(answers.shift());
    const rig = await httpJson.open(checkingServer({ pages: [[TOOL]], answer }), {
      inputs: { elicitForm: "suspend" },
    });
    await rig.client.listTools();
    const outcome = await rig.client.begin("tools/call", { name: "deploy", arguments: ARGS });
    if (outcome.status !== "input_required") throw new Error("the server should have asked");
    const { url } = await rig.peer.http();
    await using other = createClient({
      transport: httpTransport(url),
      info: { name: "other", version: "1" },
      peer: rig.client.peer,
      inputs: { elicitForm: "suspend" },
    });
    const response = { sure: { action: "accept", content: { ok: true } } };
    expect(await other.resume(JSON.parse(JSON.stringify(outcome.continuation)), response)).toMatchObject({
      status: "complete",
    });
    expect(regions(rig)).toEqual(["eu-1", "eu-1"]);
    expect(methods(rig)).toEqual(["tools/list", "tools/call", "tools/call"]);
  });

  it("MRTR-18: trusted annotations of the list make a lost call repeatable under the policy safe", async () => {
    for (const trustAnnotations of [true, false]) {
      let calls = 0;
      const answer: Offer["answer"] = (_request, exchange) => {
        if (++calls === 1) exchange.crash();
        else exchange.result(complete("read"));
      };
      const tool = regionTool("deploy", "Region", { annotations: { readOnlyHint: true } });
      const rig = await httpJson.open(checkingServer({ pages: [[tool]], answer }), {
        trustAnnotations,
        reissue: "safe",
      });
      await rig.client.listTools();
      const call = rig.client.callTool("deploy", ARGS);
      if (trustAnnotations) expect(textOf(await call)).toBe("read");
      else expect(await errorOf(call)).toMatchObject({ code: "connection-lost", delivery: "unknown" });
      expect(calls).toBe(trustAnnotations ? 2 : 1);
    }
  });
});

describe("a definition that is given with the call", () => {
  it("HDR-02 B154: is enough to mirror, without any list", async () => {
    const rig = await httpJson.open(checkingServer({ pages: [[TOOL]] }));
    await rig.client.callTool("deploy", ARGS, { tool: TOOL as unknown as Tool });
    expect(methods(rig)).toEqual(["tools/call"]);
    expect(regions(rig)).toEqual(["eu-1"]);
  });

  it.each([
    ["of another tool", regionTool("other", "Region"), "tool.name"],
    ["without a name", { inputSchema: {} }, "tool"],
    ["that is no object", "deploy", "tool"],
    ["with an invalid annotation", regionTool("deploy", "not a token"), "tool.inputSchema"],
  ])("HDR-02 B154: one %s is refused before anything is sent", async (_what, tool, path) => {
    const rig = await httpJson.open(checkingServer({ pages: [[TOOL]] }));
    const error = await errorOf(rig.client.callTool("deploy", ARGS, { tool: tool as Tool }));
    expect(error).toMatchObject({ code: "usage", path });
    expect(rig.peer.requests).toHaveLength(0);
  });
});

describe("a list with invalid annotations", () => {
  it.each(BINDINGS)(
    "HDR-02 B058: the tool is left out with an event, its siblings stay ($name)",
    async ({ open }) => {
      const bad = regionTool("bad", "not a token");
      const number = {
        name: "number",
        inputSchema: { properties: { n: { type: "number", "x-mcp-header": "N" } } },
      };
      const rig = await open((_request, exchange) => exchange.result({ tools: [TOOL, bad, number] }));
      expect(await rig.client.listTools()).toEqual([TOOL]);
      const rejected = rig.events.filter(({ type }) => type === "tool.rejected");
      expect(rejected).toEqual([
        expect.objectContaining({ tool: "bad", reason: expect.stringContaining('"not a token"') }),
        expect.objectContaining({ tool: "number", reason: expect.stringContaining('not "number"') }),
      ]);
    },
  );

  it("HDR-02 B058: the raw pages hold what came", async () => {
    const bad = regionTool("bad", "not a token");
    const rig = await memory.open({ tools: [TOOL, bad] });
    for await (const page of rig.client.pages("tools/list")) expect(page.tools).toEqual([TOOL, bad]);
  });

  it("HDR-02: entries that are no tools harm no others", async () => {
    const rig = await httpJson.open((request, exchange) => {
      if (request.method === "tools/list") exchange.result({ tools: [null, 7, { name: 1 }, "x", TOOL] });
      else exchange.result(complete("ok"));
    });
    await rig.client.listTools();
    await rig.client.callTool("deploy", ARGS);
    expect(regions(rig)).toEqual(["eu-1"]);
  });
});

describe("after -32020", () => {
  it.each([httpJson, httpSse])(
    "HDR-03 B055 B154: an unlisted tool is looked up and the call retried once ($name)",
    async ({ open }) => {
      const pages = [[regionTool("a", "A")], [TOOL], [regionTool("z", "Z")]];
      const rig = await open(checkingServer({ pages }));
      expect(textOf(await rig.client.callTool("deploy", ARGS))).toBe("called deploy");
      // The third page is not asked for: the tool was on the second.
      expect(methods(rig)).toEqual(["tools/call", "tools/list", "tools/list", "tools/call"]);
      expect(regions(rig)).toEqual([undefined, "eu-1"]);
      await rig.client.callTool("deploy", ARGS);
      expect(methods(rig)).toHaveLength(5);
    },
  );

  it("HDR-03 B164: a map that is too old is put right, past the cache", async () => {
    const offer: Offer = {
      pages: [[regionTool("deploy", "Old-Region")]],
      more: { ttlMs: 60_000, cacheScope: "public" },
    };
    const rig = await httpJson.open(checkingServer(offer));
    await rig.client.listTools();
    offer.pages = [[TOOL]];
    await rig.client.callTool("deploy", ARGS);
    expect(regions(rig, "Old-Region")).toEqual(["eu-1", undefined]);
    expect(regions(rig)).toEqual([undefined, "eu-1"]);
    expect(methods(rig)).toEqual(["tools/list", "tools/call", "tools/list", "tools/call"]);
  });

  it("HDR-03: a server that is never content costs one refresh and one retry", async () => {
    const rig = await httpJson.open((request, exchange) => {
      if (request.method === "tools/list") exchange.result({ tools: [TOOL] });
      else exchange.error(-32020, "Header mismatch", undefined, { status: 400 });
    });
    const error = await errorOf<RpcError>(rig.client.callTool("deploy", ARGS));
    expect(error).toMatchObject({ code: "rpc", rpcCode: -32020, status: 400 });
    expect(methods(rig)).toEqual(["tools/call", "tools/list", "tools/call"]);
  });

  it.each<[string, Offer["pages"] | "error"]>([
    ["is no longer listed", [[regionTool("other", "Region")]]],
    ["has an invalid definition now", [[regionTool("deploy", "no token")]]],
    ["cannot be listed", "error"],
  ])("HDR-03: a tool that %s fails with the original error", async (_what, pages) => {
    const rig = await httpJson.open((request, exchange) => {
      if (request.method === "tools/call")
        exchange.error(-32020, "Header mismatch", undefined, { status: 400 });
      else if (pages === "error") exchange.error(-32603, "out of order");
      else exchange.result({ tools: pages[0] });
    });
    const error = await errorOf(rig.client.callTool("deploy", ARGS));
    expect(error).toBeInstanceOf(RpcError);
    expect(error).toMatchObject({ rpcCode: -32020, message: "Header mismatch" });
    expect(methods(rig)).toEqual(["tools/call", "tools/list"]);
  });

  it("MRTR-19 HDR-03: in the second round it keeps the inputs and the state, and asks no handler again", async () => {
    const offer: Offer = { pages: [[TOOL]] };
    const script = checkingServer(offer);
    let asked = 0;
    const rig = await httpJson.open(
      (request, exchange) => {
        if (request.method === "tools/call" && !("inputResponses" in request.params))
          return exchange.result(ASK);
        return script(request, exchange);
      },
      {
        inputs: {
          elicitForm: () => {
            asked++;
            return { action: "accept", content: { ok: true } };
          },
        },
      },
    );
    expect(textOf(await rig.client.callTool("deploy", ARGS))).toBe("called deploy");
    expect(asked).toBe(1);
    const retry = {
      inputResponses: { sure: { action: "accept", content: { ok: true } } },
      requestState: "s1",
    };
    expect(retryParts(rig.peer)).toEqual([{}, retry, {}, retry]);
    expect(new Set(rig.peer.requests.map(({ id }) => id)).size).toBe(4);
    expect(regions(rig)).toEqual([undefined, undefined, "eu-1"]);
  });

  it("MRTR-19 HDR-03: each round has a refresh of its own, which sees what changed since the one before", async () => {
    const offer: Offer = { pages: [[TOOL]] };
    offer.answer = (request, exchange) => {
      if ("inputResponses" in request.params) return exchange.result(complete("deployed"));
      offer.pages = [[regionTool("deploy", "Zone")]];
      exchange.result(ASK);
    };
    const rig = await httpJson.open(checkingServer(offer), {
      inputs: { elicitForm: () => ({ action: "accept", content: { ok: true } }) },
    });
    expect(textOf(await rig.client.callTool("deploy", ARGS))).toBe("deployed");
    expect(regions(rig)).toEqual([undefined, "eu-1", "eu-1", undefined]);
    expect(regions(rig, "Zone")).toEqual([undefined, undefined, undefined, "eu-1"]);
    expect(methods(rig).filter((method) => method === "tools/list")).toHaveLength(2);
  });

  it("HDR-03: calls that are refused together read the list once", async () => {
    const refused: (() => void)[] = [];
    const script = checkingServer({ pages: [[TOOL]] });
    const rig = await httpJson.open((request, exchange) => {
      if (request.method === "tools/list" || mirroredValue(request, "Region") !== undefined) {
        return script(request, exchange);
      }
      refused.push(() => script(request, exchange));
      if (refused.length === 5) for (const refuse of refused) refuse();
    });
    await Promise.all(Array.from({ length: 5 }, () => rig.client.callTool("deploy", ARGS)));
    expect(methods(rig).filter((method) => method === "tools/list")).toHaveLength(1);
    expect(rig.peer.requests).toHaveLength(11);
  });

  it("MRTR-19 HDR-03: a cancel during the refresh rejects at once and ends the list request as well", async () => {
    const rig = await httpJson.open((request, exchange) => {
      if (request.method === "tools/call")
        exchange.error(-32020, "Header mismatch", undefined, { status: 400 });
    });
    const controller = new AbortController();
    const call = rig.client.callTool("deploy", ARGS, { signal: controller.signal });
    await rig.peer.waitFor(2);
    controller.abort("changed my mind");
    expect(await errorOf(call)).toMatchObject({ code: "cancelled", cause: "changed my mind" });
    await rig.peer.waitForCancelled(1);
    expect(methods(rig)).toEqual(["tools/call", "tools/list"]);
    expect(rig.client.operations).toEqual([]);
  });

  it("HDR-03: a refresh that its own call gave up is taken up by the next call", async () => {
    const script = checkingServer({ pages: [[TOOL]] });
    let lists = 0;
    const rig = await httpJson.open((request, exchange) => {
      if (request.method === "tools/list" && ++lists === 1) return;
      return script(request, exchange);
    });
    const controller = new AbortController();
    const first = errorOf(rig.client.callTool("deploy", ARGS, { signal: controller.signal }));
    await rig.peer.waitFor(2);
    const second = rig.client.callTool("deploy", ARGS);
    const recovering = () => rig.client.operations.filter(({ phase }) => phase === "recovering");
    await until(() => recovering().length === 2, "both calls to be in recovery");
    controller.abort();
    expect(await first).toMatchObject({ code: "cancelled" });
    expect(textOf(await second)).toBe("called deploy");
    expect(lists).toBe(2);
  });

  it("MRTR-19 HDR-03: the deadline of the call holds during the refresh, on the wire as well", async () => {
    const rig = await httpJson.open((request, exchange) => {
      if (request.method === "tools/call")
        exchange.error(-32020, "Header mismatch", undefined, { status: 400 });
    });
    const error = await errorOf(rig.client.callTool("deploy", ARGS, { operationMs: 5000 }));
    expect(error).toMatchObject({ code: "timeout", scope: "operation", limitMs: 5000 });
    await rig.peer.waitForCancelled(1);
    expect(methods(rig)).toEqual(["tools/call", "tools/list"]);
  });
});

describe("with the official server", () => {
  let server: StartedServer;
  beforeAll(async () => {
    server = await startOfficialHttp();
  });
  afterAll(() => server.close());

  const args = { region: "eu\r\nX-Evil: 1", limit: 7, fresh: false, sql: "select 1" };
  it.each([
    ["HDR-02: the params of a listed tool are mirrored", true],
    ["HDR-03: a tool that was never listed is found after the refusal", false],
  ])("%s", async (_what, listed) => {
    await using client = createClient({
      transport: httpTransport(server.url),
      info: { name: "test-host", version: "1.0.0" },
    });
    if (listed) expect((await client.listTools()).map(({ name }) => name)).toContain("query");
    const result = await client.callTool("query", args);
    const region = `=?base64?${Buffer.from(args.region).toString("base64")}?=`;
    expect(JSON.parse(textOf(result) as string)).toEqual({ args, mirrored: [region, "7", "false"] });
  });
});
