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

const LEFT = 250;
const RIGHT = 60;
const WIDTH = 860;
const TOP = 78;
const BAR = 9;
const GAP = 14;
const LONGEST = 64;
const TICKS = [0.5, 1, 2, 4, 8, 16, 32, 64];

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
  const rowHeight = used.length * (BAR + 1) + GAP;
  const height = TOP + scenarios.length * rowHeight + 30;
  const bottom = height - 26;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="CPU per call of MCP clients, as a multiple of a hand-written loop">`,
    `<rect width="100%" height="100%" rx="8" fill="#ffffff"/>`,
    `<g font-family="system-ui, sans-serif" font-size="12" fill="#1f2937">`,
    `<text x="20" y="26" font-size="15" font-weight="600">CPU per call, as a multiple of a hand-written loop (1 = the floor; logarithmic)</text>`,
    legend(used),
  ];
  for (const tick of TICKS) {
    const x = xOf(tick);
    const isFloor = tick === 1;
    parts.push(
      `<line x1="${x}" y1="${TOP - 10}" x2="${x}" y2="${bottom}" stroke="${isFloor ? "#111827" : "#e5e7eb"}"${isFloor ? ' stroke-dasharray="4 3"' : ""}/>`,
      `<text x="${x}" y="${bottom + 16}" text-anchor="middle" fill="#6b7280">${tick}</text>`,
    );
  }
  scenarios.forEach((scenario, row) => {
    parts.push(...drawScenario(scenario, used, TOP + row * rowHeight));
  });
  parts.push("</g>", "</svg>");
  return `${parts.join("\n")}\n`;
}

function drawScenario({ title, cells }: ScenarioReport, used: readonly Series[], top: number): string[] {
  const middle = top + (used.length * (BAR + 1)) / 2 + 4;
  const parts = [`<text x="${LEFT - 10}" y="${middle}" text-anchor="end">${xml(title)}</text>`];
  used.forEach(({ id, colour }, index) => {
    const cell = cells.find(({ contender }) => contender === id);
    if (cell === undefined) return;
    const y = top + index * (BAR + 1);
    const { median, spread } = cell.toFloor;
    const end = xOf(median);
    parts.push(
      `<rect x="${xOf(TICKS[0]!)}" y="${y}" width="${(end - xOf(TICKS[0]!)).toFixed(1)}" height="${BAR}" fill="${colour}"/>`,
      `<line x1="${xOf(median - spread)}" y1="${y + BAR / 2}" x2="${xOf(median + spread)}" y2="${y + BAR / 2}" stroke="#111827" stroke-width="1"/>`,
      `<text x="${(Math.max(end, xOf(median + spread)) + 4).toFixed(1)}" y="${y + BAR - 0.5}" font-size="9">${median.toFixed(2)}</text>`,
    );
  });
  return parts;
}

function legend(used: readonly Series[]): string {
  let x = 20;
  return used
    .map(({ label, colour }) => {
      const text = `<rect x="${x}" y="40" width="10" height="10" fill="${colour}"/><text x="${x + 15}" y="49">${xml(label)}</text>`;
      x += 40 + label.length * 7;
      return text;
    })
    .join("\n");
}

function xOf(value: number): number {
  const low = Math.log(TICKS[0]!);
  const clipped = Math.min(LONGEST, Math.max(TICKS[0]!, value));
  const share = (Math.log(clipped) - low) / (Math.log(LONGEST) - low);
  return Math.round((LEFT + share * (WIDTH - LEFT - RIGHT)) * 10) / 10;
}

function xml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
