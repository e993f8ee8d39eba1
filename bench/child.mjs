/**
 * One contender in one scenario, in a process of its own. The runner tells it how many operations to run; between its
 * slices it is idle, while the other contenders have theirs. Only the time of its own CPU counts, the collector's included.
 */

const [file, scenarioText, targetText] = process.argv.slice(2);
const scenario = JSON.parse(scenarioText);
const { open } = await import(file);
const contender = await open(scenario, JSON.parse(targetText));
const { concurrency = 1 } = scenario;

async function run(count) {
  const latencies = new Float64Array(count);
  let done = 0;
  const one = async () => {
    const startedAt = performance.now();
    await contender.call();
    latencies[done++] = performance.now() - startedAt;
  };
  const startedAt = performance.now();
  const cpu = process.cpuUsage();
  if (concurrency === 1) while (done < count) await one();
  else {
    while (done < count) {
      const batch = [];
      for (let index = 0; index < concurrency; index++) batch.push(one());
      await Promise.all(batch);
    }
  }
  const { user, system } = process.cpuUsage(cpu);
  const wallMs = performance.now() - startedAt;
  latencies.sort();
  const at = (share) => latencies[Math.min(count - 1, Math.floor(count * share))];
  return {
    count,
    cpuUs: (user + system) / count,
    wallUs: (wallMs * 1000) / count,
    p50Us: at(0.5) * 1000,
    p99Us: at(0.99) * 1000,
  };
}

process.on("message", async (message) => {
  try {
    if (message.run !== undefined) {
      process.send({ slice: await run(message.run) });
    } else {
      await contender.close();
      process.disconnect();
    }
  } catch (error) {
    process.send({ error: error.stack ?? String(error) });
  }
});
process.on("disconnect", () => process.exit(0));
process.send({ ready: true });
