/** Contract cases: every exchange ends exactly once, also when the peer is lost or the transport is closed. */

import assert from "node:assert/strict";
import { type ContractCase, patiently, type Recorded } from "./contract-rig.ts";
import type { PeerExchange, PeerRequest } from "./peer-types.ts";

/** Close must be prompt when the peer behaves. */
const CLOSE_MS = 2500;

/** Never answers. */
function never(): void {}

/** Answers nobody, and loses everybody as soon as `count` requests are there. */
function loseAll(count: number, how: "drop" | "crash") {
  const waiting: PeerExchange[] = [];
  return (_request: PeerRequest, exchange: PeerExchange) => {
    waiting.push(exchange);
    if (waiting.length === count) for (const lost of waiting) lost[how]();
  };
}

async function assertClosed(exchange: Recorded): Promise<void> {
  const { error } = await exchange.failed();
  assert.equal(error.code, "closed");
}

export const endCases: readonly ContractCase[] = [
  ...(["crash", "drop"] as const).map((how) => ({
    title: `a ${how} with 20 pending fails each of them once, with its delivery unknown`,
    needs: "loss" as const,
    async run(open: Parameters<ContractCase["run"]>[0]) {
      const rig = await open(loseAll(20, how));
      for (const exchange of rig.startMany(20)) {
        const { delivery, error } = await exchange.failed();
        assert.equal(delivery, "unknown");
        if (how === "crash") assert.equal(error.code, "connection-lost");
      }
    },
  })),
  {
    title: "a crash after notifications fails the exchange after them",
    needs: "loss",
    async run(open) {
      const rig = await open(async (request, exchange) => {
        exchange.notify("notifications/progress", { progressToken: request.id, progress: 1 });
        if (!(await seen)) return;
        exchange.crash();
      });
      let see: (value: boolean) => void = () => {};
      const seen = new Promise<boolean>((resolve) => {
        see = resolve;
      });
      const exchange = rig.start();
      await exchange.notified(1);
      see(true);
      assert.equal((await exchange.failed()).delivery, "unknown");
    },
  },
  {
    title: "a loss says nothing to an exchange that was cancelled before it",
    needs: "loss",
    async run(open) {
      const waiting: PeerExchange[] = [];
      const rig = await open((_request, exchange) => void waiting.push(exchange));
      const [cancelled, lost] = [rig.start(), rig.start()];
      await rig.arrived(2);
      cancelled.cancel();
      for (const exchange of waiting) exchange.crash();
      await lost.failed();
      assert.equal(cancelled.end, undefined);
    },
  },
  {
    title: "after a loss the next exchange reaches the peer again",
    needs: "loss",
    async run(open) {
      const rig = await open((request, exchange) => {
        if (request.params.crash) exchange.crash();
        else exchange.result({ for: request.id });
      });
      await rig.start({ crash: true }).failed();
      const second = rig.start();
      assert.deepEqual(await second.result(), { for: second.id });
    },
  },
  {
    title: "a sink may start an exchange from inside a failure",
    needs: "loss",
    async run(open) {
      const rig = await open((request, exchange) => {
        if (request.params.crash) exchange.crash();
        else exchange.result({ for: request.id });
      });
      let second: Recorded | undefined;
      const first = rig.start(
        { crash: true },
        {
          react: () => {
            second = rig.start();
          },
        },
      );
      await first.failed();
      assert(second !== undefined);
      assert.deepEqual(await second.result(), { for: second.id });
    },
  },
  {
    title:
      "close() with 20 pending ends each of them with a ClosedError, in bounded time, and the peer sees it",
    async run(open) {
      const gone: Promise<string>[] = [];
      const rig = await open((_request, exchange) => void gone.push(exchange.cancelled));
      const exchanges = rig.startMany(20);
      await rig.arrived(20);
      const before = performance.now();
      await rig.transport.close();
      const tookMs = performance.now() - before;
      assert(tookMs < CLOSE_MS, `close() took ${Math.round(tookMs)} ms`);
      for (const exchange of exchanges) {
        const { delivery, error } = await exchange.failed();
        assert.equal(error.code, "closed");
        assert.equal(delivery, "unknown", "the request had left");
      }
      await patiently(rig.patienceMs, "the peer saw that its 20 requests are void", (resolve) => {
        Promise.all(gone).then(resolve);
      });
    },
  },
  {
    title: "close() in the same turn as an exchange ends it as not sent",
    async run(open) {
      const rig = await open(never);
      const exchange = rig.start();
      const closed = rig.transport.close();
      const { delivery, error } = await exchange.failed();
      await closed;
      assert.equal(error.code, "closed");
      assert.equal(delivery, "not-sent");
      assert.equal(rig.peer.requests.length, 0);
    },
  },
  {
    title: "close() may be called again, also while it runs, and with nothing ever exchanged",
    async run(open) {
      const used = await open((_request, exchange) => exchange.result({}));
      await used.start().result();
      await Promise.all([used.transport.close(), used.transport.close()]);
      await used.transport.close();
      const unused = await open(never);
      await unused.transport.close();
      assert.deepEqual(unused.peer.received, []);
    },
  },
  {
    title: "an exchange after close() ends with a ClosedError, not sent, and may be cancelled before it does",
    async run(open) {
      const rig = await open(never);
      await rig.transport.close();
      const [first, second] = [rig.start(), rig.start()];
      second.cancel();
      const { delivery, error } = await first.failed();
      assert.equal(error.code, "closed");
      assert.equal(delivery, "not-sent");
      assert.equal(second.end, undefined);
      assert.equal(rig.peer.requests.length, 0);
    },
  },
  {
    title: "a sink may close the transport from inside its answer",
    async run(open) {
      const rig = await open((request, exchange) => {
        if (!request.params.wait) exchange.result({});
      });
      const waiting = rig.start({ wait: true });
      await rig.arrived(1);
      let closed: Promise<void> | undefined;
      await rig
        .start(
          {},
          {
            react: () => {
              closed = rig.transport.close();
            },
          },
        )
        .result();
      await assertClosed(waiting);
      await closed;
    },
  },
  {
    title: "a sink that is told of the closing may start an exchange, which ends as closed too",
    async run(open) {
      const rig = await open(never);
      let late: Recorded | undefined;
      const exchange = rig.start(
        {},
        {
          react: () => {
            late = rig.start();
          },
        },
      );
      await rig.arrived(1);
      await rig.transport.close();
      await assertClosed(exchange);
      assert(late !== undefined);
      await assertClosed(late);
    },
  },
];
