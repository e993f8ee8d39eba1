/** Draws a report: what each client costs for one of the floor, on a logarithmic scale, as a self-contained SVG. */

import type { Report, ScenarioReport } from "./report.ts";
import type { ContenderId } from "./scenarios.ts";

interface Series {
  readonly id: ContenderId;
  readonly label: string;
  readonly colour: string;
}

const SERIES: readonly Series[] = [
  { id: "engine", label: "mcp-rally", colour: "#2563eb" },
  { id: "client-2", label: "@modelcontextprotocol/client", colour: "#d97706" },
  { id: "sdk-1", label: "@modelcontextprotocol/sdk", colour: "#a855f7" },
  { id: "ai-sdk", label: "@ai-sdk/mcp", colour: "#6b7280" },
];

const WIDTH = 880;
const MARGIN = 20;
const RIGHT = 70;
const TOP = 78;
const BAR = 9;
const GAP = 14;
/** A generous width of a character at this font's size: the fonts of readers differ. */
const CHARACTER = 6.6;

/** Turns a ratio into a place on the page. The axis ends at powers of two. */
interface Axis {
  readonly left: number;
  readonly ticks: readonly number[];
  readonly xOf: (value: number) => number;
}

/** Scenarios that have a budget: enough to see by, and few enough for a page. */
function shown({ scenarios }: Report): readonly ScenarioReport[] {
  return scenarios.filter(
    ({ cells, budget, budgetOverBindingUs }) =>
      (budget ?? budgetOverBindingUs) !== undefined && cells.some(({ contender }) => contender === "engine"),
  );
}

export function drawChart(report: Report): string {
  const scenarios = shown(report);
  const used = SERIES.filter(({ id }) =>
    scenarios.some(({ cells }) => cells.some(({ contender }) => contender === id)),
  );
  const axis = axisOf(scenarios, used);
  const rowHeight = used.length * (BAR + 1) + GAP;
  const height = TOP + scenarios.length * rowHeight + 30;
  const bottom = height - 26;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="CPU per call of MCP clients, as a multiple of a hand-written loop">`,
    `<rect width="100%" height="100%" rx="8" fill="#ffffff"/>`,
    `<g font-family="system-ui, sans-serif" font-size="12" fill="#1f2937">`,
    `<text x="${MARGIN}" y="26" font-size="15" font-weight="600">CPU per call, as a multiple of a hand-written loop (1 = the floor; logarithmic)</text>`,
    legend(used),
  ];
  for (const tick of axis.ticks) {
    const x = axis.xOf(tick);
    parts.push(
      `<line x1="${x}" y1="${TOP - 10}" x2="${x}" y2="${bottom}" stroke="${tick === 1 ? "#111827" : "#e5e7eb"}"/>`,
      `<text x="${x}" y="${bottom + 16}" text-anchor="middle" fill="#6b7280">${tick}</text>`,
    );
  }
  scenarios.forEach((scenario, row) => {
    parts.push(...drawScenario(scenario, used, axis, TOP + row * rowHeight));
  });
  parts.push("</g>", "</svg>");
  return `${parts.join("\n")}\n`;
}

function axisOf(scenarios: readonly ScenarioReport[], used: readonly Series[]): Axis {
  const values = scenarios.flatMap(({ cells }) =>
    cells
      .filter(({ contender }) => used.some(({ id }) => id === contender))
      .flatMap(({ toFloor: { median, spread } }) => [Math.max(median - spread, median / 2), median + spread]),
  );
  const first = Math.min(-1, Math.floor(Math.log2(Math.min(...values))));
  const last = Math.max(2, Math.ceil(Math.log2(Math.max(...values))));
  const ticks = Array.from({ length: last - first + 1 }, (_, index) => 2 ** (first + index));
  const left = MARGIN + Math.max(...scenarios.map(({ title }) => title.length)) * CHARACTER + 10;
  const xOf = (value: number) => {
    const share = (Math.max(first, Math.log2(Math.max(value, 0.001))) - first) / (last - first);
    return Math.round((left + share * (WIDTH - left - RIGHT)) * 10) / 10;
  };
  return { left, ticks, xOf };
}

/** One bar for each client, from the floor to what it costs: to the left is cheaper. */
function drawScenario(
  { title, cells, notes }: ScenarioReport,
  used: readonly Series[],
  { left, xOf }: Axis,
  top: number,
): string[] {
  const middle = top + (used.length * (BAR + 1)) / 2 + 4;
  const parts = [`<text x="${left - 10}" y="${middle}" text-anchor="end">${xml(title)}</text>`];
  const floor = xOf(1);
  used.forEach(({ id, colour }, index) => {
    const y = top + index * (BAR + 1);
    const label = (x: number, text: string, fill = "#1f2937") =>
      `<text x="${x.toFixed(1)}" y="${y + BAR - 0.5}" font-size="9" fill="${fill}">${xml(text)}</text>`;
    const cell = cells.find(({ contender }) => contender === id);
    if (cell === undefined) {
      const note = notes.find(({ contender }) => contender === id)?.note;
      if (note !== undefined) parts.push(label(floor + 4, note, "#6b7280"));
      return;
    }
    const { median, spread } = cell.toFloor;
    const end = xOf(median);
    const width = Math.max(1, Math.abs(end - floor));
    parts.push(
      `<rect x="${Math.min(end, floor)}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" fill="${colour}"/>`,
      `<line x1="${xOf(median - spread)}" y1="${y + BAR / 2}" x2="${xOf(median + spread)}" y2="${y + BAR / 2}" stroke="#111827" stroke-width="1"/>`,
      label(Math.max(end, floor, xOf(median + spread)) + 4, median.toFixed(2)),
    );
  });
  return parts;
}

function legend(used: readonly Series[]): string {
  let x = MARGIN;
  return used
    .map(({ label, colour }) => {
      const text = `<rect x="${x}" y="40" width="10" height="10" fill="${colour}"/><text x="${x + 15}" y="49">${xml(label)}</text>`;
      x += 40 + label.length * 7;
      return text;
    })
    .join("\n");
}

function xml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
