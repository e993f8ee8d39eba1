/**
 * One contender in one scenario under the CPU profiler, once it is warm: `node profile.mjs FILE SCENARIO TARGET`. Prints how
 * long each function ran itself.
 */

import inspector from "node:inspector";
import { promisify } from "node:util";

const [file, scenarioText, targetText] = process.argv.slice(2);
const scenario = JSON.parse(scenarioText);
const { open } = await import(file);
const contender = await open(scenario, JSON.parse(targetText));
const { concurrency = 1, operations } = scenario;

async function run(count) {
  for (let done = 0; done < count; done += concurrency) {
    await Promise.all(Array.from({ length: concurrency }, () => contender.call()));
  }
}

const session = new inspector.Session();
session.connect();
const post = promisify(session.post.bind(session));
await run(operations * 4);
await post("Profiler.enable");
await post("Profiler.setSamplingInterval", { interval: 100 });
await post("Profiler.start");
await run(operations * 4);
const { profile } = await post("Profiler.stop");
await contender.close();
process.stdout.write(JSON.stringify(profile));
