/** Lists: tables on a terminal, lines of tab-separated fields everywhere else. */

import { type CliOutput, DEFAULT_COLUMNS } from "./io.ts";
import { sanitiseLine } from "./sanitise.ts";

const GAP = "  ";
const NARROWEST = 8;

/** Formats rows of equally many cells, each text of a server. */
export function formatTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  output: Pick<CliOutput, "isTTY" | "columns">,
): string {
  if (output.isTTY !== true) {
    return rows.map((row) => `${row.map((cell) => plainCell(cell)).join("\t")}\n`).join("");
  }
  const cells = [headings, ...rows.map((row) => row.map((cell) => sanitiseLine(cell).trim()))];
  const widths = fitWidths(cells, output.columns || DEFAULT_COLUMNS);
  return cells
    .map((row) => {
      const padded = row.map((cell, index) => pad(clip(cell, widths[index]!), widths[index]!));
      return `${padded.join(GAP).trimEnd()}\n`;
    })
    .join("");
}

/** One field of a line: what would end a field or a line becomes a space. Nothing else is changed, for programs to read. */
function plainCell(cell: string): string {
  return cell.replace(/[\t\r\n]+/g, " ").trim();
}

/** The natural widths, and if they do not fit, the widest columns give way. */
function fitWidths(cells: readonly (readonly string[])[], columns: number): number[] {
  const widths = cells[0]!.map((_, index) => Math.max(...cells.map((row) => textWidth(row[index]!))));
  const room = Math.max(columns - GAP.length * (widths.length - 1), NARROWEST * widths.length);
  for (let total = sum(widths); total > room; total = sum(widths)) {
    const widest = widths.indexOf(Math.max(...widths));
    const next = Math.max(...widths.filter((_, index) => index !== widest), NARROWEST);
    const cut = Math.max(1, Math.min(total - room, widths[widest]! - next));
    widths[widest] = widths[widest]! - cut;
  }
  return widths;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

const WIDE =
  /^(?:\p{Emoji_Presentation}|\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|[\u3000-\u303e\uff01-\uff60\uffe0-\uffe6])/u;
const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });

/** How many columns a terminal uses for a text. */
export function textWidth(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segmenter.segment(text)) width += graphemeWidth(segment);
  return width;
}

function graphemeWidth(segment: string): number {
  return WIDE.test(segment) ? 2 : /^\p{Mn}+$/u.test(segment) ? 0 : 1;
}

/** Cuts a text to `width` columns, with an ellipsis where something is missing. */
export function clip(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  let kept = "";
  let used = 0;
  for (const { segment } of segmenter.segment(text)) {
    used += graphemeWidth(segment);
    if (used > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - textWidth(text)));
}
