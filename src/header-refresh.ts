/**
 * After -32020 (HeaderMismatch): reads the tool's definition anew and rebuilds the mirrored fields, once (HDR-03).
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#client-behavior}
 */

import { mirrorParams } from "./mirroring.ts";
import type { KnownTool, ToolBook } from "./tools.ts";
import type { MirroredField } from "./transport.ts";
import type { JsonObject } from "./wire.ts";

/** The call that was refused. */
export interface RefusedCall {
  readonly name: string;
  /** P: the inner text of its params. */
  readonly params: string;
  /** The host's own value for the call: lists of different contexts may differ. */
  readonly context: unknown;
  /** The edition of the book that it was sent by. */
  readonly edition: number;
  /** Reads pages of `tools/list` past the cache, within the call's signal and time. */
  readonly pages: () => AsyncIterable<JsonObject>;
  /** Whether the call was cancelled or its time is over. */
  readonly isOver: () => boolean;
}

/** What a refresh brought: the tool, and the fields of the next attempt. */
export interface Refreshed {
  readonly tool: KnownTool;
  readonly mirrored: readonly MirroredField[];
}

/**
 * Refreshes, one at a time for each context: calls that are refused together read the list once. A refresh that its own
 * call gave up is taken up by the next.
 */
export class HeaderRefresh {
  readonly #book: ToolBook;
  readonly #running = new Map<unknown, Promise<boolean>>();

  constructor(book: ToolBook) {
    this.#book = book;
  }

  /**
   * The tool and its fields anew; undefined when the server no longer lists it, its definition is invalid, or the list
   * cannot be read. Fields that come out the same are given too: the retry that the specification wants costs one request.
   */
  async run(call: RefusedCall): Promise<Refreshed | undefined> {
    const { name, context } = call;
    for (;;) {
      const entry = this.#book.entry(name);
      // A list that came since the call was sent is as new as one that is asked for now.
      if (entry !== undefined && entry.edition > call.edition) {
        if (entry.tool.fault !== undefined) return undefined;
        return { tool: entry.tool, mirrored: mirrorParams(entry.tool.rules, call.params) };
      }
      const running = this.#running.get(context);
      if (running === undefined) {
        if (!(await this.#read(call))) return undefined;
        if (!((this.#book.entry(name)?.edition ?? 0) > call.edition)) return undefined;
      } else if (!(await running)) {
        return undefined;
      } else if (call.isOver()) {
        return undefined;
      }
    }
  }

  /** Reads pages until the tool is found. False when that failed for a reason that would meet the next call as well. */
  async #read(call: RefusedCall): Promise<boolean> {
    const read = this.#readPages(call);
    this.#running.set(call.context, read);
    try {
      return await read;
    } finally {
      this.#running.delete(call.context);
    }
  }

  async #readPages({ name, edition, pages, isOver }: RefusedCall): Promise<boolean> {
    try {
      for await (const _page of pages()) {
        if ((this.#book.entry(name)?.edition ?? 0) > edition) break;
      }
      return true;
    } catch {
      return isOver();
    }
  }
}
