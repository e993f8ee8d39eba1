import { expect, it } from "vitest";
import { createClient } from "../../src/client.ts";
import type { RallyEvent } from "../../src/events.ts";
import { stdioTransport } from "../../transports/stdio.ts";
import { officialStdio } from "../support/servers.ts";

const OPERATIONS = 50;

/**
 * When the server is killed: as soon as so much of the work left has been answered since it came up, of 3 rounds for each
 * operation that is still pending. 0 kills it before it has answered its probe.
 */
const KILLS = [0.01, 0.15, 0, 0.33, 0.34, 0.5, 0.66, 0.75, 0.05, 0.6];

/** The server process tells its pid on stderr before it does anything else. */
const TELL_PID = "data:text/javascript,process.stderr.write('pid '+process.pid+'\\n')";

it("MRTR-18 STD-02: 50 operations of three rounds survive ten kills of their server process", {
  timeout: 60_000,
}, async () => {
  const { command, args } = officialStdio();
  const pids: number[] = [];
  const events: RallyEvent[] = [];
  let answered = 0;
  let kills = 0;

  function killWhenDue(): void {
    const share = KILLS[kills];
    const pid = pids[kills];
    if (share === undefined || pid === undefined) return;
    if (answered < share * 3 * client.operations.length) return;
    kills++;
    answered = 0;
    process.kill(pid, "SIGKILL");
  }

  const client = createClient({
    transport: stdioTransport({
      command,
      args: ["--import", TELL_PID, ...args],
      onStderr(text) {
        for (const [, pid] of text.matchAll(/^pid (\d+)$/gm)) pids.push(Number(pid));
        killWhenDue();
      },
      restart: { initialMs: 1, maxMs: 1 },
    }),
    info: { name: "fault-test", version: "1.0.0" },
    reissue: { policy: "always", max: KILLS.length, backoffMs: 0 },
    // Rounds are counted over all restarts (MRTR-11): two questions for each time the round trip starts.
    maxRounds: 2 * (KILLS.length + 1),
    onEvent(event) {
      events.push(event);
      if (event.type !== "attempt.ended" || event.method !== "tools/call") return;
      if (event.outcome === "input_required" || event.outcome === "complete") answered++;
      killWhenDue();
    },
  });

  const asked: string[] = [];
  async function onboard(name: string): Promise<unknown> {
    const { content } = await client.callTool("onboard", undefined, {
      inputs: {
        elicitForm(_params, { key }) {
          asked.push(key);
          return { action: "accept", content: key === "name" ? { name } : { plan: "team" } };
        },
      },
    });
    return (content[0] as { text: string }).text;
  }

  // Answers that are in the pipe when the server is killed count: all may be there before the last kill was due. Then fifty more.
  let operations = 0;
  while (kills < KILLS.length) {
    const names = Array.from({ length: OPERATIONS }, () => `user-${operations++}`);
    const results = await Promise.all(names.map(onboard));
    expect(results).toEqual(names.map((name) => `${name} is on the team plan`));
  }
  expect(kills).toBe(KILLS.length);
  expect(client.operations).toEqual([]);
  await client.close();

  // Handlers ran again only where a round trip started over: once for each question that was received.
  const questions = events.filter(
    (event) => event.type === "attempt.ended" && event.outcome === "input_required",
  );
  expect(asked.length).toBe(questions.length);
  const wireIds = events.flatMap((event) => (event.type === "attempt.sent" ? [event.wireId] : []));
  expect(new Set(wireIds).size).toBe(wireIds.length);

  expect(pids.length).toBe(KILLS.length + 1);
  const alive = pids.filter(isAlive);
  expect(alive).toEqual([]);
  console.log(
    `${operations} operations, ${kills} kills, ${wireIds.length} attempts, ${asked.length} questions answered`,
  );
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
