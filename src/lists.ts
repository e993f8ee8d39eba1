/** Paged lists: every page by default, and an end in any case (LST-01). */

import type { CallOptions } from "./client-options.ts";
import { UsageError } from "./errors.ts";
import type { Result } from "./mcp-types.ts";

/** The methods that give pages. */
export type ListMethod = "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list";

/** Options of a list. */
export interface ListOptions extends CallOptions {
  /** Give this one page alone. An empty string is a valid cursor. */
  readonly cursor?: string | undefined;
  /** The most pages to follow. Default 1000. */
  readonly maxPages?: number | undefined;
}

const DEFAULT_MAX_PAGES = 1000;

/**
 * Reads page after page. A cursor that was seen before ends the list before its page is asked for again; what was read
 * until then is good. `operationMs` bounds all pages together.
 */
export async function* readPages(
  method: ListMethod,
  options: ListOptions,
  request: (params: { cursor?: string }, options: CallOptions) => Promise<Result>,
  stopped: (reason: string) => void,
): AsyncGenerator<Result, void, undefined> {
  const { cursor: first, maxPages = DEFAULT_MAX_PAGES, ...call } = options;
  if (first !== undefined && typeof first !== "string") {
    throw new UsageError("cursor must be a string", { path: "cursor" });
  }
  const startedAt = performance.now();
  const seen = new Set<string>();
  let cursor = first;
  for (let page = 1; ; page++) {
    if (cursor !== undefined) seen.add(cursor);
    const result = await request(cursor === undefined ? {} : { cursor }, remaining(call, startedAt));
    yield result;
    const next = result.nextCursor as string | undefined;
    if (next === undefined) return;
    if (seen.has(next)) return stopped(`${method}: the server gave a cursor again that it had given before`);
    if (page >= maxPages) return stopped(`${method}: there are more than ${maxPages} pages (maxPages)`);
    cursor = next;
  }
}

/** The call's options with what is left of its time. */
function remaining(call: CallOptions, startedAt: number): CallOptions {
  if (call.operationMs === undefined) return call;
  return { ...call, operationMs: Math.max(0, call.operationMs - (performance.now() - startedAt)) };
}
