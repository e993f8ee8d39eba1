/** Told by each start-up script when it has done what it is for: what the whole process took so far. */

export function report() {
  const ms = performance.now();
  const { user, system } = process.cpuUsage();
  const figures = { ms, cpuMs: (user + system) / 1000, rssMb: process.memoryUsage.rss() / 2 ** 20 };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
}
