import { describe, expect, it } from "vitest";
import { ConnectionLostError, FrameError, LimitError } from "../../src/errors.ts";
import type { ExchangeSink } from "../../src/transport.ts";
import { Channel, type ChannelPort } from "../../transports/channel.ts";
import { type Recorder, record, request } from "./recorder.ts";

/** A port into memory: what it was given, and how full it says it is. */
class MemoryPort implements ChannelPort {
  readonly frames: { id?: number; method?: string }[] = [];
  buffered = 0;
  flushes = 0;
  broken = false;

  send(text: string): void {
    if (this.broken) throw new Error("socket is gone");
    this.frames.push(JSON.parse(text));
  }

  flush(): void {
    this.flushes++;
  }
}

interface Fixture extends Recorder {
  readonly channel: Channel;
  readonly port: MemoryPort;
  receive(frame: object): void;
}

function fixture(options: { up?: boolean; outboundBytes?: number } = {}): Fixture {
  const late: { channel?: Channel } = {};
  const recorder = record({ exchange: (frame, sink) => late.channel!.exchange(frame, sink) });
  const channel = new Channel(recorder.host, { outboundBytes: options.outboundBytes });
  late.channel = channel;
  const port = new MemoryPort();
  if (options.up !== false) channel.up(port);
  const receive = (frame: object) => channel.receive(JSON.stringify({ jsonrpc: "2.0", ...frame }));
  return Object.assign(recorder, { channel, port, receive });
}

/** Lets the frames of this turn be written. */
const turn = (): Promise<void> => Promise.resolve();

describe("responses", () => {
  it("REQ-02: each goes to the exchange with its id, in whatever order they come", async () => {
    const { send, receive, port } = fixture();
    const calls = [send("a"), send("b"), send("c")];
    await turn();
    expect(port.frames.map((frame) => frame.id)).toEqual(calls.map((call) => call.id));
    for (const call of [calls[2]!, calls[0]!, calls[1]!]) receive({ id: call.id, result: { to: call.id } });
    for (const call of calls) expect(await call.result).toEqual({ to: call.id });
  });

  it("REQ-02: a JSON-RPC error is a response too", async () => {
    const { send, receive } = fixture();
    const call = send("a");
    await turn();
    receive({ id: call.id, error: { code: -32601, message: "no such method" } });
    await expect(call.result).rejects.toThrow("error -32601: no such method");
  });

  const strangers: { name: string; id: (own: number) => unknown; kind: string }[] = [
    { name: "the id as a string", id: (own) => String(own), kind: "unknown-id" },
    { name: "an id that was never used", id: () => 999_999, kind: "unknown-id" },
    { name: "a fraction near the id", id: (own) => own + 0.5, kind: "unknown-id" },
  ];
  for (const { name, id, kind } of strangers) {
    it(`REQ-02 B139 B142: ${name} resolves nothing and is an anomaly`, async () => {
      const { send, receive, anomalies } = fixture();
      const call = send("a");
      await turn();
      receive({ id: id(call.id), result: { wrong: true } });
      expect(anomalies).toEqual([{ kind, detail: { id: id(call.id), kind: "result" } }]);
      receive({ id: call.id, result: { right: true } });
      expect(await call.result).toEqual({ right: true });
    });
  }

  it("REQ-02 B073: late and duplicate answers are anomalies and harm no one", async () => {
    const { send, receive, anomalies } = fixture();
    const [cancelled, answered, other] = [send("a"), send("b"), send("c")];
    await turn();
    cancelled.handle.cancel("enough");
    receive({ id: cancelled.id, error: { code: 0, message: "too late" } });
    receive({ id: answered.id, result: {} });
    receive({ id: answered.id, result: { again: true } });
    expect(anomalies.map(({ kind }) => kind)).toEqual(["late-response", "late-response"]);
    expect(cancelled.ends).toHaveLength(0);
    expect(answered.ends).toHaveLength(1);
    receive({ id: other.id, result: { fine: true } });
    expect(await other.result).toEqual({ fine: true });
  });

  it("REQ-02: an error without an id is an anomaly that tells its code", async () => {
    const { send, receive, anomalies } = fixture();
    const call = send("a");
    await turn();
    receive({ id: null, error: { code: -32700, message: "could not read that" } });
    expect(anomalies).toEqual([{ kind: "unknown-id", detail: { id: null, kind: "error", rpcCode: -32700 } }]);
    expect(call.ends).toHaveLength(0);
  });

  it("REQ-02: an answer to a request that was not written yet answers nothing", async () => {
    const { send, receive, anomalies, port } = fixture();
    port.buffered = Number.POSITIVE_INFINITY;
    const call = send("a");
    await turn();
    receive({ id: call.id, result: {} });
    expect(call.ends).toHaveLength(0);
    expect(anomalies.map(({ kind }) => kind)).toEqual(["unknown-id"]);
  });

  it("REQ-04 B146: a peer's request is reported, not answered, and resolves nothing, whatever its id", async () => {
    const { send, receive, anomalies, port } = fixture();
    const call = send("a");
    await turn();
    receive({ id: call.id, method: "ping" });
    receive({ id: call.id, method: "sampling/createMessage", params: { messages: [] } });
    await turn();
    expect(call.ends).toHaveLength(0);
    expect(port.frames).toHaveLength(1);
    expect(anomalies).toEqual([
      { kind: "peer-request", detail: { id: call.id, method: "ping" } },
      { kind: "peer-request", detail: { id: call.id, method: "sampling/createMessage" } },
    ]);
    receive({ id: call.id, result: { own: true } });
    expect(await call.result).toEqual({ own: true });
  });
});

describe("malformed frames", () => {
  const malformed: { name: string; frame: (id: number) => object; fault: RegExp }[] = [
    { name: "jsonrpc 1.0", frame: (id) => ({ jsonrpc: "1.0", id, result: {} }), fault: /"jsonrpc"/ },
    { name: "both result and error", frame: (id) => ({ id, result: {}, error: {} }), fault: /both/ },
    { name: "neither", frame: (id) => ({ id }), fault: /neither/ },
    { name: "error as a string", frame: (id) => ({ id, error: "no" }), fault: /"error"/ },
    { name: "a fraction as code", frame: (id) => ({ id, error: { code: 1.5, message: "" } }), fault: /code/ },
    { name: "result as an array", frame: (id) => ({ id, result: [] }), fault: /"result"/ },
  ];
  for (const { name, frame, fault } of malformed) {
    it(`REQ-03 B145: ${name} ends the exchange it answers at once, and no other`, async () => {
      const { send, receive, anomalies } = fixture();
      const [call, other] = [send("a"), send("b")];
      await turn();
      receive(frame(call.id));
      const { error, delivery } = await call.failure;
      expect(error).toBeInstanceOf(FrameError);
      expect(error.message).toMatch(fault);
      expect([delivery, error.delivery]).toEqual(["unknown", "unknown"]);
      expect(other.ends).toHaveLength(0);
      expect(anomalies).toEqual([]);
    });
  }

  it("STD-01 B122: noise is told, shows no more than its beginning, and the next frame is read", async () => {
    const { send, receive, channel, anomalies } = fixture();
    const call = send("a");
    await turn();
    for (const noise of [
      "Starting…",
      "\u001b[31mred\u001b[0m",
      "123",
      '"x"',
      "[]",
      "null",
      "y".repeat(5000),
    ]) {
      channel.receive(noise);
    }
    channel.receive('{"jsonrpc":"2.0","id":');
    receive({ id: call.id, result: {} });
    expect(await call.result).toEqual({});
    expect(anomalies.map(({ kind }) => kind)).toEqual(Array(8).fill("bad-frame"));
    expect(anomalies[0]!.detail).toMatchObject({ excerpt: "Starting…", count: 1 });
    expect(anomalies[1]!.detail.excerpt).toBe("[31mred [0m");
    expect(anomalies[6]!.detail).toMatchObject({ excerpt: `${"y".repeat(120)}…`, chars: 5000 });
    // What begins like a message may hold what a message holds.
    expect(anomalies[7]!.detail.excerpt).toBeUndefined();
  });

  it("STD-01 B124: a thousand noise lines give a bounded number of anomalies", () => {
    const { channel, anomalies } = fixture();
    for (let index = 0; index < 1000; index++) channel.receive("noise");
    expect(anomalies.length).toBeLessThan(25);
    expect(anomalies.at(-1)!.detail.count).toBe(512);
  });
});

describe("notifications", () => {
  it("PRG-01: progress reaches the exchange whose wire id is the token", async () => {
    const { send, receive, anomalies } = fixture();
    const [first, second] = [send("a"), send("b")];
    await turn();
    receive({ method: "notifications/progress", params: { progressToken: second.id, progress: 1 } });
    expect([first.notifications.length, second.notifications.length]).toEqual([0, 1]);
    expect(second.notifications[0]!.params).toEqual({ progressToken: second.id, progress: 1 });
    expect(anomalies).toEqual([]);
  });

  it("PRG-01: progress with an unknown token, a string token, none, or after the end, is an anomaly", async () => {
    const { send, receive, anomalies } = fixture();
    const call = send("a");
    await turn();
    const progress = (progressToken?: unknown) =>
      receive({ method: "notifications/progress", params: { progressToken, progress: 1 } });
    progress(999_999);
    progress(String(call.id));
    progress();
    receive({ id: call.id, result: {} });
    progress(call.id);
    expect(call.notifications).toEqual([]);
    expect(anomalies.map(({ kind }) => kind)).toEqual(Array(4).fill("unknown-token"));
  });

  it("SUB-01: what carries a subscription id reaches its listen exchange; several share the channel", async () => {
    const { send, receive, notifications, anomalies } = fixture();
    const [first, second] = [send("subscriptions/listen"), send("subscriptions/listen")];
    await turn();
    const changed = (subscriptionId: unknown) =>
      receive({
        method: "notifications/tools/list_changed",
        params: { _meta: { "io.modelcontextprotocol/subscriptionId": subscriptionId } },
      });
    changed(second.id);
    changed(first.id);
    changed(second.id);
    changed(String(first.id));
    expect([first.notifications.length, second.notifications.length]).toEqual([1, 2]);
    expect(notifications).toEqual([]);
    expect(anomalies.map(({ kind }) => kind)).toEqual(["unknown-token"]);
  });

  it("SUB-01: a server's cancel of a listen exchange is handed to it, and its result may still follow", async () => {
    const { send, receive, anomalies } = fixture();
    const listen = send("subscriptions/listen");
    await turn();
    receive({ method: "notifications/cancelled", params: { requestId: listen.id } });
    expect(listen.notifications.map(({ method }) => method)).toEqual(["notifications/cancelled"]);
    receive({ id: listen.id, result: { resultType: "complete" } });
    expect(await listen.result).toEqual({ resultType: "complete" });
    expect(anomalies).toEqual([]);
  });

  it("CAN-02 B076: a server's cancel of anything else is an anomaly and changes nothing", async () => {
    const { send, receive, anomalies } = fixture();
    const call = send("tools/call");
    await turn();
    receive({ method: "notifications/cancelled", params: { requestId: call.id } });
    receive({ method: "notifications/cancelled", params: { requestId: 999_999 } });
    receive({ method: "notifications/cancelled" });
    expect(anomalies.map(({ kind }) => kind)).toEqual(Array(3).fill("unexpected-cancel"));
    expect([call.notifications, call.ends]).toEqual([[], []]);
    receive({ id: call.id, result: {} });
    expect(await call.result).toEqual({});
  });

  it("LOG-01: what names no exchange goes to the host", async () => {
    const { send, receive, notifications } = fixture();
    const call = send("a");
    await turn();
    receive({ method: "notifications/message", params: { level: "info", data: "hello" } });
    expect(notifications).toEqual([
      { kind: "notification", method: "notifications/message", params: { level: "info", data: "hello" } },
    ]);
    expect(call.notifications).toEqual([]);
  });
});

describe("cancelling", () => {
  it("CAN-02 B074: a written request is cancelled with exactly one notification, which names it", async () => {
    const { send, port } = fixture();
    const [call, other] = [send("a"), send("b")];
    await turn();
    call.handle.cancel('the user said "stop"');
    call.handle.cancel("again");
    await turn();
    expect(port.frames.slice(2)).toEqual([
      {
        jsonrpc: "2.0",
        method: "notifications/cancelled",
        params: { requestId: call.id, reason: 'the user said "stop"' },
      },
    ]);
    expect([call.ends, other.ends]).toEqual([[], []]);
  });

  const unsent: { name: string; up: boolean; buffered: number }[] = [
    { name: "in the turn it was made", up: true, buffered: 0 },
    { name: "while the link comes up", up: false, buffered: 0 },
    { name: "while the peer does not read", up: true, buffered: Number.POSITIVE_INFINITY },
  ];
  for (const { name, up, buffered } of unsent) {
    it(`CAN-02 B074 B136: a request cancelled ${name} is never written, nor is its cancel`, async () => {
      const { send, port, channel } = fixture({ up });
      port.buffered = buffered;
      const [call, other] = [send("a"), send("b")];
      if (buffered > 0) await turn();
      call.handle.cancel("enough");
      port.buffered = 0;
      if (up) channel.drained();
      else channel.up(port);
      await turn();
      expect(port.frames.map((frame) => [frame.method, frame.id])).toEqual([["b", other.id]]);
      expect(call.ends).toEqual([]);
    });
  }

  it("CAN-02 B074: after a response, and with silent, no notification is written", async () => {
    const { send, receive, port, anomalies } = fixture();
    const [answered, silent] = [send("a"), send("b")];
    await turn();
    receive({ id: answered.id, result: {} });
    answered.handle.cancel("too late");
    silent.handle.cancel("given up", { silent: true });
    receive({ id: silent.id, result: {} });
    await turn();
    expect(port.frames).toHaveLength(2);
    expect(silent.ends).toEqual([]);
    expect(anomalies.map(({ kind }) => kind)).toEqual(["late-response"]);
  });

  it("CAN-02: a cancel from inside the exchange's own notification silences it at once", async () => {
    const { channel, receive, port } = fixture();
    const calls: string[] = [];
    const frame = request("a");
    const handle = channel.exchange(frame, {
      notification: () => {
        calls.push("notification");
        handle.cancel("enough");
      },
      response: () => calls.push("response"),
      failure: () => calls.push("failure"),
    });
    await turn();
    receive({ method: "notifications/progress", params: { progressToken: frame.id, progress: 1 } });
    receive({ method: "notifications/progress", params: { progressToken: frame.id, progress: 2 } });
    receive({ id: frame.id, result: {} });
    await turn();
    expect(calls).toEqual(["notification"]);
    expect(port.frames.map(({ method }) => method)).toEqual(["a", "notifications/cancelled"]);
  });
});

describe("sending", () => {
  it("STD-02: frames wait for a link, are written in order, and one flush follows those of a turn", async () => {
    const { send, port, channel } = fixture({ up: false });
    for (const method of ["a", "b", "c"]) send(method);
    await turn();
    expect(port.frames).toEqual([]);
    channel.up(port);
    await turn();
    expect(port.frames.map(({ method }) => method)).toEqual(["a", "b", "c"]);
    expect(port.flushes).toBe(1);
  });

  it("B131: a port that throws fails that exchange as not sent, and the wire id is free again", async () => {
    const { send, port } = fixture();
    port.broken = true;
    const call = send("a");
    const { error, delivery } = await call.failure;
    expect(error).toBeInstanceOf(ConnectionLostError);
    expect([delivery, error.delivery]).toEqual(["not-sent", "not-sent"]);
    port.broken = false;
    send("a", {}, { id: call.id });
    await turn();
    expect(port.frames.map(({ id }) => id)).toEqual([call.id]);
  });

  it("WS-02 B136: what waits is bounded, and what no longer waits makes room", async () => {
    const { send, port } = fixture({ outboundBytes: 300 });
    port.buffered = Number.POSITIVE_INFINITY;
    const big = send("a", { text: "x".repeat(1000) });
    const refused = send("b");
    const { error, delivery } = await refused.failure;
    expect(error).toBeInstanceOf(LimitError);
    expect(error).toMatchObject({ limit: "outboundBytes", allowed: 300, delivery: "not-sent" });
    expect(delivery).toBe("not-sent");
    big.handle.cancel("enough");
    const next = send("c");
    await turn();
    expect(next.ends).toEqual([]);
  });

  it("REQ-02: a second exchange with a wire id that is in use is refused, and the first goes on", async () => {
    const { send, receive } = fixture();
    const first = send("a");
    const second = send("b", {}, { id: first.id });
    expect((await second.failure).delivery).toBe("not-sent");
    receive({ id: first.id, result: { first: true } });
    expect(await first.result).toEqual({ first: true });
  });

  it("CAN-03: a refused exchange that is cancelled in the same turn stays silent", async () => {
    const { send } = fixture();
    const first = send("a");
    const second = send("b", {}, { id: first.id });
    second.handle.cancel("never mind");
    await turn();
    expect(second.ends).toEqual([]);
  });
});

describe("loss", () => {
  const lost = (delivery: "not-sent" | "rejected" | "unknown") => ({
    delivery,
    error: new ConnectionLostError("gone", delivery),
  });

  it("STD-02: written requests fail as unknown, queued ones as not sent, each with an error of its own", async () => {
    const { send, port, channel } = fixture();
    const written = [send("a"), send("b")];
    await turn();
    port.buffered = Number.POSITIVE_INFINITY;
    const queued = send("c");
    await turn();
    channel.fail(channel.detach(), lost);
    const failures = await Promise.all([...written, queued].map((call) => call.failure));
    expect(failures.map(({ delivery }) => delivery)).toEqual(["unknown", "unknown", "not-sent"]);
    expect(new Set(failures.map(({ error }) => error)).size).toBe(3);
  });

  it("STD-02: what is started while the failures are told belongs to the next link", async () => {
    const { channel, port } = fixture();
    const ends: string[] = [];
    const sink = (name: string, failure: () => void): ExchangeSink => ({
      notification: () => {},
      response: () => ends.push(`${name} answered`),
      failure,
    });
    const again = request("again");
    channel.exchange(
      request("a"),
      sink("a", () =>
        channel.exchange(
          again,
          sink("again", () => ends.push("again failed")),
        ),
      ),
    );
    await turn();
    channel.fail(channel.detach(), lost);
    channel.up(port);
    await turn();
    channel.receive(JSON.stringify({ jsonrpc: "2.0", id: again.id, result: {} }));
    expect(ends).toEqual(["again answered"]);
  });

  it("CAN-02: an exchange cancelled while its siblings are failed stays silent and sends nothing on the next link", async () => {
    const { send, channel } = fixture();
    const second: { cancel?: () => void } = {};
    channel.exchange(request("first"), {
      notification: () => {},
      response: () => {},
      failure: () => second.cancel!(),
    });
    const call = send("second");
    second.cancel = () => call.handle.cancel("sibling failed");
    await turn();
    const stranded = channel.detach();
    const next = new MemoryPort();
    channel.up(next);
    channel.fail(stranded, lost);
    await turn();
    expect(call.ends).toEqual([]);
    expect(next.frames).toEqual([]);
  });
});

describe("a host that throws", () => {
  const boom = () => {
    throw new Error("boom");
  };

  it("SAF-02: in any callback of a sink is an anomaly, and the channel goes on", async () => {
    const { channel, receive, anomalies, send } = fixture();
    const broken = [request("a"), request("b")];
    for (const frame of broken)
      channel.exchange(frame, { notification: boom, response: boom, failure: boom });
    const other = send("c");
    await turn();
    receive({ method: "notifications/progress", params: { progressToken: broken[0]!.id, progress: 1 } });
    receive({ id: broken[0]!.id, result: {} });
    receive({ id: broken[1]!.id });
    receive({ id: other.id, result: { fine: true } });
    expect(await other.result).toEqual({ fine: true });
    expect(anomalies.map(({ kind, detail }) => `${kind} ${detail.callback}`)).toEqual([
      "host-callback notification",
      "host-callback response",
      "host-callback failure",
    ]);
  });

  it("SAF-02: in the host's own callbacks harms nothing", async () => {
    const channel = new Channel({
      limits: { messageBytes: 1 },
      notification: boom,
      link: boom,
      anomaly: boom,
    });
    const recorder = record(channel);
    const port = new MemoryPort();
    channel.up(port);
    const call = recorder.send("a");
    await turn();
    channel.receive('{"jsonrpc":"2.0","method":"notifications/message"}');
    channel.receive("noise");
    channel.receive(JSON.stringify({ jsonrpc: "2.0", id: call.id, result: {} }));
    expect(await call.result).toEqual({});
  });
});
