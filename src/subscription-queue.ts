/**
 * What waits for the reader of a subscription. It is bounded: a reader that does not keep up is told that it missed
 * something, where it missed it, and what came before stays in order (SUB-01).
 */

import type { JsonObject } from "./wire.ts";

/** A change that the server told of. */
export type ChangeItem =
  | {
      readonly type: "notification";
      readonly method:
        | "notifications/tools/list_changed"
        | "notifications/prompts/list_changed"
        | "notifications/resources/list_changed";
      readonly params: JsonObject | undefined;
    }
  | {
      readonly type: "notification";
      readonly method: "notifications/resources/updated";
      readonly params: JsonObject & { readonly uri: string };
    };

/** A notification of an extension, as it came. */
export interface ExtensionItem {
  readonly type: "extension";
  readonly method: string;
  readonly params: JsonObject | undefined;
}

/** Something may have been missed: read again what matters. */
export interface GapItem {
  readonly type: "gap";
  /**
   * relistened: the stream was lost and stands again; what happened in between is unknown. overflow: `queueSize` items
   * waited to be read, and further ones were dropped.
   */
  readonly reason: "relistened" | "overflow";
}

/** What iterating over a subscription gives. Switch on `type`. */
export type SubscriptionItem = ChangeItem | ExtensionItem | GapItem;

type Taker = (result: IteratorResult<SubscriptionItem, undefined>) => void;

const DONE = { done: true, value: undefined } as const;

/** The queue of one subscription, and the one iterator over it. */
export class SubscriptionQueue implements AsyncIterableIterator<SubscriptionItem, undefined> {
  readonly #size: number;
  readonly #abandoned: () => void;
  readonly #items: SubscriptionItem[] = [];
  readonly #takers: Taker[] = [];
  #ended = false;

  /**
   * @param size how many items may wait
   * @param abandoned called when the reader leaves its loop
   */
  constructor(size: number, abandoned: () => void) {
    this.#size = size;
    this.#abandoned = abandoned;
  }

  push(item: SubscriptionItem): void {
    if (this.#ended) return;
    const taker = this.#takers.shift();
    if (taker !== undefined) taker({ done: false, value: item });
    else if (item.type === "gap") this.#addGap(item);
    else if (this.#items.length < this.#size) this.#items.push(item);
    else if (this.#items.at(-1)?.type !== "gap") this.#items.push({ type: "gap", reason: "overflow" });
  }

  /** Gaps side by side are one gap, so a reader that never reads costs no more than the queue. */
  #addGap(gap: GapItem): void {
    if (this.#items.at(-1)?.type === "gap") this.#items.pop();
    this.#items.push(gap);
  }

  /** Nothing more comes. What waits can still be read, unless it is dropped. */
  end(options: { readonly drop: boolean }): void {
    this.#ended = true;
    if (options.drop) this.#items.length = 0;
    for (const taker of this.#takers.splice(0)) taker(DONE);
  }

  next(): Promise<IteratorResult<SubscriptionItem, undefined>> {
    const item = this.#items.shift();
    if (item !== undefined) return Promise.resolve({ done: false, value: item });
    if (this.#ended) return Promise.resolve(DONE);
    return new Promise((resolve) => this.#takers.push(resolve));
  }

  return(): Promise<IteratorResult<SubscriptionItem, undefined>> {
    this.#abandoned();
    return Promise.resolve(DONE);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
