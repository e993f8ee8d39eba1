/** The arguments of the bench. */

import { parseArgs } from "node:util";

export interface BenchOptions {
  /** Only what there is a budget for, without the peers and the contenders that no budget is about. */
  readonly quick: boolean;
  /** Ids of the scenarios to run; empty for all. A `*` at the end stands for any rest. */
  readonly scenarios: readonly string[];
  /** Whether a missed budget is a failure. */
  readonly check: boolean;
  /** Whether stdout gets the JSON report in place of the table. */
  readonly json: boolean;
  /** Whether docs/ gets the chart and the table. */
  readonly publish: boolean;
  readonly peers: boolean;
  /** Another directory with a built mcp-rally, measured beside this one as "before". */
  readonly against: string | undefined;
  readonly rounds: number;
}

export const USAGE = `npm run bench -- [options]
  --quick            about two minutes: no peers, only what has a budget, nothing above 10 MB
  --scenario ID,…    only these (a trailing * matches any rest); start-up, heap and profile are ids too
  --check            exit with 1 when a budget is missed by more than the measured noise
  --json             the report as JSON on stdout
  --publish          write docs/benchmarks.svg and the table in docs/benchmarks.md
  --no-peers         leave the other clients out
  --against DIR      measure the build in another directory as well, as "before"
  --rounds N         interleaved runs of each contender (default 9; 8 with --quick)
`;

/** Reads the arguments; throws with a message that says what is wrong. */
export function readOptions(args: readonly string[]): BenchOptions | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean" },
      scenario: { type: "string", multiple: true },
      check: { type: "boolean" },
      json: { type: "boolean" },
      publish: { type: "boolean" },
      "no-peers": { type: "boolean" },
      against: { type: "string" },
      rounds: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) return undefined;
  const quick = values.quick ?? false;
  const rounds = Number(values.rounds ?? (quick ? 8 : 9));
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error("--rounds must be a positive whole number");
  if (values.publish && (quick || values.scenario !== undefined)) {
    throw new Error("--publish wants the whole run: leave --quick and --scenario out");
  }
  return {
    quick,
    scenarios: (values.scenario ?? []).flatMap((ids) => ids.split(",")),
    check: values.check ?? false,
    json: values.json ?? false,
    publish: values.publish ?? false,
    peers: !quick && !values["no-peers"],
    against: values.against,
    rounds,
  };
}

/** Whether an id is among those asked for. */
export function isWanted(id: string, wanted: readonly string[]): boolean {
  return (
    wanted.length === 0 ||
    wanted.some((each) => (each.endsWith("*") ? id.startsWith(each.slice(0, -1)) : id === each))
  );
}
