import { Agent } from "undici";
import { describe, expect, it } from "vitest";
import {
  type Attached,
  answerEvents,
  answerJson,
  event,
  failureOf,
  type Peer,
  responseOf,
  resultText,
  run,
  setUp,
} from "./http-peer.ts";

/**
 * Calls one after another use two connections in turn: undici looks at a connection once more before it is free again, and
 * the next call does not wait for that.
 */
const MOST_IN_TURN = 2;

/** Lets everything that is under way between the two sides arrive: a call of its own, there and back. */
async function roundTrip(attached: Attached & { peer: Peer }): Promise<void> {
  const done = run(attached.transport, { method: "tools/list" });
  answerJson(await attached.peer.next());
  await responseOf(done);
}

describe("CAN-01", () => {
  it("B070 B074: cancelling closes the response stream; nothing is posted, and the sink is silent", async () => {
    const all = await setUp();
    let told: () => void = () => {};
    const first = new Promise<void>((resolve) => {
      told = resolve;
    });
    const running = run(all.transport, {}, { notification: () => told() });
    const seen = await all.peer.next();
    answerEvents(seen).write(event('{"jsonrpc":"2.0","method":"notifications/progress"}'));
    await first;
    running.exchange.cancel("enough");
    await seen.closed;
    await roundTrip(all);
    expect(running.ends()).toBe(0);
    expect(all.peer.seen.map(({ frame }) => frame.method)).toEqual(["tools/call", "tools/list"]);
  });

  it("B092: cancelling closes the connection before headers came", async () => {
    const all = await setUp();
    const running = run(all.transport);
    const seen = await all.peer.next();
    running.exchange.cancel("enough");
    await seen.closed;
    await roundTrip(all);
    expect(running.ends()).toBe(0);
  });

  it.each([
    ["before undici is loaded", false],
    ["with a connection open and idle", true],
  ])("a request that is cancelled at once is never written: %s", async (_what, warm) => {
    const all = await setUp(undefined, { maxConnections: 1 });
    if (warm) await roundTrip(all);
    const running = run(all.transport);
    running.exchange.cancel("enough");
    await roundTrip(all);
    expect(all.peer.connections()).toBe(1);
    expect(all.peer.seen.filter(({ frame }) => frame.method === "tools/call")).toHaveLength(0);
    expect(running.ends()).toBe(0);
  });

  it("a request that waits for a connection is never written when it is cancelled", async () => {
    const all = await setUp(undefined, { maxConnections: 1 });
    const first = run(all.transport, { method: "tools/list" });
    const seen = await all.peer.next();
    const waiting = run(all.transport, { method: "tools/call" });
    const other = run(all.transport, { method: "prompts/get" });
    waiting.exchange.cancel("enough");
    answerJson(seen);
    await responseOf(first);
    answerJson(await all.peer.next());
    await responseOf(other);
    expect(all.peer.seen.map(({ frame }) => frame.method)).toEqual(["tools/list", "prompts/get"]);
    expect(waiting.ends()).toBe(0);
    expect(all.peer.connections()).toBe(1);
  });

  it("a request is never written when it is cancelled while its token is being fetched", async () => {
    let give: (token: string) => void = () => {};
    const token = new Promise<string>((resolve) => {
      give = resolve;
    });
    const all = await setUp(undefined, { token: () => token });
    const running = run(all.transport);
    running.exchange.cancel("enough");
    give("t");
    await roundTrip(all);
    expect(all.peer.seen.map(({ frame }) => frame.method)).toEqual(["tools/list"]);
    expect(running.ends()).toBe(0);
  });

  it("a request is never written when it is cancelled while the connection is being made", async () => {
    const all = await setUp(undefined, { maxConnections: 2 });
    await roundTrip(all);
    const busy = run(all.transport, { method: "tools/list" });
    const seen = await all.peer.next();
    // The one connection is taken, so this makes a second one.
    const running = run(all.transport);
    running.exchange.cancel("enough");
    answerJson(seen);
    await responseOf(busy);
    await roundTrip(all);
    expect(all.peer.seen.filter(({ frame }) => frame.method === "tools/call")).toHaveLength(0);
  });

  it("cancelling inside a notification stops the rest of the same chunk", async () => {
    const all = await setUp();
    const running = run(all.transport, {}, { notification: () => running.exchange.cancel("enough") });
    const seen = await all.peer.next();
    const note = event('{"jsonrpc":"2.0","method":"notifications/progress"}');
    answerEvents(seen).write(note + note + event(resultText(running.request.id)));
    await seen.closed;
    expect(running.notifications).toHaveLength(1);
    expect(running.ends()).toBe(0);
    expect(all.anomalies).toEqual([]);
  });

  it("cancelling twice, and after the end, does nothing", async () => {
    const all = await setUp();
    const running = run(all.transport);
    answerJson(await all.peer.next());
    await responseOf(running);
    running.exchange.cancel("late");
    running.exchange.cancel("later");
    await roundTrip(all);
    expect(all.peer.connections()).toBeLessThanOrEqual(MOST_IN_TURN);
  });

  it("B101: cancelling one call leaves its siblings alone", async () => {
    const all = await setUp();
    const siblings = Array.from({ length: 5 }, () => run(all.transport, { method: "tools/list" }));
    const slow = run(all.transport);
    const seen = await Promise.all(Array.from({ length: 6 }, () => all.peer.next()));
    slow.exchange.cancel("too slow");
    await seen.find(({ frame }) => frame.method === "tools/call")!.closed;
    for (const one of seen) if (one.frame.method === "tools/list") answerJson(one);
    for (const sibling of siblings) expect((await responseOf(sibling)).response.kind).toBe("result");
    expect(all.peer.seen).toHaveLength(6);
  });
});

describe("connections", () => {
  it("HTTP-05: calls one after another share a connection, JSON and SSE alike", async () => {
    const all = await setUp((seen) => {
      if (seen.frame.method === "tools/list") answerJson(seen);
      else answerEvents(seen).end(event(resultText(seen.frame.id)));
    });
    for (let count = 0; count < 5; count++) {
      await responseOf(run(all.transport));
      await responseOf(run(all.transport, { method: "tools/list" }));
    }
    expect(all.peer.connections()).toBeLessThanOrEqual(MOST_IN_TURN);
  });

  it("HTTP-05: a stream that ends soon after its response keeps the connection", async () => {
    const all = await setUp();
    for (let count = 0; count < 5; count++) {
      const running = run(all.transport);
      const seen = await all.peer.next();
      const res = answerEvents(seen);
      res.write(event(resultText(running.request.id)));
      await responseOf(running);
      res.end();
      await seen.closed;
    }
    expect(all.peer.connections()).toBeLessThanOrEqual(MOST_IN_TURN);
  });

  it("HTTP-05: a stream that stays open after its response is closed", async () => {
    const all = await setUp();
    const running = run(all.transport);
    const seen = await all.peer.next();
    answerEvents(seen).write(event(resultText(running.request.id)));
    await responseOf(running);
    await seen.closed;
    expect(seen.res.writableEnded).toBe(false);
  });

  it("LIM-01: a stream that floods after its response is closed", async () => {
    const all = await setUp();
    const running = run(all.transport);
    const seen = await all.peer.next();
    const res = answerEvents(seen);
    res.write(event(resultText(running.request.id)));
    await responseOf(running);
    let written = 0;
    const flood = () => {
      while (!res.destroyed) {
        written += 64 * 1024;
        if (!res.write(`: ${"x".repeat(64 * 1024)}\n`)) break;
      }
    };
    res.on("drain", flood);
    flood();
    await seen.closed;
    // What the sockets hold, and no more: the time that a stream is given to end would let hundreds of megabytes through.
    expect(written).toBeLessThan(16 * 1024 * 1024);
  });

  it("HTTP-05: maxConnections bounds the connections, and all calls are answered", async () => {
    const all = await setUp(answerJson, { maxConnections: 2 });
    const calls = Array.from({ length: 20 }, () => run(all.transport));
    for (const call of calls) await responseOf(call);
    expect(all.peer.connections()).toBeLessThanOrEqual(2);
  });

  it("HTTP-05 B091: a long-lived stream does not take a connection of calls", async () => {
    const all = await setUp(undefined, { maxConnections: 1 });
    const listen = run(all.transport, { method: "subscriptions/listen", longLived: true });
    const seen = await all.peer.next();
    answerEvents(seen).write(event('{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"}'));
    await roundTrip(all);
    listen.exchange.cancel("unsubscribed");
    await seen.closed;
  });

  it("HTTP-04: a dispatcher of the host is used and not closed, and its time limits do not apply", async () => {
    const agent = new Agent({ headersTimeout: 100, bodyTimeout: 100, keepAliveTimeout: 10_000 });
    const all = await setUp(undefined, { dispatcher: agent });
    const running = run(all.transport);
    const seen = await all.peer.next();
    // undici looks at its time limits twice a second or so; the answer comes after it has looked.
    await new Promise((resolve) => setTimeout(resolve, 1200));
    const res = answerEvents(seen);
    res.end(event(resultText(running.request.id)));
    await responseOf(running);
    await all.transport.close();
    expect(agent.destroyed || agent.closed).toBe(false);
    await agent.close();
  });
});

describe("close", () => {
  it("ends every exchange with a ClosedError that knows what was sent", async () => {
    const all = await setUp(undefined, { maxConnections: 2 });
    const sent = run(all.transport);
    const seen = await all.peer.next();
    const answering = run(all.transport);
    answerEvents(await all.peer.next());
    const queued = run(all.transport);
    await all.transport.close();
    expect(await failureOf(sent)).toMatchObject({ delivery: "unknown", error: { code: "closed" } });
    expect(await failureOf(answering)).toMatchObject({ delivery: "unknown", error: { code: "closed" } });
    expect(await failureOf(queued)).toMatchObject({ delivery: "not-sent", error: { code: "closed" } });
    await seen.closed;
    expect(all.peer.seen).toHaveLength(2);
  });

  it("ends an exchange whose undici is still being loaded, and one whose token is still awaited", async () => {
    const all = await setUp(undefined, {
      token: ({ context }) => (context === "slow" ? new Promise(() => {}) : "t"),
    });
    const calls = [run(all.transport), run(all.transport, { context: "slow" })];
    await all.transport.close();
    for (const call of calls) {
      expect(await failureOf(call)).toMatchObject({ delivery: "not-sent", error: { code: "closed" } });
    }
    expect(all.peer.seen).toHaveLength(0);
  });

  it("refuses exchanges afterwards, and can be called again", async () => {
    const all = await setUp(answerJson);
    await responseOf(run(all.transport));
    await Promise.all([all.transport.close(), all.transport.close()]);
    await all.transport.close();
    expect(await failureOf(run(all.transport))).toMatchObject({
      delivery: "not-sent",
      error: { code: "closed" },
    });
    expect(all.peer.seen).toHaveLength(1);
  });

  it("SAF-02: may be called from a callback of the host in the middle of an exchange", async () => {
    const all = await setUp(answerJson, {
      headers: () => {
        void all.transport.close();
        return {};
      },
    });
    expect(await failureOf(run(all.transport))).toMatchObject({
      delivery: "not-sent",
      error: { code: "closed" },
    });
    expect(all.peer.seen).toHaveLength(0);
  });

  it("ends exchanges on a dispatcher of the host as well", async () => {
    const agent = new Agent({ connections: 1 });
    const all = await setUp(undefined, { dispatcher: agent });
    const sent = run(all.transport);
    const seen = await all.peer.next();
    const queued = run(all.transport);
    await all.transport.close();
    await seen.closed;
    expect(await failureOf(sent)).toMatchObject({ delivery: "unknown" });
    expect(await failureOf(queued)).toMatchObject({ delivery: "not-sent" });
    await agent.close();
    expect(all.peer.seen).toHaveLength(1);
  });
});
