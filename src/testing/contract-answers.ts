/** Contract cases: what is asked is answered, to the one who asked, in order. */

import assert from "node:assert/strict";
import { META } from "../protocol.ts";
import type { ContractCase } from "./contract-rig.ts";
import type { PeerExchange, PeerRequest } from "./peer-types.ts";

const echo = (request: PeerRequest, exchange: PeerExchange) => exchange.result({ got: request.params });

/** A text in which every kind of UTF-8 sequence occurs, and what a careless reader of lines would stumble over. */
const UNICODE = 'aé€🐎 \u2028\u2029\u0085\u0000\ufeff \\ " \r\n end';

export const answerCases: readonly ContractCase[] = [
  {
    title: "the request frame arrives as it was given, character for character",
    async run(open) {
      const rig = await open(echo);
      const exchange = rig.start({ text: UNICODE });
      assert.equal(((await exchange.result()).got as { text: string }).text, UNICODE);
      assert.equal(rig.peer.requests[0]?.text, exchange.body);
    },
  },
  {
    title: "a result and a JSON-RPC error are both responses",
    async run(open) {
      const rig = await open((request, exchange) => {
        if (request.params.fail) exchange.error(-32602, "no such thing", { field: "x" });
        else exchange.result({ text: UNICODE });
      });
      const [good, bad] = [rig.start(), rig.start({ fail: true })];
      assert.deepEqual(await good.result(), { text: UNICODE });
      const end = await bad.ended();
      assert(end.kind === "response" && end.frame.kind === "error");
      assert.deepEqual(end.frame.error, { code: -32602, message: "no such thing", data: { field: "x" } });
    },
  },
  {
    title: "notifications come before the answer, all of them, in the order they were sent",
    async run(open) {
      const rig = await open((request, exchange) => {
        for (let progress = 1; progress <= 100; progress++) {
          exchange.notify("notifications/progress", { progressToken: request.id, progress });
        }
        exchange.result({});
      });
      const exchange = rig.start();
      await exchange.result();
      assert.deepEqual(
        exchange.notifications.map(({ params }) => params?.progress),
        Array.from({ length: 100 }, (_, at) => at + 1),
      );
    },
  },
  {
    title: "64 exchanges at once, answered in reverse order, each get their own answer",
    async run(open) {
      const waiting: (() => void)[] = [];
      const rig = await open((request, exchange) => {
        waiting.push(() => exchange.result({ for: request.id }));
        if (waiting.length === 64) for (const answer of waiting.reverse()) answer();
      });
      const exchanges = rig.startMany(64);
      for (const exchange of exchanges) assert.deepEqual(await exchange.result(), { for: exchange.id });
      if (rig.transport.shared) {
        assert.deepEqual(
          rig.peer.requests.map(({ id }) => id),
          exchanges.map(({ id }) => id),
          "a shared channel keeps the order of requests",
        );
      }
    },
  },
  {
    title: "progress reaches the exchange whose token it names, and no other",
    async run(open) {
      const all: [PeerRequest, PeerExchange][] = [];
      const rig = await open((request, exchange) => {
        all.push([request, exchange]);
        if (all.length < 8) return;
        for (let progress = 1; progress <= 3; progress++) {
          for (const [{ id }, to] of all) {
            to.notify("notifications/progress", { progressToken: id, progress, message: `for ${id}` });
          }
        }
        for (const [, to] of all) to.result({});
      });
      for (const exchange of rig.startMany(8)) {
        await exchange.result();
        assert.deepEqual(
          exchange.notifications.map(({ params }) => params?.message),
          Array(3).fill(`for ${exchange.id}`),
        );
      }
    },
  },
  {
    title: "a subscription gets what names its id, and the server's cancellation of it",
    async run(open) {
      const rig = await open((request, exchange) => {
        const _meta = { [META.subscriptionId]: request.id };
        exchange.notify("notifications/subscriptions/acknowledged", { notifications: {}, _meta });
        exchange.notify("notifications/tools/list_changed", { _meta });
        exchange.notify("notifications/cancelled", { requestId: request.id });
        exchange.result({ _meta });
      });
      const exchange = rig.start({ notifications: {} }, { method: "subscriptions/listen" });
      await exchange.result();
      assert.deepEqual(
        exchange.notifications.map(({ method }) => method),
        [
          "notifications/subscriptions/acknowledged",
          "notifications/tools/list_changed",
          "notifications/cancelled",
        ],
      );
    },
  },
  {
    title:
      "a notification that names no exchange goes to the host on a shared channel, to the exchange otherwise",
    async run(open) {
      const rig = await open((_request, exchange) => {
        exchange.notify("notifications/message", { level: "info", data: 1 });
        exchange.result({});
      });
      const exchange = rig.start();
      await exchange.result();
      const [mine, hosts] = [exchange.notifications.length, rig.notifications.length];
      assert.deepEqual([mine, hosts], rig.transport.shared ? [0, 1] : [1, 0]);
    },
  },
  {
    title: "a shared channel tells its host when the link is up, before any answer, and when it is closed",
    async run(open) {
      const rig = await open(echo);
      let before: string | undefined;
      const exchange = rig.start(
        {},
        {
          react: () => {
            before = rig.links.at(-1);
          },
        },
      );
      await exchange.result();
      if (!rig.transport.shared) return;
      assert.equal(before, "up");
      await rig.transport.close();
      assert.equal(rig.links.at(-1), "closed");
      assert.equal(rig.links.filter((state) => state === "closed").length, 1);
    },
  },
  {
    title: "1 MiB goes there and comes back",
    async run(open) {
      const rig = await open(echo);
      const text = "0123456789abcdeé".repeat(64 * 1024);
      const exchange = rig.start({ text });
      assert.equal(((await exchange.result()).got as { text: string }).text, text);
    },
  },
  ...(["result", "error", "notification"] as const).map(
    (what): ContractCase => ({
      title: `LIM-01: a ${what} frame over limits.messageBytes ends the exchange with a LimitError`,
      async run(open) {
        const rig = await open(
          (request, exchange) => {
            const text = "x".repeat(request.params.size as number);
            const params = { progressToken: request.id, progress: 1, message: text };
            if (what === "notification") exchange.notify("notifications/progress", params);
            if (what === "error") exchange.error(-32603, text);
            else exchange.result({ text: what === "result" ? text : "" });
          },
          { messageBytes: 64 * 1024 },
        );
        const tooLarge = rig.start({ size: 256 * 1024 });
        const { error } = await tooLarge.failed();
        assert.equal(error.code, "limit");
        assert.equal((error as { limit?: string }).limit, "messageBytes");
        assert.equal(tooLarge.notifications.length, 0);
        assert.equal(
          (await rig.start({ size: 60 * 1024 }).ended()).kind,
          "response",
          "the next one goes well",
        );
      },
    }),
  ),
];
