/** What 100,000 completed calls on one long-lived signal leave on the heap, in bytes for each. Run with --expose-gc. */

import { setTimeout as sleep } from "node:timers/promises";
import { load } from "../contenders/engine.mjs";
import { memoryHandler } from "../contenders/memory-handler.mjs";

const COUNT = 100_000;

const { createClient } = await load("mcp-rally");
const { memoryTransport } = await load("mcp-rally/transports/memory");
const client = createClient({
  transport: memoryTransport(memoryHandler()),
  info: { name: "bench", version: "1.0.0" },
});
const { signal } = new AbortController();

async function run(count) {
  for (let done = 0; done < count; done++) await client.callTool("echo", { text: "hello" }, { signal });
}

async function heap() {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 6; round++) {
    await sleep(20);
    globalThis.gc();
    least = Math.min(least, process.memoryUsage().heapUsed);
  }
  return least;
}

await run(20_000);
const before = await heap();
await run(COUNT);
const after = await heap();
process.stdout.write(`${JSON.stringify({ leftBytes: (after - before) / COUNT })}\n`);
await client.close();
