import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeParams, encodeRequest } from "../../src/request.ts";
import { paramsText } from "../support/frames.ts";

// The text of a request, for any params, answers and state.

const requestState = fc.option(fc.string({ unit: "binary" }), { nil: undefined });

describe("the frame of an attempt", () => {
  const key = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom("__proto__", "constructor", "", "id", "params"),
  );
  const params = fc
    .dictionary(key, fc.jsonValue())
    .map((value) => JSON.parse(JSON.stringify(value)) as object);
  const reserved = ["_meta", "inputResponses", "requestState"];

  it("MRTR-06 MRTR-08: has the caller's params byte for byte in every round, and the state code unit for code unit", () => {
    const rounds = fc.array(
      fc.record({
        id: fc.nat(),
        responses: fc.option(fc.dictionary(key, fc.jsonValue()), { nil: undefined }),
        requestState,
      }),
      { minLength: 1, maxLength: 4 },
    );
    fc.assert(
      fc.property(params, rounds, (given, attempts) => {
        const own = Object.fromEntries(Object.entries(given).filter(([name]) => !reserved.includes(name)));
        const { text } = encodeParams(own);
        const before = JSON.stringify(own);
        for (const { id, responses, requestState: state } of attempts) {
          const frame = encodeRequest({
            id,
            method: "tools/call",
            params: text,
            meta: '{"m":1}',
            responses: responses === undefined ? undefined : JSON.stringify(responses),
            requestState: state,
          });
          expect(frame).not.toContain("\n");
          expect(before).toBe(`{${text}}`);
          const read = JSON.parse(frame);
          expect([read.jsonrpc, read.id, read.method]).toEqual(["2.0", id, "tools/call"]);
          const { _meta, inputResponses, requestState: echoed, ...rest } = read.params;
          expect(JSON.stringify(rest)).toBe(before);
          expect(_meta).toEqual({ m: 1 });
          expect(JSON.stringify(inputResponses)).toBe(
            responses === undefined ? undefined : JSON.stringify(responses),
          );
          expect(echoed === state && "requestState" in read.params === (state !== undefined)).toBe(true);
          if (!text.includes('"_meta":')) expect(paramsText({ text: frame })).toBe(text);
        }
      }),
    );
  });
});
