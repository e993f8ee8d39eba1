/** Something that an {@link OperationList} can hold; in one list at a time. */
export interface ListItem<T> {
  /** The neighbours, kept by the list alone. */
  previous: T | undefined;
  next: T | undefined;
}

/**
 * The pending operations, in the order they began. They are linked through the operations themselves: nobody looks one
 * up, and a Map that is filled and emptied all the time allocates a table again and again, whose remains hold on to each
 * other and to what was in them until the old generation is collected.
 */
export class OperationList<T extends ListItem<T>> implements Iterable<T> {
  #first: T | undefined;
  #last: T | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds an item at the end. It must not be in the list. */
  add(item: T): void {
    const last = this.#last;
    item.previous = last;
    this.#last = item;
    if (last === undefined) this.#first = item;
    else last.next = item;
    this.#size++;
  }

  /** Takes an item out. It must be in the list. */
  remove(item: T): void {
    const { previous, next } = item;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    item.previous = undefined;
    item.next = undefined;
    this.#size--;
  }

  /** The list must not be changed during an iteration. */
  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (let item = this.#first; item !== undefined; item = item.next) yield item;
  }
}
