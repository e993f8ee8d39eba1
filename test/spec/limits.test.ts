import { describe, expect, it, vi } from "vitest";
import type { LimitError } from "../../src/errors.ts";
import type { Script } from "../../src/testing/peer-types.ts";
import { complete, elicitForm, inputRequired, listRoots } from "../../src/testing/replies.ts";
import { BINDINGS, HTTP_AND_STDIO, httpJson } from "../support/bindings.ts";
import { errorOf, expectAtRest, textOf } from "../support/outcomes.ts";

// Bounds against a peer, or a host, that wants too much.

for (const { name, open } of HTTP_AND_STDIO) {
  describe(`limits over ${name}`, () => {
    const many = (count: number) =>
      inputRequired({
        inputRequests: Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, listRoots()])),
      });

    it("LIM-01: more input requests than allowed ask no one", async () => {
      const listRoots_ = vi.fn(() => ({ roots: [] }));
      const rig = await open([many(64), complete("done"), many(65)], { inputs: { listRoots: listRoots_ } });
      await rig.client.callTool("t");
      expect(listRoots_).toHaveBeenCalledTimes(64);
      const error = await errorOf<LimitError>(rig.client.callTool("t"));
      expect(error).toMatchObject({ code: "limit", limit: "inputRequests", allowed: 64 });
      expect(listRoots_).toHaveBeenCalledTimes(64);
      expect(rig.peer.requests).toHaveLength(3);
    });

    it("LIM-01: requestState is measured in bytes of UTF-8", async () => {
      const state = (requestState: string) =>
        inputRequired({ inputRequests: { k: elicitForm("?") }, requestState });
      const rig = await open(
        [state("€".repeat(10)), complete("done"), state("€".repeat(11)), state("x".repeat(31))],
        {
          limits: { requestStateBytes: 30 },
          inputs: { elicitForm: () => ({ action: "decline" }) },
        },
      );
      await rig.client.callTool("t");
      for (let call = 0; call < 2; call++) {
        const error = await errorOf<LimitError>(rig.client.callTool("t"));
        expect(error).toMatchObject({ code: "limit", limit: "requestStateBytes", allowed: 30 });
      }
      expect(rig.peer.requests).toHaveLength(4);
    });

    it("LIM-01: one operation more than allowed is refused at once, with nothing sent", async () => {
      const script: Script = async (_request, exchange) => {
        await rig.peer.waitFor(2);
        exchange.result(complete("done"));
      };
      const rig = await open(script, { limits: { pendingOperations: 2 } });
      const two = [rig.client.callTool("t"), rig.client.callTool("t")];
      const error = await errorOf<LimitError>(rig.client.callTool("t"));
      expect(error).toMatchObject({ code: "limit", limit: "pendingOperations", delivery: "not-sent" });
      expect((await Promise.all(two)).map(textOf)).toEqual(["done", "done"]);
      expect(rig.peer.requests).toHaveLength(2);
    });

    it("LIM-01: a client for one operation at a time works, also where the link has to be probed", async () => {
      const rig = await open(complete("done"), { limits: { pendingOperations: 1 } });
      expect(textOf(await rig.client.callTool("t"))).toBe("done");
      expect(textOf(await rig.client.callTool("t"))).toBe("done");
    });
  });
}

for (const { name, open } of BINDINGS) {
  it(`LIM-01 over ${name}: a message larger than messageBytes is a LimitError, and the next call works`, async () => {
    const rig = await open(
      ({ params }, exchange) => exchange.result(complete("x".repeat(Number(params.name)))),
      {
        limits: { messageBytes: 20_000 },
        reissue: "never",
      },
    );
    expect(textOf(await rig.client.callTool("15000"))).toHaveLength(15_000);
    const error = await errorOf<LimitError>(rig.client.callTool("100000"));
    expect(error).toMatchObject({ code: "limit", limit: "messageBytes", allowed: 20_000 });
    expect(textOf(await rig.client.callTool("15000"))).toHaveLength(15_000);
    expectAtRest(rig);
  });
}

it("LIM-01: an error body that is too large is a LimitError too", async () => {
  const rig = await httpJson.open(
    (_request, exchange) =>
      exchange.http({
        status: 400,
        headers: { "content-type": "application/json" },
        body: `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"${"x".repeat(50_000)}"}}`,
      }),
    { limits: { messageBytes: 10_000 } },
  );
  expect((await errorOf(rig.client.callTool("t"))).code).toBe("limit");
});
