import { access, readdir, readFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));
const docs = (await readdir(join(root, "docs"))).filter((name) => name.endsWith(".md"));
const pages = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "schemas/README.md"].concat(
  docs.map((name) => `docs/${name}`),
);

/** The text without what is code, where brackets mean something else. */
async function proseOf(page: string): Promise<string> {
  const text = await readFile(join(root, page), "utf8");
  return text
    .replace(/^(```+).*?^\1 *$/gms, "")
    .replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()]/g, ""));
}

/** The targets of the links in a page that lead to other files of the project, or to another place of the page. */
async function linksOf(page: string): Promise<string[]> {
  const inline = (await proseOf(page)).matchAll(/\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)/g);
  return [...inline].map(([, target]) => target!).filter((target) => !/^[a-z]+:/i.test(target));
}

/** What GitHub and npm make of the headings, for links to them. */
async function anchorsOf(page: string): Promise<string[]> {
  const headings = (await proseOf(page)).matchAll(/^#{1,6} +(.*?) *#*$/gm);
  const seen = new Map<string, number>();
  return [...headings].map(([, heading]) => {
    const slug = heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M} _-]/gu, "")
      .replaceAll(" ", "-");
    const before = seen.get(slug) ?? 0;
    seen.set(slug, before + 1);
    return before === 0 ? slug : `${slug}-${before}`;
  });
}

describe("the links of README and docs", () => {
  it.each(pages)("of %s lead to what exists", async (page) => {
    const broken: string[] = [];
    for (const link of await linksOf(page)) {
      const [path, anchor] = link.split("#") as [string, string?];
      const target = path === "" ? page : relative(root, join(root, dirname(page), decodeURI(path)));
      const exists = await access(join(root, target)).then(
        () => true,
        () => false,
      );
      const found = exists && (anchor === undefined || (await anchorsOf(target)).includes(anchor));
      if (!found || target.startsWith("..")) broken.push(link);
    }
    expect(broken).toEqual([]);
  });

  it("lead from README to every page of docs/", async () => {
    const linked = await linksOf("README.md");
    expect(linked.filter((link) => link.startsWith("docs/")).length).toBeGreaterThan(3);
    expect(docs.map((name) => `docs/${name}`).filter((page) => !linked.includes(page))).toEqual([]);
  });

  it("are found: the reader of links sees files and headings", async () => {
    expect(await linksOf("README.md")).toContain("docs/architecture.md");
    expect(await anchorsOf("README.md")).toContain("what-happens-to-a-lost-toolscall");
  });
});

describe("schemas/README.md", () => {
  it("lists every schema, and only what is there", async () => {
    const text = await readFile(join(root, "schemas/README.md"), "utf8");
    const listed = [...text.matchAll(/^\| `([^`]+\.json)`/gm)].map(([, name]) => name!);
    const files = (await readdir(join(root, "schemas"))).filter((name) => name.endsWith(".json"));
    expect(listed.sort()).toEqual(files.sort());
  });

  it("names sources and tests that exist", async () => {
    const text = await readFile(join(root, "schemas/README.md"), "utf8");
    const named = [...text.matchAll(/`((?:src|test)\/[^`]+\.ts)`/g)].map(([, path]) => path!);
    expect(named.length).toBeGreaterThan(5);
    for (const path of named) await expect(access(join(root, path)), path).resolves.toBeUndefined();
  });
});
