/** The progress of a call as a bar at the bottom of a terminal. */

import type { Progress } from "../pending.ts";
import { type CliOutput, DEFAULT_COLUMNS } from "./io.ts";
import { sanitiseLine } from "./sanitise.ts";
import { clip, textWidth } from "./table.ts";

const CELLS = 24;
const CLEAR_LINE = "\r\u001b[2K";
/** A server may send thousands of reports a second; a screen needs a few. */
const FRAME_MS = 50;

/** Draws on one line, and takes it away again. */
export class ProgressBar {
  readonly #output: CliOutput;
  #drawn = false;
  #drawnAt = Number.NEGATIVE_INFINITY;

  constructor(output: CliOutput) {
    this.#output = output;
  }

  /** Shows a report of progress. */
  update(progress: Progress): void {
    const now = performance.now();
    const isLast = progress.total !== undefined && progress.progress >= progress.total;
    if (now - this.#drawnAt < FRAME_MS && !isLast) return;
    this.#drawnAt = now;
    this.#drawn = true;
    this.#output.write(CLEAR_LINE + progressLine(progress, (this.#output.columns || DEFAULT_COLUMNS) - 1));
  }

  /** Takes the bar away, so that other text can stand in its place. */
  clear(): void {
    if (!this.#drawn) return;
    this.#drawn = false;
    this.#output.write(CLEAR_LINE);
  }
}

/** One report as a line of at most `columns`. */
export function progressLine({ progress, total, message }: Progress, columns: number): string {
  const text = message === undefined ? "" : `  ${sanitiseLine(message)}`;
  if (total === undefined || !(total > 0)) return clip(`${round(progress)}${text}`, columns);
  const share = Math.min(1, Math.max(0, progress / total));
  const full = Math.round(share * CELLS);
  const bar = `[${"#".repeat(full)}${"-".repeat(CELLS - full)}] ${String(Math.floor(share * 100)).padStart(3)}%`;
  return textWidth(bar) > columns ? clip(`${Math.floor(share * 100)}%`, columns) : clip(bar + text, columns);
}

function round(value: number): string {
  return String(Math.round(value * 100) / 100);
}
