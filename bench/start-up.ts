/** What it takes to start: whole processes, beside an empty one and beside node:http, in turns. */

import type { Targets } from "./run-scenario.ts";
import { runScript } from "./run-script.ts";
import { type Figure, figure } from "./statistics.ts";

/** One way of starting, against what it is compared with. */
export interface StartUp {
  readonly id: string;
  readonly title: string;
  /** How long what it is compared with took: how fast the machine was at the time. */
  readonly baseMs: Figure;
  /** How much later it is done, in milliseconds of wall time from the start of the process. */
  readonly extraMs: Figure;
  /** How much more CPU it took, in milliseconds. */
  readonly extraCpuMs: Figure;
  /** How much more memory the process had, in MB. */
  readonly extraRssMb: Figure;
  readonly budgetMs?: number | undefined;
}

interface Started {
  /** From the start of the process. */
  readonly ms: number;
  readonly cpuMs: number;
  readonly rssMb: number;
}

/** What is started, what that is compared with, and how much longer it may take. */
export const START_UPS: readonly {
  readonly id: string;
  readonly title: string;
  readonly script: string;
  readonly base: string;
  readonly budgetMs?: number;
}[] = [
  {
    id: "start-up-stdio",
    title: "root entry with stdio, over an empty process",
    script: "rally-stdio",
    base: "empty",
    budgetMs: 15,
  },
  {
    id: "start-up-http",
    title: "HTTP until the first answer, over node:http",
    script: "rally-http",
    base: "node-http",
    budgetMs: 60,
  },
  {
    id: "start-up-undici",
    title: "for scale, undici's root entry, over an empty process",
    script: "undici",
    base: "empty",
  },
];

export async function measureStartUp(targets: Targets, rounds: number): Promise<readonly StartUp[]> {
  const scripts = [...new Set(START_UPS.flatMap(({ script, base }) => [base, script]))];
  const taken = new Map<string, Started[]>(scripts.map((script) => [script, []]));
  for (let round = -1; round < rounds; round++) {
    for (const script of scripts) {
      const started = await runScript<Started>(`start-up/${script}.mjs`, [`${targets.httpUrl}/json`]);
      // The first of each reads its files from the disk.
      if (round >= 0) taken.get(script)!.push(started);
    }
  }
  return START_UPS.map(({ id, title, script, base, budgetMs }) => {
    const extra = (of: (started: Started) => number) =>
      figure(taken.get(script)!.map((each, round) => of(each) - of(taken.get(base)![round]!)));
    return {
      id,
      title,
      baseMs: figure(taken.get(base)!.map(({ ms }) => ms)),
      extraMs: extra(({ ms }) => ms),
      extraCpuMs: extra(({ cpuMs }) => cpuMs),
      extraRssMb: extra(({ rssMb }) => rssMb),
      budgetMs,
    };
  });
}
