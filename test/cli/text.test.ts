import { describe, expect, it } from "vitest";
import { progressLine } from "../../src/cli/progress-bar.ts";
import { clipLine, sanitise, sanitiseJson, sanitiseLine } from "../../src/cli/sanitise.ts";
import { formatTable, textWidth } from "../../src/cli/table.ts";

const HOSTILE =
  "a\u001b[2J\u001b]0;title\u0007b\rc\u009b31m\u202edecoy\u2066\u200b\ufeff\u2028\ud800\u{e0041}";

describe("text of a server on a terminal", () => {
  it("keeps nothing that a terminal could obey, and shows what was there", () => {
    const safe = sanitise(HOSTILE);
    expect(safe).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Cs}]/u);
    expect(safe).toBe(
      "a\\u{1b}[2J\\u{1b}]0;title\\u{7}b\\u{d}c\\u{9b}31m\\u{202e}decoy\\u{2066}\\u{200b}\\u{feff}\\u{2028}\\u{d800}\\u{e0041}",
    );
  });

  it("keeps lines, tabs, other alphabets and joined emoji", () => {
    const text = "řádek\r\n\t日本 👩‍👩‍👧 فارسی‌ها";
    expect(sanitise(text)).toBe(text.replace("\r\n", "\n"));
    expect(sanitiseLine("a\r\nb\tc")).toBe("a b c");
    expect(clipLine("abcdef", 4)).toBe("abc…");
    expect(clipLine("👍👍👍", 3)).toBe("👍👍👍");
  });

  it("JSON stays the same document", () => {
    const json = JSON.stringify({ [HOSTILE]: [HOSTILE] }, undefined, 2);
    const safe = sanitiseJson(json);
    expect(safe.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Cs}]/u);
    expect(JSON.parse(safe)).toEqual(JSON.parse(json));
  });
});

describe("tables", () => {
  const rows = [
    ["alpha", "the first one, which is described at length"],
    ["日本", "wide\u001b[31m"],
  ];

  it("are tab-separated lines where stdout is no terminal", () => {
    expect(formatTable(["A", "B"], [["a\tb", "c\nd"], ...rows.slice(0, 1)], {})).toBe(
      "a b\tc d\nalpha\tthe first one, which is described at length\n",
    );
  });

  it("are aligned and cut to the width of a terminal", () => {
    const table = formatTable(["NAME", "DESCRIPTION"], rows, { isTTY: true, columns: 30 });
    expect(table).toBe("NAME   DESCRIPTION\nalpha  the first one, which i…\n日本   wide\\u{1b}[31m\n");
    for (const line of table.trimEnd().split("\n")) expect(textWidth(line)).toBeLessThanOrEqual(30);
  });

  it("keep every column readable on the narrowest terminal", () => {
    const table = formatTable(["ONE", "TWO"], [["a".repeat(50), "b".repeat(50)]], {
      isTTY: true,
      columns: 10,
    });
    expect(table).toContain(`${"a".repeat(7)}…  ${"b".repeat(7)}…`);
  });
});

describe("progress as a line", () => {
  const at = { round: 1, attempt: 1 };
  it.each([
    [{ progress: 1, total: 4, message: "half\u001b[2J" }, "[######------------------]  25%  half\\u{1b}[2J"],
    [{ progress: 9, total: 4 }, "[########################] 100%"],
    [{ progress: 2.34567 }, "2.35"],
    [{ progress: 5, total: 0, message: "x" }, "5  x"],
  ])("%j", (progress, line) => {
    expect(progressLine({ ...progress, ...at }, 79)).toBe(line);
  });

  it("fits into a narrow terminal", () => {
    expect(progressLine({ progress: 1, total: 2, ...at }, 8)).toBe("50%");
  });
});
