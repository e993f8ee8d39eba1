/**
 * The heap that pending operations take. Run with --expose-gc; prints bytes for each of 10,000 pending calls, and what is
 * left for each after all of them were aborted. The arguments of the calls are a few bytes.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { load } from "../contenders/engine.mjs";

const COUNT = 10_000;
const [transportId, serverFile] = process.argv.slice(2);

async function makeTransport() {
  if (transportId === "memory") {
    return (await load("mcp-rally/transports/memory")).memoryTransport(() => new Promise(() => {}));
  }
  const { stdioTransport } = await load("mcp-rally/transports/stdio");
  return stdioTransport({ command: process.execPath, args: [serverFile] });
}

/** The heap in bytes once nothing more can be collected. */
async function heap() {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 6; round++) {
    await sleep(20);
    globalThis.gc();
    const { heapUsed, external } = process.memoryUsage();
    least = Math.min(least, heapUsed + external);
  }
  return least;
}

const { createClient } = await load("mcp-rally");
const client = createClient({
  transport: await makeTransport(),
  info: { name: "bench", version: "1.0.0" },
  limits: { pendingOperations: 1_000_000 },
});

async function fill() {
  const controller = new AbortController();
  const calls = [];
  for (let index = 0; index < COUNT; index++) {
    calls.push(client.callTool("hang", { index }, { signal: controller.signal }));
  }
  // The frames are written before the heap is looked at: what is in the pipe is not the engine's.
  while (client.operations.length < COUNT) await sleep(1);
  await sleep(500);
  return { calls, controller };
}

async function end({ calls, controller }) {
  controller.abort(new Error("enough"));
  await Promise.allSettled(calls);
}

// Once for the compilers and the tables that grow to their size.
await end(await fill());
const before = await heap();
const pending = await fill();
const during = await heap();
await end(pending);
pending.calls.length = 0;
const after = await heap();
process.stdout.write(
  `${JSON.stringify({ pendingBytes: (during - before) / COUNT, leftBytes: (after - before) / COUNT })}\n`,
);
await client.close();
