/** Contract cases: what is cancelled is silent, and the peer is told in the binding's own way. */

import assert from "node:assert/strict";
import type { ContractCase, Rig } from "./contract-rig.ts";
import type { PeerExchange, PeerRequest } from "./peer-types.ts";

/** Answers at once unless the params say `wait`; then it answers all the same when it is cancelled, as a rude server does. */
async function rude(request: PeerRequest, exchange: PeerExchange): Promise<void> {
  if (request.params.wait) await exchange.cancelled;
  exchange.result({ for: request.id });
}

/** An exchange that is answered after all that the peer sent before: on a shared channel nothing can overtake it. */
async function settle(rig: Rig): Promise<void> {
  await rig.start().result();
}

/** What the peer was told by notification: one for each id on a shared channel (CAN-02), none elsewhere (CAN-01). */
function assertTold(rig: Rig, ids: readonly number[]): void {
  assert.deepEqual(
    rig.peer.notifications.map(({ method, params }) => [method, params.requestId]),
    rig.transport.shared ? ids.map((id) => ["notifications/cancelled", id]) : [],
  );
}

export const cancelCases: readonly ContractCase[] = [
  {
    title: "CAN-01 CAN-02: a cancel after the request left reaches the peer once, and the sink is silent",
    async run(open) {
      const rig = await open(rude);
      const exchange = rig.start({ wait: true });
      await rig.arrived(1);
      exchange.cancel("enough");
      await rig.cancelled(1);
      await settle(rig);
      assert.deepEqual(rig.peer.cancelled, [exchange.id]);
      assertTold(rig, [exchange.id]);
      if (rig.transport.shared) {
        assert.equal(rig.peer.notifications[0]?.params.reason, "enough");
        assert.deepEqual(rig.anomalies, ["late-response"]);
      }
    },
  },
  {
    title: "a cancel in the same turn means that the request never leaves",
    async run(open) {
      const rig = await open(rude);
      rig.start({ wait: true }).cancel();
      const second = rig.start();
      await second.result();
      assert.deepEqual(
        rig.peer.requests.map(({ id }) => id),
        [second.id],
      );
      assertTold(rig, []);
    },
  },
  {
    title: "cancel is idempotent, and does nothing after the end",
    async run(open) {
      const rig = await open(rude);
      const [answered, waiting] = [rig.start(), rig.start({ wait: true })];
      await answered.result();
      await rig.arrived(2);
      answered.cancel();
      answered.cancel();
      waiting.cancel();
      waiting.cancel();
      await rig.cancelled(1);
      waiting.cancel();
      await settle(rig);
      assert.deepEqual(rig.peer.cancelled, [waiting.id]);
      assertTold(rig, [waiting.id]);
    },
  },
  {
    title: "a silent cancel tells a shared channel's peer nothing",
    async run(open) {
      const rig = await open((request, exchange) => {
        if (!request.params.wait) exchange.result({});
      });
      const exchange = rig.start({ wait: true });
      await rig.arrived(1);
      exchange.cancel("gone", { silent: true });
      await settle(rig);
      assertTold(rig, []);
    },
  },
  {
    title: "a cancel between notifications and answer stops both",
    async run(open) {
      const rig = await open(async (request, exchange) => {
        if (!request.params.wait) return exchange.result({});
        exchange.notify("notifications/progress", { progressToken: request.id, progress: 1 });
        await exchange.cancelled;
        exchange.notify("notifications/progress", { progressToken: request.id, progress: 2 });
        exchange.result({});
      });
      const exchange = rig.start({ wait: true });
      await exchange.notified(1);
      exchange.cancel();
      await rig.cancelled(1);
      await settle(rig);
      assert.equal(exchange.notifications.length, 1);
    },
  },
  {
    title: "a sink may cancel its own exchange from inside a notification",
    async run(open) {
      const rig = await open((request, exchange) => {
        if (request.params.chat) {
          for (let progress = 1; progress <= 5; progress++) {
            exchange.notify("notifications/progress", { progressToken: request.id, progress });
          }
        }
        exchange.result({});
      });
      const exchange = rig.start({ chat: true }, { react: (_call, recorded) => recorded.cancel() });
      await exchange.notified(1);
      await settle(rig);
      assert.equal(exchange.notifications.length, 1);
      assert.equal(exchange.end, undefined);
    },
  },
  {
    title: "a sink may start an exchange and cancel another from inside its answer",
    async run(open) {
      const rig = await open(rude);
      const waiting = rig.start({ wait: true });
      await rig.arrived(1);
      let inner: ReturnType<Rig["start"]> | undefined;
      const outer = rig.start(
        {},
        {
          react: () => {
            waiting.cancel();
            inner = rig.start();
          },
        },
      );
      await outer.result();
      assert(inner !== undefined);
      assert.deepEqual(await inner.result(), { for: inner.id });
      await rig.cancelled(1);
      assertTold(rig, [waiting.id]);
    },
  },
];
