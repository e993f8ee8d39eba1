import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { transportContract } from "../../src/testing/contract.ts";
import type { ScriptedPeer } from "../../src/testing/peer-types.ts";
import type { Exchange, ExchangeSink, Transport } from "../../src/transport.ts";

// The contract is of use only if a transport that breaks it fails. Each of these breaks one promise.

type Fault = (peer: ScriptedPeer, good: Transport) => Partial<Transport> | Promise<Partial<Transport>>;

/** Wraps the sinks of a good transport. */
function badSink(wrap: (sink: ExchangeSink) => Partial<ExchangeSink>): Fault {
  return (_peer, good) => ({
    exchange: (request, sink) =>
      good.exchange(request, {
        notification: (frame) => sink.notification(frame),
        response: (frame, envelope) => sink.response(frame, envelope),
        failure: (failure) => sink.failure(failure),
        ...wrap(sink),
      }),
  });
}

/** Wraps the handles of a good transport. */
function badHandle(wrap: (exchange: Exchange) => Exchange): Fault {
  return (_peer, good) => ({ exchange: (request, sink) => wrap(good.exchange(request, sink)) });
}

const FAULTS: readonly { what: string; fault: Fault; caughtBy: RegExp }[] = [
  {
    what: "calls the sink before exchange() has returned",
    fault: (_peer, good) => ({
      exchange(request, sink) {
        sink.notification({ kind: "notification", method: "notifications/early", params: {} });
        return good.exchange(request, sink);
      },
    }),
    caughtBy: /a result and a JSON-RPC error/,
  },
  {
    what: "ends twice",
    fault: badSink((sink) => ({
      response(frame) {
        sink.response(frame);
        sink.response(frame);
      },
    })),
    caughtBy: /a result and a JSON-RPC error/,
  },
  {
    what: "loses a notification",
    fault: badSink((sink) => ({
      notification(frame) {
        if (frame.params?.progress !== 2) sink.notification(frame);
      },
    })),
    caughtBy: /in the order they were sent/,
  },
  {
    what: "delivers a notification after the answer",
    fault: badSink((sink) => ({
      notification: (frame) => void setImmediate(() => sink.notification(frame)),
    })),
    caughtBy: /in the order they were sent/,
  },
  {
    what: "gives every notification to the newest exchange",
    fault: (_peer, good) => {
      let newest: ExchangeSink | undefined;
      return {
        exchange(request, sink) {
          newest = sink;
          return good.exchange(request, {
            notification: (frame) => newest?.notification(frame),
            response: (frame) => sink.response(frame),
            failure: (failure) => sink.failure(failure),
          });
        },
      };
    },
    caughtBy: /whose token it names/,
  },
  {
    what: "goes on after a cancel",
    fault: badHandle(() => ({ cancel() {} })),
    caughtBy: /reaches the peer once, and the sink is silent/,
  },
  {
    what: "does not tell the peer of a cancel",
    fault: badHandle((exchange) => ({ cancel: (reason) => exchange.cancel(reason, { silent: true }) })),
    caughtBy: /reaches the peer once, and the sink is silent/,
  },
  {
    what: "does not report a loss",
    fault: badSink(() => ({ failure() {} })),
    caughtBy: /a crash with 20 pending/,
  },
  {
    what: "says not-sent of what was sent",
    fault: badSink((sink) => ({
      failure: ({ error }) => sink.failure({ delivery: "not-sent", error }),
    })),
    caughtBy: /a drop with 20 pending/,
  },
  {
    what: "leaves exchanges pending when it is closed",
    fault: () => ({ close: async () => {} }),
    caughtBy: /close\(\) with 20 pending/,
  },
  {
    what: "never finishes to close",
    fault: () => ({ close: () => new Promise(() => {}) }),
    caughtBy: /a result and a JSON-RPC error/,
  },
  {
    what: "knows no limit",
    fault: (_peer, good) => ({
      attach: (host) =>
        good.attach({
          limits: { messageBytes: Number.MAX_SAFE_INTEGER },
          notification: (frame) => host.notification(frame),
          link: (state) => host.link(state),
          anomaly: (kind, detail) => host.anomaly(kind, detail),
        }),
    }),
    caughtBy: /a result frame over limits\.messageBytes/,
  },
  {
    what: "tells of no anomaly",
    fault: (_peer, good) => ({
      attach: (host) =>
        good.attach({ ...host, limits: host.limits, anomaly() {}, link() {}, notification() {} }),
    }),
    caughtBy: /an answer to an id that was never used/,
  },
  {
    what: "leaves a socket open",
    fault: async (peer) => {
      const { url } = await peer.websocket();
      const socket = new WebSocket(url, "mcp");
      socket.on("error", () => {});
      await once(socket, "open");
      return {};
    },
    caughtBy: /a result and a JSON-RPC error/,
  },
];

/** Runs the cases whose title fits, and gives the messages of those that failed. */
async function failures(only: RegExp, fault: Fault): Promise<string[]> {
  const cases = new Map<string, () => Promise<void>>();
  transportContract(
    "broken",
    async (peer) => {
      const good = peer.memory();
      return {
        name: good.name,
        peer: good.peer,
        attach: (host) => good.attach(host),
        exchange: (request, sink) => good.exchange(request, sink),
        close: () => good.close(),
        ...(await fault(peer, good)),
      };
    },
    {
      patienceMs: 100,
      runner: { describe: (_name, body) => body(), it: (name, body) => void cases.set(name, body) },
    },
  );
  const titles = [...cases.keys()].filter((title) => only.test(title));
  expect(titles, "the pattern names a case").not.toEqual([]);
  const messages: string[] = [];
  for (const title of titles) {
    await cases
      .get(title)?.()
      .catch((error: Error) => messages.push(error.message));
  }
  return messages;
}

describe("transportContract", () => {
  it.each(FAULTS)("catches a transport that $what", async ({ fault, caughtBy }) => {
    expect(await failures(caughtBy, fault)).not.toEqual([]);
  });

  it("has nothing against the same cases without the fault", async () => {
    for (const { caughtBy } of FAULTS) expect(await failures(caughtBy, () => ({}))).toEqual([]);
  });

  it("leaves out what the binding cannot play", () => {
    const count = (without: ("frames" | "loss" | "pieces")[]) => {
      let cases = 0;
      const runner = { describe: (_name: string, body: () => void) => body(), it: () => void cases++ };
      transportContract("any", (peer) => peer.memory(), { runner, without });
      return cases;
    };
    expect(count(["frames", "loss", "pieces"])).toBeLessThan(count(["frames"]));
    expect(count(["frames"])).toBeLessThan(count([]));
  });
});
