import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = new URL("../../", import.meta.url);
const read = (path: string) => readFile(fileURLToPath(new URL(path, root)), "utf8");

/** Where a module of the project is imported from by those who use the package. */
const PUBLIC_NAMES: Readonly<Record<string, string>> = {
  "../../src/index.ts": "mcp-rally",
  "../../transports/lines.ts": "mcp-rally/transports/lines",
  "../../transports/link.ts": "mcp-rally/transports/link",
};

describe("docs/transport-guide.md", () => {
  it("quotes the transport that the contract suite and the fault tests run", async () => {
    const [guide, source] = await Promise.all([
      read("docs/transport-guide.md"),
      read("docs/examples/unix-socket-transport.ts"),
    ]);
    const quoted = /<!-- docs\/examples\/unix-socket-transport\.ts -->\n```ts\n(.*?)```/s.exec(guide)?.[1];
    const asUsed = source.replace(/from "(\.[^"]*)"/g, (_all, path) => `from "${PUBLIC_NAMES[path]}"`);
    expect(quoted).toBe(asUsed);
    expect(source.trimEnd().split("\n").length).toBeLessThan(60);
  });
});
