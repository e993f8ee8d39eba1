import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parsePattern, writeRe2 } from "../../src/pattern-syntax.ts";
import { compilePattern, LinearEngineNeeded, loadLinearEngine, PatternFault } from "../../src/patterns.ts";

const engine = await loadLinearEngine();
const test = (pattern: string, text: string) => compilePattern(pattern, engine).test(text);

describe("compilePattern", () => {
  it.each([
    ["^[a-zA-Z0-9_-]+$"],
    ["^[\\s\\S]{0,100000}$"],
    ["^\\d{4}-\\d{2}-\\d{2}$"],
    ["^(?:red|green|blue)$"],
    ["abc"],
  ])("SCH-01: %s runs on RegExp, and the linear engine is not loaded for it", (pattern) => {
    expect(compilePattern(pattern, undefined).linearSize).toBe(0);
  });

  it.each([["^(a+)+$"], ["a+$"], ["^a*a*$"], ["^(a|a)(a|a)$"], ["^(?=a)b"], ["a|b+"]])(
    "SCH-01 B155: %s wants the linear engine",
    (pattern) => {
      expect(() => compilePattern(pattern, undefined)).toThrow(LinearEngineNeeded);
    },
  );

  it.each<[string, RegExp]>([
    ["(", /no regular expression/],
    ["^(a)\\1$", /backreference/],
    ["^(?<x>a)\\k<x>$", /backreference/],
    ["a(?=b)c*", /lookahead or lookbehind/],
    ["^((?!ab).)*$", /lookahead or lookbehind/],
    ["^(?:a{1,500}b*){3}$", /more than 1000 steps/],
    [`^${"(?:ab)?".repeat(600)}$`, /longer than/],
  ])("SCH-01: %.40s is refused with its reason", (pattern, reason) => {
    expect(() => compilePattern(pattern, engine)).toThrow(PatternFault);
    expect(() => compilePattern(pattern, engine)).toThrow(reason);
  });

  it("SCH-01 B155: patterns made to backtrack are decided in milliseconds", () => {
    const startedAt = performance.now();
    expect(test("^(a+)+$", `${"a".repeat(10_000)}!`)).toBe(false);
    expect(test("^(a|aa)*c$", "a".repeat(10_000))).toBe(false);
    expect(test("^(.*a){20}$", `${"a".repeat(2_000)}!`)).toBe(false);
    expect(test("(x+x+)+y", "x".repeat(10_000))).toBe(false);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });

  it.each([
    // Passwords and addresses as schema generators write them.
    ["^(?=.*[A-Z])(?=.*\\d).{4,}$", "abC1", "abcd"],
    ["^(?!\\.)(?!.*\\.\\.)([a-z.]*)[a-z]@([a-z]+\\.)+[a-z]{2,}$", "a.b@c.de", "a..b@c.de"],
    ["^[a-z ]+(?<! )$", "a b", "a b "],
    ["^(?! )[a-z ]*[a-z ]*(?<=z)$", "a z", " az"],
  ])("SCH-01: %s: lookarounds at the ends are decided by tests of their own", (pattern, yes, no) => {
    expect([test(pattern, yes), test(pattern, no)]).toEqual([true, false]);
  });

  it.each([
    ["^\\s$", "\u00a0\u2003\ufeff\v", "\u200b\u180e"],
    ["^(?:\\S+)+$", "ab", "\u00a0"],
    ["^(?:.+)+$", "ab", "\n\r\u2028"],
    ["^(?:[^]+)+$", "\n\r", ""],
    ["^(?:[]+)+$", "", "ab"],
    ["^(?:\\u0041+)+$", "A", "a"],
    ["^(?:\\u{1F600}+)+$", "", "a"],
    ["^(?:[\\ud83d\\ude00-\\ud83d\\ude02]+)+$", "", "a"],
    ["^(?:[\\w-]+)+$", "a-_", "é"],
    ["^(?:[^\\W\\d]+)+$", "a_", "1-"],
    ["^(?:\\p{Letter}+)+$", "aé", "1"],
    ["^(?:\\p{Script=Greek}+)+$", "α", "a"],
    ["^(?:\\P{ASCII}+)+$", "é", "e"],
    ["^(?:\\cJ+)+$", "\n", "J"],
    ["^(?:[\\b]+)+$", "\b", "b"],
    ["^(?:\\-+)+$", "-", "a"],
    ["^(?:[[:alpha:]+)+$", "[:alph", "b"],
  ])("SCH-01: %s means what ECMA-262 says, character by character", (pattern, yes, no) => {
    expect(Array.from(yes, (character) => test(pattern, character))).toEqual(Array.from(yes, () => true));
    expect(Array.from(no, (character) => test(pattern, character))).toEqual(Array.from(no, () => false));
  });

  it("SCH-01: the linear engine agrees with RegExp on generated patterns and texts", () => {
    const atom = fc.constantFrom(
      "a",
      "b",
      ".",
      "\\d",
      "\\w",
      "\\s",
      "\\S",
      "[a-c]",
      "[^a]",
      "[\\W1]",
      "\\b",
      "\\x41",
      "\\u{1F600}",
      "[é-ü]",
      "😀",
      "\\.",
      "\\n",
    );
    const quantifier = fc.constantFrom("", "", "*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "+?");
    const { branches } = fc.letrec<{ branches: string; piece: string }>((tie) => ({
      piece: fc.oneof(
        { maxDepth: 3, withCrossShrink: true },
        fc
          .tuple(
            atom.filter((text) => text !== "\\b"),
            quantifier,
          )
          .map(([text, times]) => text + times),
        fc.constantFrom("\\b", "\\B", "^", "$"),
        fc
          .tuple(fc.constantFrom("(", "(?:", "(?<n>"), tie("branches"), quantifier)
          .map(([open, inner, times]) => `${open}${inner})${times}`),
      ),
      branches: fc
        .array(
          fc.array(tie("piece"), { maxLength: 4 }).map((pieces) => pieces.join("")),
          { minLength: 1, maxLength: 2 },
        )
        .map((all) => all.join("|")),
    }));
    const text = fc
      .array(fc.constantFrom("a", "b", "c", "1", " ", "\n", "é", "😀", "A", ".", "_", "\u2028"), {
        maxLength: 8,
      })
      .map((parts) => parts.join(""));
    let compared = 0;
    fc.assert(
      fc.property(branches, fc.array(text, { minLength: 1, maxLength: 5 }), (source, texts) => {
        let native: RegExp;
        try {
          native = new RegExp(source, "u");
        } catch {
          return;
        }
        const linear = engine(writeRe2(parsePattern(source)));
        for (const text of texts) {
          compared++;
          expect([text, linear.test(text)]).toEqual([text, native.test(text)]);
        }
      }),
      { numRuns: 1_500, seed: 3 },
    );
    expect(compared).toBeGreaterThan(1_000);
  });
});
