/** Runs echo calls of one contender over memory, for `perf stat` to count around it. */

const [file, count] = process.argv.slice(2);
const { open } = await import(file);
const { call, close } = await open({ transport: "memory", tool: "echo" }, {});
for (let done = 0; done < Number(count); done++) await call();
await close();
