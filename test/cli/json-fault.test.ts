import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { excerpt, findJsonFault } from "../../src/cli/json-fault.ts";

describe("the first fault of a JSON text", () => {
  it.each([
    ["", 0, "a JSON value"],
    ["   ", 3, "a JSON value"],
    ["{", 1, "a name in double quotes"],
    ['{"a":1,}', 7, "a name in double quotes"],
    ["{a:1}", 1, "a name in double quotes"],
    ['{"a" 1}', 5, '":"'],
    ['{"a":1 "b":2}', 7, '"," or "}"'],
    ["[1,2", 4, '"," or "]"'],
    ["[1,]", 3, "a JSON value (text needs double quotes)"],
    ["[1 2]", 3, '"," or "]"'],
    ["'x'", 0, "a JSON value (text needs double quotes)"],
    ["Brno", 0, "a JSON value (text needs double quotes)"],
    ['"x', 2, "a closing double quote"],
    ['"a\nb"', 2, "an escape such as \\n in place of this control character"],
    ['"\\q"', 1, 'a JSON escape; a backslash itself is written as "\\\\"'],
    ['"\\u12g4"', 1, "four hexadecimal digits after \\u"],
    ["01", 1, "nothing more after the value"],
    ["1 2", 2, "nothing more after the value"],
    ["-", 0, "a JSON value (text needs double quotes)"],
    ["truee", 4, "nothing more after the value"],
  ])("%j: at %i", (text, position, expected) => {
    expect(findJsonFault(text)).toMatchObject({ position, expected });
  });

  it("is found at every place where a document is cut or damaged, and nowhere in a whole one", () => {
    const damaged = fc
      .tuple(fc.json(), fc.nat(), fc.constantFrom("", ",", "]", "}", '"', ":", "x", "\\", "\n", "0"))
      .map(([json, at, put]) => {
        const place = at % (json.length + 1);
        return json.slice(0, place) + put + json.slice(place + 1);
      });
    fc.assert(
      fc.property(damaged, (text) => {
        const fault = findJsonFault(text);
        let parses = true;
        try {
          JSON.parse(text);
        } catch {
          parses = false;
        }
        expect(fault === undefined).toBe(parses);
        if (fault === undefined) return;
        // What stands before the fault is whole, or only ends too early: the fault is placed neither too late nor too soon.
        const before = findJsonFault(text.slice(0, fault.position));
        expect(before?.position ?? fault.position).toBe(fault.position);
      }),
    );
  });

  it("is found in a text that is nested too deeply for a stack", () => {
    const text = "[".repeat(50_000);
    expect(findJsonFault(text)).toMatchObject({ position: 50_000 });
  });
});

describe("the excerpt", () => {
  it.each([
    ['{"a":1,}', 7, '  {"a":1,}\n         ^'],
    ['{\n  "a": x\n}', 9, '    "a": x\n         ^'],
    [`${"x".repeat(100)}!`, 100, `  …${"x".repeat(59)}!\n  ${" ".repeat(60)}^`],
    ["", 0, "  \n  ^"],
  ])("%j at %i marks the place", (text, position, expected) => {
    expect(excerpt(text, position)).toBe(expected);
  });

  it("shows control characters as spaces, so that the mark stands under the fault", () => {
    expect(excerpt('"a\u001b[2Jb', 7)).toBe('  "a [2Jb\n         ^');
  });
});
