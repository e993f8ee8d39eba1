/** What pending and completed calls leave on the heap. */

import type { Targets } from "./run-scenario.ts";
import { runScript } from "./run-script.ts";

/** One heap figure, in bytes for each call. */
export interface HeapFigure {
  readonly id: string;
  readonly title: string;
  readonly bytes: number;
  readonly budgetBytes: number;
}

const FLAGS = ["--expose-gc"];
/** Tables and compiled code may grow a little; a call that is kept would take hundreds of bytes. */
const NOTHING_BYTES = 64;

export async function measureHeap(targets: Targets): Promise<readonly HeapFigure[]> {
  const figures: HeapFigure[] = [];
  for (const transport of ["memory", "stdio"]) {
    const args = [transport, targets.stdioCommand.args[0]!];
    const { pendingBytes, leftBytes } = await runScript<{ pendingBytes: number; leftBytes: number }>(
      "heap/pending.mjs",
      args,
      FLAGS,
    );
    figures.push(
      {
        id: `heap-pending-${transport}`,
        title: `10,000 pending over ${transport}, each`,
        bytes: pendingBytes,
        budgetBytes: 2048,
      },
      {
        id: `heap-aborted-${transport}`,
        title: `after they were aborted over ${transport}, left of each`,
        bytes: leftBytes,
        budgetBytes: NOTHING_BYTES,
      },
    );
  }
  const { leftBytes } = await runScript<{ leftBytes: number }>("heap/retained.mjs", [], FLAGS);
  figures.push({
    id: "heap-completed",
    title: "100,000 completed calls on one signal, left of each",
    bytes: leftBytes,
    budgetBytes: NOTHING_BYTES,
  });
  return figures;
}
