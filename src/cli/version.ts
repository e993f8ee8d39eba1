/** The version of this package, from its own package.json: there is one place where it is written. */

import { readFile } from "node:fs/promises";

/** Reads the version. The folder is two levels up in the sources, and three in the built package. */
export async function programVersion(): Promise<string> {
  for (const up of ["../../package.json", "../../../package.json"]) {
    const text = await readFile(new URL(up, import.meta.url), "utf8").catch(() => undefined);
    if (text === undefined) continue;
    const { name, version } = JSON.parse(text) as { name?: unknown; version?: unknown };
    if (name === "mcp-rally" && typeof version === "string") return version;
  }
  return "0.0.0";
}
