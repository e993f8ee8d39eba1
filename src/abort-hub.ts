/** Something that a signal can abort. */
export interface Abortable {
  /** Called once, with the signal's reason. */
  aborted(reason: unknown): void;
}

interface Watch {
  readonly members: Set<Abortable>;
  readonly listener: () => void;
}

/**
 * One listener per signal, however many operations share it: adding and removing a listener on a signal with thousands
 * of them costs a walk through all. When the last operation leaves, so does the listener (TIM-02).
 * `AbortSignal.any` is no way to do this: it leaks on Node 20.
 */
export class AbortHub {
  readonly #watches = new Map<AbortSignal, Watch>();

  /** Calls `member.aborted` when `signal` aborts, unless it leaves before. The signal must not be aborted yet. */
  join(signal: AbortSignal, member: Abortable): void {
    const watch = this.#watches.get(signal);
    if (watch !== undefined) {
      watch.members.add(member);
      return;
    }
    const members = new Set([member]);
    const listener = () => {
      this.#watches.delete(signal);
      for (const each of members) each.aborted(signal.reason);
    };
    this.#watches.set(signal, { members, listener });
    signal.addEventListener("abort", listener, { once: true });
  }

  /** Stops watching. A member that never joined does no harm. */
  leave(signal: AbortSignal, member: Abortable): void {
    const watch = this.#watches.get(signal);
    if (watch === undefined || !watch.members.delete(member) || watch.members.size > 0) return;
    this.#watches.delete(signal);
    signal.removeEventListener("abort", watch.listener);
  }
}
