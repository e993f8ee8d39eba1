/** Results as text: what a person wants to read, with what cannot be read summarised. */

import { isDeepStrictEqual } from "node:util";
import type {
  CallToolResult,
  ContentBlock,
  GetPromptResult,
  ReadResourceResult,
  ResourceContents,
} from "../mcp-types.ts";
import { isObject } from "../wire.ts";
import type { Output } from "./output.ts";

/** Prints the result of a tool: its content, and its structured content where the content does not say the same. */
export function printToolResult(result: CallToolResult, output: Output): void {
  const { structuredContent } = result;
  for (const block of result.content ?? []) {
    if (structuredContent !== undefined && isSame(block, structuredContent)) continue;
    output.line(contentSummary(block));
  }
  if (structuredContent !== undefined) output.line(JSON.stringify(structuredContent, undefined, 2));
}

/** Servers repeat structured content as a text for hosts that read only text. */
function isSame(block: ContentBlock, structured: unknown): boolean {
  if (block.type !== "text" || typeof block.text !== "string") return false;
  try {
    return isDeepStrictEqual(JSON.parse(block.text), structured);
  } catch {
    return false;
  }
}

/** Prints the contents of a resource. A single text goes out unchanged where stdout is no terminal. */
export function printResource({ contents }: ReadResourceResult, output: Output): void {
  const only = contents.length === 1 ? contents[0]! : undefined;
  if (only !== undefined) {
    if (typeof only.text === "string" && !output.isTerminal) output.text(only.text);
    else output.line(resourceText(only));
    return;
  }
  for (const part of contents) {
    output.line(`== ${part.uri}`);
    output.line(resourceText(part));
  }
}

/** Prints the messages of a prompt, each under its role. */
export function printPrompt({ description, messages }: GetPromptResult, output: Output): void {
  if (typeof description === "string" && description !== "") output.line(`# ${description}`);
  for (const { role, content } of messages) {
    const blocks = Array.isArray(content) ? (content as readonly ContentBlock[]) : [content];
    for (const block of blocks) output.line(`${role}: ${contentSummary(block)}`);
  }
}

/** One piece of content as text. */
export function contentSummary(block: { readonly type?: unknown; readonly [key: string]: unknown }): string {
  switch (block.type) {
    case "text":
      return String(block.text ?? "");
    case "image":
    case "audio":
      return `[${block.type}: ${binary(block.mimeType, block.data)}]`;
    case "resource_link": {
      const { name, uri, mimeType } = block;
      return `[resource link: ${String(name ?? "")} ${String(uri ?? "")}${mimeType === undefined ? "" : ` (${String(mimeType)})`}]`;
    }
    case "resource":
      return isObject(block.resource)
        ? resourceText(block.resource as unknown as ResourceContents)
        : "[resource]";
    default:
      return `[${String(block.type)}: ${JSON.stringify(block).length} characters of JSON; use --json to see it]`;
  }
}

function resourceText({ uri, mimeType, text, blob }: ResourceContents): string {
  if (typeof text === "string") return text;
  return `[blob: ${binary(mimeType, blob)}, ${uri}]`;
}

function binary(mimeType: unknown, base64: unknown): string {
  const type = typeof mimeType === "string" ? mimeType : "unknown type";
  return `${type}, ${typeof base64 === "string" ? sizeText(byteLength(base64)) : "no data"}`;
}

function byteLength(base64: string): number {
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return Math.max(0, Math.floor((base64.length * 3) / 4) - padding);
}

function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
