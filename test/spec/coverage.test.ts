import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import requirements from "./requirements.json" with { type: "json" };

// A requirement without a test is a promise that no one keeps, and a test of an unknown requirement is a typing error.

const root = new URL("../../", import.meta.url);
const KNOWN = new Set(requirements.map(({ id }) => id));
const PREFIXES = [...new Set(requirements.map(({ id }) => id.slice(0, -3)))].join("|");
const ID = new RegExp(`\\b(?:${PREFIXES})-\\d+\\b`, "g");
/** A string that may be a title: the first argument of a test or a suite, also after `each(…)`, or a member `title`. */
const TITLE =
  /(?:\b(?:it|test|describe)\b[\w.]*\s*\(|\)\s*\(|\btitle:)\s*(?<quote>["'`])(?<title>(?:\\.|(?!\k<quote>)[^\\])*)/g;

interface Title {
  readonly file: string;
  readonly title: string;
  readonly ids: readonly string[];
}

function readTitles(): Title[] {
  const found: Title[] = [];
  const files = readdirSync(new URL("test", root), { recursive: true, encoding: "utf8" });
  for (const file of files.filter((name) => name.endsWith(".test.ts"))) {
    for (const { groups } of readFileSync(new URL(`test/${file}`, root), "utf8").matchAll(TITLE)) {
      const title = groups?.title ?? "";
      found.push({ file, title, ids: title.match(ID) ?? [] });
    }
  }
  return found;
}

const titles = readTitles();

it("every requirement is named by a test", () => {
  const named = new Set(titles.flatMap(({ ids }) => ids));
  expect([...KNOWN].filter((id) => !named.has(id))).toEqual([]);
});

it("every test names requirements that exist", () => {
  const unknown = titles.filter(({ ids }) => ids.some((id) => !KNOWN.has(id)));
  expect(unknown.map(({ file, title }) => `${file}: ${title}`)).toEqual([]);
});

it("requirements are listed once each, with a text", () => {
  expect(KNOWN.size).toBe(requirements.length);
  expect(requirements.filter(({ text }) => text.trim() === "")).toEqual([]);
});
