/**
 * Holds calls back on a shared channel until the link's first exchange, `server/discover`, is answered (VER-02).
 * Every link is asked anew: a process that was restarted may be another one.
 */

import type { RallyError } from "./errors.ts";

/** What passes the gate. */
export interface GateUser<T> {
  /** Starts the probe; it ends with `passed` or `refused`. */
  probe(): void;
  pass(member: T): void;
  refuse(member: T, error: RallyError): void;
}

/** The gate of one client. Without `shared` it is always open. */
export class LinkGate<T> {
  readonly #user: GateUser<T>;
  readonly #always: boolean;
  #state: "unknown" | "probing" | "open";
  #waiting = new Set<T>();
  /** The link went down while its probe was out: what the probe tells is of the old link. */
  #stale = false;

  constructor(user: GateUser<T>, always: boolean) {
    this.#user = user;
    this.#always = always;
    this.#state = always ? "open" : "unknown";
  }

  get isOpen(): boolean {
    return this.#state === "open";
  }

  /** Waits for the link to be known; starts the probe if none is out. */
  wait(member: T): void {
    this.#waiting.add(member);
    if (this.#state !== "unknown") return;
    this.#state = "probing";
    this.#stale = false;
    this.#user.probe();
  }

  /** Stops waiting; says whether `member` was. */
  leave(member: T): boolean {
    return this.#waiting.delete(member);
  }

  /** The link went down. */
  reset(): void {
    if (this.#always) return;
    if (this.#state === "probing") this.#stale = true;
    else this.#state = "unknown";
  }

  passed(): void {
    this.#state = this.#stale ? "unknown" : "open";
    const waiting = this.#take();
    for (const member of waiting) {
      if (this.#state === "open") this.#user.pass(member);
      else this.wait(member);
    }
  }

  refused(error: RallyError): void {
    this.#state = "unknown";
    for (const member of this.#take()) this.#user.refuse(member, error);
  }

  #take(): Set<T> {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    return waiting;
  }
}
