/** The trace of a client: one line for each attempt. */

import type { RallyEvent } from "mcp-rally";

const COLUMNS = [9, 7, 9, 9, 24, 38, 8] as const;

/** Prints attempts as they end, and counts those that were sent. */
export class Trace {
  readonly #print: (line: string) => void;
  readonly #names = new Map<number, string>();
  #sent = 0;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  /** Attempts sent since the last heading. */
  get sent(): number {
    return this.#sent;
  }

  heading(): void {
    this.#sent = 0;
    this.#print(row(["operation", "round", "attempt", "wire id", "request", "outcome", "ms"]));
  }

  /** For a client's `onEvent`. */
  readonly onEvent = (event: RallyEvent): void => {
    if (event.type === "operation.started") {
      this.#names.set(event.operationId, [event.method, event.name].join(" ").trim());
    } else if (event.type === "operation.ended") {
      this.#names.delete(event.operationId);
    } else if (event.type === "attempt.sent") {
      this.#sent++;
    } else if (event.type === "attempt.ended") {
      const { operationId, round, attempt, wireId, outcome, ms } = event;
      const name = this.#names.get(operationId) ?? event.method;
      const why = [event.code, event.rpcCode, event.delivery && `delivery ${event.delivery}`].filter(Boolean);
      const shown = why.length > 0 ? `${outcome}: ${why.join(", ")}` : outcome;
      this.#print(row([operationId, round, attempt, wireId, name, shown, ms.toFixed(1)]));
    }
  };
}

function row(cells: readonly (string | number)[]): string {
  const padded = cells.map((cell, at) => {
    const width = COLUMNS[at]!;
    return at === COLUMNS.length - 1 ? String(cell).padStart(width) : String(cell).padEnd(width);
  });
  return `    ${padded.join(" ")}`;
}
