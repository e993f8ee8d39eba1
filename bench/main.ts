/**
 * The bench: `npm run bench`. It measures the built package, in processes of their own, against what it is made of (the
 * binding alone), what it could be at best (the floor), and other clients. See docs/benchmarks.md.
 */

import { existsSync } from "node:fs";
import { checkReport } from "./checks.ts";
import { measureHeap } from "./heap.ts";
import { countInstructions } from "./instructions.ts";
import { type BenchOptions, isWanted, readOptions, USAGE } from "./options.ts";
import { printChecks, printRest, printScenario } from "./print.ts";
import { measureProfiles } from "./profile.ts";
import { keep, publish } from "./publish.ts";
import { describeMachine, type Report, readVersions, type ScenarioReport, summarise } from "./report.ts";
import { runScenario, type Targets } from "./run-scenario.ts";
import { CONTENDERS, type Contender, SCENARIOS } from "./scenarios.ts";
import { startServer } from "./server.ts";
import { measureStartUp } from "./start-up.ts";

const START_UP_ROUNDS = 11;

function contendersOf(
  { peers, quick, against }: BenchOptions,
  say: (text: string) => void,
): readonly Contender[] {
  const hasPeers = existsSync(new URL("peers/node_modules/", import.meta.url));
  if (peers && !hasPeers) {
    say("The other clients are not installed and are left out; to measure them: npm ci --prefix bench/peers");
  }
  const contenders = CONTENDERS.filter(({ id, package: peer }) =>
    peer === undefined ? !(quick && id === "realistic-floor") : peers && hasPeers,
  );
  if (against === undefined) return contenders;
  const [engine, ...others] = contenders;
  return [engine!, { ...engine!, id: "before", title: "before" }, ...others];
}

async function measure(
  options: BenchOptions,
  targets: Targets,
  say: (text: string) => void,
): Promise<Report> {
  const { quick, rounds, scenarios: wanted } = options;
  const machine = describeMachine();
  const contenders = contendersOf(options, say);
  const scenarios: ScenarioReport[] = [];
  for (const scenario of SCENARIOS) {
    if (!isWanted(scenario.id, wanted) || (quick && scenario.isExtra && wanted.length === 0)) continue;
    const run = { rounds, generations: quick ? 2 : 3, against: options.against };
    // A quick run measures what the budgets are about, and no more.
    const needed = contenders.filter(
      ({ id }) => !quick || id !== "binding" || scenario.budgetOverBindingUs !== undefined,
    );
    const summary = summarise(scenario, await runScenario(scenario, needed, targets, run));
    scenarios.push(summary);
    say(`${printScenario(summary)}\n`);
  }
  const startUp = isWanted("start-up", wanted) ? await measureStartUp(targets, START_UP_ROUNDS) : [];
  const heap = isWanted("heap", wanted) ? await measureHeap(targets) : [];
  // A profile has no budget.
  const profiles = isWanted("profile", wanted) && !quick ? await measureProfiles(targets) : [];
  const instructions = isWanted("memory", wanted) ? await countInstructions() : undefined;
  return {
    at: new Date().toISOString(),
    machine,
    rounds,
    isQuick: quick,
    versions: readVersions(),
    scenarios,
    startUp,
    heap,
    profiles,
    ...(instructions !== undefined && { instructions }),
  };
}

async function main(options: BenchOptions): Promise<number> {
  const say = (text: string) => void (options.json ? process.stderr : process.stdout).write(`${text}\n`);
  const server = await startServer();
  let report: Report;
  try {
    report = await measure(options, server.targets, say);
  } finally {
    await server.stop();
  }
  const checks = checkReport(report);
  keep(report, checks);
  const rest = printRest(report);
  if (rest !== "") say(`${rest}\n`);
  if (checks.length > 0) say(printChecks(checks));
  if (options.json) process.stdout.write(`${JSON.stringify({ ...report, checks }, undefined, 2)}\n`);
  if (options.publish) publish(report, checks);
  return options.check && checks.some(({ verdict }) => verdict === "missed") ? 1 : 0;
}

let options: BenchOptions | undefined;
try {
  options = readOptions(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n\n${USAGE}`);
  process.exit(2);
}
if (options === undefined) process.stdout.write(USAGE);
else process.exitCode = await main(options);
