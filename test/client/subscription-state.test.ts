import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  ClosedError,
  ConnectError,
  ConnectionLostError,
  FrameError,
  HttpStatusError,
  LegacyPeerError,
  LimitError,
  RpcError,
  type TransportError,
} from "../../src/errors.ts";
import { asksFor, readAcknowledgment, readFilter } from "../../src/subscription-filter.ts";
import { type SubscriptionItem, SubscriptionQueue } from "../../src/subscription-queue.ts";
import {
  DEFAULT_RELISTEN,
  lastingError,
  NEW_SUBSCRIPTION,
  type RelistenRules,
  type SubscriptionEvent,
  type SubscriptionState,
  stepSubscription,
} from "../../src/subscription-state.ts";

const error = new ConnectionLostError("gone", "unknown");
const acknowledged = (nowMs = 0): SubscriptionEvent => ({ type: "acknowledged", nowMs });
const lost = (nowMs = 0): SubscriptionEvent => ({ type: "lost", error, nowMs, random: 1 });
const timer: SubscriptionEvent = { type: "timer" };

function run(
  events: readonly SubscriptionEvent[],
  rules: Partial<RelistenRules> = {},
): { state: SubscriptionState; effects: string[] } {
  let state = NEW_SUBSCRIPTION;
  const effects: string[] = [];
  for (const event of events) {
    const step = stepSubscription(state, event, { ...DEFAULT_RELISTEN, ...rules });
    state = step.state;
    effects.push(...step.effects);
  }
  return { state, effects };
}

describe("the life of a subscription", () => {
  it("SUB-01: opening, open, lost, opening again", () => {
    const { state, effects } = run([acknowledged(5), lost(10), timer, acknowledged(20)]);
    expect(state).toMatchObject({ phase: { at: "open", sinceMs: 20 }, known: true, losses: 1 });
    expect(effects).toEqual(["pause", "listen"]);
  });

  it("SUB-01 B068: pauses grow to the bound, and a stream that stood begins them anew", () => {
    const pauses: number[] = [];
    let state = NEW_SUBSCRIPTION;
    let nowMs = 0;
    const step = (event: SubscriptionEvent) => {
      state = stepSubscription(state, event, { ...DEFAULT_RELISTEN, max: Number.POSITIVE_INFINITY }).state;
      if (state.phase.at === "lost") pauses.push(state.phase.delayMs);
    };
    for (const stoodMs of [50, 50, 50, 50, 50, 50, 50, 50, 9_999, 10_000, 50]) {
      step(acknowledged(nowMs));
      nowMs += stoodMs;
      step(lost(nowMs));
      step(timer);
    }
    expect(pauses).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000, 500, 1000]);
  });

  it("SUB-01: jitter takes a pause down by at most a half", () => {
    const { state } = run([{ type: "lost", error, nowMs: 0, random: 0 }]);
    expect(state.phase).toEqual({ at: "lost", delayMs: 250 });
  });

  it("SUB-01: it gives up after firstMax before the first acknowledgment, after max later", () => {
    const losses = (count: number) => Array.from({ length: count }, () => [lost(), timer]).flat();
    expect(run(losses(2)).state.phase.at).toBe("opening");
    expect(run(losses(3)).state.phase).toEqual({ at: "closed", end: { reason: "failed", error } });
    expect(run([acknowledged(), ...losses(20)]).state.phase.at).toBe("opening");
    expect(run([acknowledged(), ...losses(21)]).state.phase.at).toBe("closed");
    expect(run([acknowledged(), lost()], { max: 0 }).state.phase.at).toBe("closed");
    expect(run([lost()], { max: 0 }).state.phase.at).toBe("closed");
  });

  it("SUB-01 MRTR-19: each recovery is tried once for a listen request", () => {
    const recover = (recovery: "version" | "scope" | "unauthorized"): SubscriptionEvent => ({
      type: "recoverable",
      recovery,
      error,
    });
    expect(run([recover("version"), recover("unauthorized"), recover("scope")])).toMatchObject({
      state: { phase: { at: "opening" } },
      effects: ["listen", "listen", "listen"],
    });
    expect(run([recover("scope"), recover("scope")]).state.phase.at).toBe("closed");
    expect(run([recover("scope"), lost(), timer, recover("scope")]).state.phase.at).toBe("opening");
  });

  it("SUB-01: whatever happens, it ends once, and nothing is opened after the end", () => {
    const event: fc.Arbitrary<SubscriptionEvent> = fc.oneof(
      fc.nat(60_000).map(acknowledged),
      fc.nat(60_000).map(lost),
      fc.constant(timer),
      fc.constantFrom("version" as const, "unauthorized" as const, "scope" as const).map((recovery) => ({
        type: "recoverable" as const,
        recovery,
        error,
      })),
      fc.constant({ type: "end" as const, end: { reason: "graceful" as const } }),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        const { state, effects } = run(events, { max: 3 });
        const settled = effects.indexOf("settle");
        expect(effects.filter((effect) => effect === "settle")).toHaveLength(settled === -1 ? 0 : 1);
        if (settled !== -1) expect(effects.slice(settled)).toEqual(["settle"]);
        expect(state.phase.at === "closed").toBe(settled !== -1);
      }),
    );
  });
});

describe("losses and refusals", () => {
  const http = (status: number) => new HttpStatusError("no", "rejected", { status, headers: {}, body: "" });
  const cases: [string, TransportError, "lost" | "final", object?][] = [
    ["a broken stream", new ConnectionLostError("gone", "unknown"), "lost"],
    ["a refused connection", new ConnectError("refused"), "lost"],
    ["HTTP 500", new HttpStatusError("no", "unknown", { status: 500, headers: {}, body: "" }), "lost"],
    ["HTTP 503", http(503), "lost"],
    ["HTTP 429", http(429), "lost"],
    ["HTTP 408", http(408), "lost"],
    ["HTTP 404", http(404), "final"],
    ["HTTP 401", http(401), "final"],
    ["HTTP 307", http(307), "final"],
    ["HTTP 404 with Retry-After", http(404), "lost", { retryAfterMs: 10 }],
    ["a refused upgrade", new ConnectError("no", { status: 403 }), "final"],
    ["an upgrade refused for now", new ConnectError("no", { status: 503 }), "lost"],
    ["an old server", new ConnectError("old", { cause: new LegacyPeerError("old") }), "final"],
    ["a wrong probe", new ConnectError("no", { cause: new RpcError("no", -32021) }), "final"],
    ["a lost probe", new ConnectError("no", { cause: new ConnectError("refused") }), "lost"],
    ["a token function that threw", new ConnectError("no", { cause: new Error("offline") }), "lost"],
    ["a policy close", new ConnectionLostError("no", "unknown", { closeCode: 1008 }), "final"],
    ["a going away close", new ConnectionLostError("no", "unknown", { closeCode: 1001 }), "lost"],
    ["no frame", new FrameError("no"), "final"],
    ["too large an answer", new LimitError("no", "messageBytes", 1), "final"],
    ["a full outbox", new LimitError("no", "outboundBytes", 1, "not-sent"), "lost"],
    ["a closed transport", new ClosedError("closed"), "final"],
  ];
  it.each(cases)("SUB-01: %s", (_title, failure, expected, extras = {}) => {
    const verdict = lastingError({ delivery: failure.delivery, error: failure, ...extras }, false);
    expect(verdict === undefined ? "lost" : "final").toBe(expected);
  });

  it("SUB-01: a stream that stood and then brought garbage is lost", () => {
    expect(lastingError({ delivery: "unknown", error: new FrameError("no") }, true)).toBeUndefined();
  });

  it("SUB-01: what was wrapped on the way is given as it was", () => {
    const cause = new LegacyPeerError("old");
    const wrapped = new ConnectError("old", { cause });
    expect(lastingError({ delivery: "not-sent", error: wrapped }, false)).toBe(cause);
  });
});

describe("filters", () => {
  it("SUB-01: a copy is taken, without what asks for nothing", () => {
    const uris = ["note://1"];
    const filter = readFilter(
      { toolsListChanged: true, promptsListChanged: false, resourceSubscriptions: uris },
      false,
    );
    uris.push("note://2");
    expect(filter).toEqual({ toolsListChanged: true, resourceSubscriptions: ["note://1"] });
    expect(asksFor(filter, "notifications/tools/list_changed")).toBe(true);
    expect(asksFor(filter, "notifications/resources/updated")).toBe(true);
    expect(asksFor(filter, "notifications/prompts/list_changed")).toBe(false);
  });

  const asked = { toolsListChanged: true, promptsListChanged: true, resourceSubscriptions: ["a:1", "a:2"] };
  const acknowledgments: [string, unknown, object, string[]][] = [
    ["all of it", asked, asked, []],
    ["nothing", {}, {}, ["toolsListChanged", "promptsListChanged", "a:1", "a:2"]],
    [
      "a part, and more than was asked",
      { toolsListChanged: true, resourcesListChanged: true, resourceSubscriptions: ["a:2", "a:3"] },
      { toolsListChanged: true, resourceSubscriptions: ["a:2"] },
      ["promptsListChanged", "a:1"],
    ],
    [
      "the wrong types",
      { toolsListChanged: "yes", promptsListChanged: false, resourceSubscriptions: true },
      {},
      ["toolsListChanged", "promptsListChanged", "a:1", "a:2"],
    ],
    ["no object", null, {}, ["toolsListChanged", "promptsListChanged", "a:1", "a:2"]],
  ];
  it.each(acknowledgments)(
    "SUB-01 B065: an acknowledgment of %s",
    (_title, notifications, filter, refused) => {
      expect(readAcknowledgment(asked, { notifications })).toEqual({ filter, refused });
    },
  );
});

describe("the queue", () => {
  const item = (n: number): SubscriptionItem => ({ type: "extension", method: `m${n}`, params: undefined });

  it("SUB-01: however much comes, little waits, in order, with a gap wherever something was dropped", async () => {
    const action = fc.oneof(
      { weight: 5, arbitrary: fc.constant("push") },
      { weight: 2, arbitrary: fc.constant("take") },
      { weight: 1, arbitrary: fc.constant("gap") },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { maxLength: 80 }),
        fc.integer({ min: 1, max: 5 }),
        async (actions, size) => {
          const queue = new SubscriptionQueue(size, () => {});
          const read: SubscriptionItem[] = [];
          let pushed = 0;
          let waiting = 0;
          for (const each of actions) {
            if (each === "push") queue.push(item(++pushed));
            else if (each === "gap") queue.push({ type: "gap", reason: "relistened" });
            else if (waiting > 0 || pushed > read.length) {
              const before = read.length;
              queue.push({ type: "gap", reason: "relistened" });
              const { value } = await queue.next();
              if (value !== undefined) read.push(value);
              waiting = read.length - before;
            }
          }
          queue.end({ drop: false });
          const left: SubscriptionItem[] = [];
          for await (const each of queue) left.push(each);
          expect(left.length).toBeLessThanOrEqual(2 * size + 2);
          let last = 0;
          let gap = false;
          for (const each of [...read, ...left]) {
            if (each.type === "gap") {
              gap = true;
              continue;
            }
            const n = Number((each as { method: string }).method.slice(1));
            expect(n).toBeGreaterThan(last);
            if (n > last + 1) expect(gap).toBe(true);
            last = n;
            gap = false;
          }
          if (last < pushed) expect(gap).toBe(true);
        },
      ),
    );
  });

  it("SUB-01: a reader that waits is given what comes at once, and the end", async () => {
    const queue = new SubscriptionQueue(1, () => {});
    const reads = [queue.next(), queue.next(), queue.next()];
    queue.push(item(1));
    queue.push(item(2));
    queue.end({ drop: false });
    queue.push(item(3));
    expect((await Promise.all(reads)).map(({ value }) => value?.type)).toEqual([
      "extension",
      "extension",
      undefined,
    ]);
  });
});
