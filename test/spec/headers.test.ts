import { describe, expect, it } from "vitest";
import { complete, elicitForm, inputRequired } from "../../src/testing/replies.ts";
import { httpJson, httpSse } from "../support/bindings.ts";
import { textOf } from "../support/outcomes.ts";

// The header fields of every POST, looked at where they arrive.

/** What a server makes of a header value. */
function decoded(value: unknown): unknown {
  const text = String(value);
  const encoded = /^=\?base64\?(.*)\?=$/.exec(text)?.[1];
  return encoded === undefined ? value : Buffer.from(encoded, "base64").toString("utf8");
}

for (const { name, open } of [httpJson, httpSse]) {
  describe(`a POST over ${name}`, () => {
    it("HDR-01: mirrors version, method and name of its own body, in every round", async () => {
      const ask = inputRequired({ inputRequests: { k: elicitForm("?") } });
      const rig = await open([ask, complete("done")], {
        inputs: { elicitForm: () => ({ action: "decline" }) },
      });
      await rig.client.callTool("deploy");
      for (const { headers, params, meta, method, text } of rig.peer.requests) {
        expect(headers).toMatchObject({
          accept: "application/json, text/event-stream",
          "content-type": "application/json",
          "mcp-protocol-version": meta["io.modelcontextprotocol/protocolVersion"],
          "mcp-method": method,
          "mcp-name": params.name,
          "content-length": String(Buffer.byteLength(text)),
        });
      }
      expect(rig.peer.requests).toHaveLength(2);
    });

    it("HDR-01: has a name where the method names something, and none where not", async () => {
      const rig = await open((_request, exchange) =>
        exchange.result({ ...complete("x"), contents: [], messages: [], tools: [] }),
      );
      await rig.client.readResource("note://x?y=1");
      await rig.client.getPrompt("p");
      await rig.client.request("tools/call", { name: "by request" });
      await rig.client.begin("tools/call", { name: "by begin" });
      await rig.client.request("tools/list");
      await rig.client.request("x/y", { name: "not a name" });
      const named = rig.peer.requests.map(({ headers }) => [headers?.["mcp-method"], headers?.["mcp-name"]]);
      expect(named).toEqual([
        ["resources/read", "note://x?y=1"],
        ["prompts/get", "p"],
        ["tools/call", "by request"],
        ["tools/call", "by begin"],
        ["tools/list", undefined],
        ["x/y", undefined],
      ]);
    });

    const names: [name: string, plain: boolean][] = [
      ["plain-name_1", true],
      ["with space inside", true],
      [" leading", false],
      ["trailing\t", false],
      ["a\r\nX-Evil: 1", false],
      ["日本語", false],
      ["emoji 😀", false],
      ["=?base64?x?=", false],
      ["=?base64?", true],
      ["nul\u0000", false],
    ];
    it("HDR-01 B059: what a header cannot carry, or what looks encoded, is sent encoded, and can add no header", async () => {
      const rig = await open(complete("done"));
      for (const [tool, plain] of names) {
        expect(textOf(await rig.client.callTool(tool))).toBe("done");
        const { headers, params } = rig.peer.requests.at(-1)!;
        expect(params.name).toBe(tool);
        expect([tool, decoded(headers?.["mcp-name"])]).toEqual([tool, tool]);
        expect([tool, headers?.["mcp-name"] === tool]).toEqual([tool, plain]);
        expect(headers).not.toHaveProperty("x-evil");
      }
    });
  });
}
