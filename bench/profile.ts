/** Where the time goes: sampled CPU profiles of calls and of start-up, by whose code ran. */

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CpuProfile, OWNERS, type Owned, type Owner, sumUp } from "./profile-owners.ts";
import { type Targets, targetOf } from "./run-scenario.ts";
import { runScript } from "./run-script.ts";
import { CONTENDERS, SCENARIOS } from "./scenarios.ts";
import { START_UPS } from "./start-up.ts";

/** One profile, summed up. */
export interface Profile {
  readonly title: string;
  /** What the figures count: "%" of the time that was not idle, or "ms" more than what it is compared with. */
  readonly unit: "%" | "ms";
  readonly owned: Owned;
}

const PROFILED = ["memory", "http-json", "http-sse", "stdio", "websocket", "http-confirm", "http-progress"];
const START_UP_RUNS = 7;
/** Finer than Node's own, for a process that runs for a tenth of a second. */
const START_UP_INTERVAL_US = 100;

/** Profiles the engine in some scenarios, and its start-up. */
export async function measureProfiles(targets: Targets): Promise<readonly Profile[]> {
  const profiles: Profile[] = [];
  const { file } = CONTENDERS.find(({ id }) => id === "engine")!;
  for (const scenario of SCENARIOS.filter(({ id }) => PROFILED.includes(id))) {
    const args = [new URL(file, import.meta.url).href, scenario, targetOf(scenario, targets)];
    const texts = args.map((each) => (typeof each === "string" ? each : JSON.stringify(each)));
    const owned = sumUp(await runScript<CpuProfile>("profile.mjs", texts));
    const total = OWNERS.reduce((sum, owner) => sum + owned[owner], 0);
    profiles.push({ title: scenario.title, unit: "%", owned: map((owner) => (100 * owned[owner]) / total) });
  }
  for (const { title, script, base } of START_UPS.filter(({ budgetMs }) => budgetMs !== undefined)) {
    const extra = await profileStart(script, targets);
    const plain = await profileStart(base, targets);
    profiles.push({
      title: `start-up: ${title}`,
      unit: "ms",
      owned: map((owner) => extra[owner] - plain[owner]),
    });
  }
  return profiles;
}

/** The mean of some starts. */
async function profileStart(script: string, targets: Targets): Promise<Owned> {
  const folder = mkdtempSync(join(tmpdir(), "rally-profile-"));
  try {
    const flags = ["--cpu-prof", `--cpu-prof-dir=${folder}`, `--cpu-prof-interval=${START_UP_INTERVAL_US}`];
    for (let run = 0; run < START_UP_RUNS; run++) {
      await runScript(`start-up/${script}.mjs`, [`${targets.httpUrl}/json`], flags);
    }
    const sums = readdirSync(folder).map((name) =>
      sumUp(JSON.parse(readFileSync(join(folder, name), "utf8")) as CpuProfile),
    );
    return map((owner) => sums.reduce((sum, each) => sum + each[owner], 0) / sums.length);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function map(of: (owner: Owner) => number): Owned {
  return Object.fromEntries(OWNERS.map((owner) => [owner, of(owner)])) as Record<Owner, number>;
}
