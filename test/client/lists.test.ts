/** Paged lists: every page, and an end in any case (LST-01). */

import { describe, expect, it } from "vitest";
import type { Script } from "../../src/testing/peer-types.ts";
import { httpJson, type Rig, stdio } from "../support/bindings.ts";
import { errorOf } from "../support/outcomes.ts";

/** Answers `prompts/list` with one prompt a page, named after its cursor, and the cursor that `next` gives. */
function pages(next: (cursor: string | undefined) => string | undefined): Script {
  return ({ params }, exchange) => {
    const cursor = params.cursor as string | undefined;
    const nextCursor = next(cursor);
    exchange.result({
      resultType: "complete",
      prompts: [{ name: `page ${cursor ?? "first"}` }],
      ...(nextCursor !== undefined && { nextCursor }),
    });
  };
}

const cursorsOf = ({ peer }: Rig) => peer.requests.map(({ params }) => params.cursor);
const stopsOf = ({ events }: Rig) => events.filter(({ type }) => type === "list.stopped").length;

for (const { name, open } of [httpJson, stdio]) {
  describe(`lists over ${name}`, () => {
    it("LST-01 B160: every page is read, and an empty string is a cursor like any other", async () => {
      const rig = await open(pages((cursor) => ({ first: "", "": "b", b: undefined })[cursor ?? "first"]));
      const prompts = await rig.client.listPrompts();
      expect(prompts.map((prompt) => prompt.name)).toEqual(["page first", "page ", "page b"]);
      expect(cursorsOf(rig)).toEqual([undefined, "", "b"]);
      expect(stopsOf(rig)).toBe(0);
    });

    it.each<[string, (cursor: string | undefined) => string, (string | undefined)[]]>([
      ["the empty cursor again and again", () => "", [undefined, ""]],
      ["one cursor again and again", () => "A", [undefined, "A"]],
      ["cursors in a circle", (cursor) => (cursor === "A" ? "B" : "A"), [undefined, "A", "B"]],
    ])(
      "LST-01 B158 B161: %s ends the list with a warning, and no page is in it twice",
      async (_what, next, asked) => {
        const rig = await open(pages(next));
        const prompts = await rig.client.listPrompts();
        expect(prompts).toHaveLength(asked.length);
        expect(new Set(prompts.map((prompt) => prompt.name)).size).toBe(asked.length);
        expect(cursorsOf(rig)).toEqual(asked);
        expect(stopsOf(rig)).toBe(1);
      },
    );
  });
}

describe("the end of a list", () => {
  const endless = pages((cursor) => String(Number(cursor ?? 0) + 1));

  it("LST-01 B158: more pages than maxPages end it with a warning", async () => {
    const rig = await httpJson.open(endless);
    expect(await rig.client.listPrompts({ maxPages: 25 })).toHaveLength(25);
    expect(rig.peer.requests).toHaveLength(25);
    expect(stopsOf(rig)).toBe(1);
  });

  it("LST-01: with a cursor it is this one page, and pages() gives one after the other on demand", async () => {
    const rig = await httpJson.open(endless);
    expect(await rig.client.listPrompts({ cursor: "7" })).toEqual([{ name: "page 7" }]);
    for await (const page of rig.client.pages("prompts/list")) {
      if (page.nextCursor === "2") break;
    }
    expect(cursorsOf(rig)).toEqual(["7", undefined, "1"]);
  });

  it("LST-01 B158: an abort between two pages ends it, and the next page is not asked for", async () => {
    const abort = new AbortController();
    const rig = await httpJson.open((request, exchange) => {
      if (request.params.cursor === "3") abort.abort(new Error("enough"));
      return endless(request, exchange);
    });
    const error = await errorOf(rig.client.listPrompts({ signal: abort.signal }));
    expect(error).toMatchObject({ code: "cancelled", cause: { message: "enough" } });
    expect(cursorsOf(rig)).toEqual([undefined, "1", "2", "3"]);
  });

  it("LST-01 B160: operationMs bounds all pages together", async () => {
    const rig = await httpJson.open(endless);
    const error = await errorOf(rig.client.listPrompts({ operationMs: 400, maxPages: 1_000_000 }));
    expect(error).toMatchObject({ code: "timeout", scope: "operation" });
    expect(rig.peer.requests.length).toBeGreaterThan(1);
  });

  it("LST-01: a cursor that is no string is the server's fault, and named", async () => {
    const rig = await httpJson.open((_request, exchange) =>
      exchange.result({ resultType: "complete", prompts: [], nextCursor: 7 }),
    );
    expect(await errorOf(rig.client.listPrompts())).toMatchObject({
      code: "protocol-violation",
      field: "result.nextCursor",
    });
  });
});
