/** `mcp-rally discover`: what a server is and speaks. */

import type { DiscoverResult } from "../../mcp-types.ts";
import { META } from "../../protocol.ts";
import { isObject, type JsonObject } from "../../wire.ts";
import { type Command, TARGET } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { withClient } from "../open-client.ts";
import { SERVER_OPTIONS } from "../options.ts";
import type { Output } from "../output.ts";

export const discoverCommand: Command = {
  name: "discover",
  summary: "Show what a server is, and which versions and features it has",
  positionals: [TARGET],
  options: SERVER_OPTIONS,
  examples: ["discover https://example.com/mcp"],
  async run(context) {
    const { output } = context;
    const discovery = await withClient(context, {}, (client, options) => client.discover(options));
    if (output.json) output.document(discovery);
    else printDiscovery(discovery, output);
    return EXIT.done;
  },
};

function printDiscovery(discovery: DiscoverResult, output: Output): void {
  const { supportedVersions, capabilities, instructions, _meta } = discovery;
  const info = _meta?.[META.serverInfo] ?? discovery.serverInfo;
  const features = Object.keys(capabilities ?? {}).map((name) => featureText(name, capabilities[name]));
  const lines: [string, string][] = [
    ["server", isObject(info) ? serverText(info) : "(it does not say)"],
    ["versions", supportedVersions.join(", ")],
    ["features", features.length === 0 ? "(none)" : features.join(", ")],
  ];
  for (const [name, value] of lines) output.line(`${name.padEnd(14)}${value}`);
  if (typeof instructions === "string") output.line(`instructions\n${instructions}`);
}

function serverText({ name, version, title }: JsonObject): string {
  return `${String(name)} ${String(version ?? "")}${typeof title === "string" ? ` (${title})` : ""}`;
}

/** `resources (subscribe, listChanged)` */
function featureText(name: string, value: unknown): string {
  const parts = isObject(value) ? Object.keys(value).filter((part) => value[part] !== false) : [];
  return parts.length === 0 ? name : `${name} (${parts.join(", ")})`;
}
