import { createGzip, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { LimitError } from "../../src/errors.ts";
import { collectGarbage } from "../support/collector.ts";
import {
  answerEvents,
  answerJson,
  event,
  failureOf,
  responseOf,
  resultText,
  run,
  type Seen,
  setUp as setUpAt,
} from "./http-peer.ts";

const LIMIT = 100_000;
const MIB = 1024 * 1024;

function setUp(handler: (seen: Seen) => void, messageBytes = LIMIT) {
  return setUpAt(handler, {}, messageBytes);
}

/** A result whose frame has exactly this many bytes. */
function sized(id: number, bytes: number): string {
  const frame = resultText(id, { text: "" });
  return resultText(id, { text: "x".repeat(bytes - Buffer.byteLength(frame)) });
}

describe("LIM-01: messageBytes", () => {
  const answers: [string, (seen: Seen, text: string) => void][] = [
    ["JSON", (seen, text) => answerJson(seen, text)],
    [
      "JSON in many chunks",
      ({ res }, text) => {
        res.writeHead(200, { "content-type": "application/json" });
        for (let at = 0; at < text.length; at += 1000) res.write(text.slice(at, at + 1000));
        res.end();
      },
    ],
    [
      "gzip JSON",
      ({ res }, text) => {
        res.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
        res.end(gzipSync(text));
      },
    ],
    [
      "an event",
      (seen, text) => {
        answerEvents(seen).end(event(text));
      },
    ],
    [
      "a gzip event",
      ({ res }, text) => {
        res.writeHead(200, { "content-type": "text/event-stream", "content-encoding": "gzip" });
        res.end(gzipSync(event(text)));
      },
    ],
    ["a JSON error body", (seen, text) => answerJson(seen, text.replace('"result"', '"errors"'), 400)],
  ];

  it.each(answers)(
    "%s of exactly the limit is read, and one byte more is a LimitError",
    async (what, answer) => {
      const { transport } = await setUp((seen) =>
        answer(seen, sized(7, seen.frame.id === 7 ? LIMIT : LIMIT + 1)),
      );
      const fits = await run(transport, { id: 7 }).end;
      if (what.includes("error")) expect(fits).toMatchObject({ failure: { error: { code: "http-status" } } });
      else expect(fits).toMatchObject({ response: { kind: "result" } });

      const failure = await failureOf(run(transport, { id: 8 }));
      expect(failure.error).toBeInstanceOf(LimitError);
      expect(failure).toMatchObject({
        delivery: what.includes("error") ? "rejected" : "unknown",
        error: { code: "limit", limit: "messageBytes", allowed: LIMIT },
      });
      expect(failure.error.message).toContain("limits.messageBytes");
    },
  );

  it("an answer that announces more than the limit is not read at all", async () => {
    const { transport, peer } = await setUp(({ res }) => {
      res.writeHead(200, { "content-type": "application/json", "content-length": String(LIMIT + 1) });
      res.flushHeaders();
    });
    expect((await failureOf(run(transport))).error).toBeInstanceOf(LimitError);
    await peer.seen[0]!.closed;
  });

  it.each<[string, (seen: Seen) => void]>([
    [
      "JSON",
      ({ res }) => {
        res.writeHead(200, { "content-type": "application/json" });
        flood(res, '{"jsonrpc":"2.0","id":1,"result":{"a":"', "x".repeat(60_000));
      },
    ],
    ["one line of data", (seen) => flood(answerEvents(seen), "data: ", "x".repeat(60_000))],
    ["lines of data", (seen) => flood(answerEvents(seen), "", `data: ${"x".repeat(1000)}\n`.repeat(60))],
    [
      "an error body",
      ({ res }) => {
        res.writeHead(500, { "content-type": "application/json" });
        flood(res, '{"a":"', "x".repeat(60_000));
      },
    ],
    [
      "a gzip bomb",
      ({ res }) => {
        res.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
        const gzip = createGzip();
        gzip.pipe(res);
        flood(gzip, '{"a":"', "x".repeat(MIB));
      },
    ],
    [
      "a gzip bomb of events",
      ({ res }) => {
        res.writeHead(200, { "content-type": "text/event-stream", "content-encoding": "gzip" });
        const gzip = createGzip();
        gzip.pipe(res);
        flood(gzip, "data: ", "x".repeat(MIB));
      },
    ],
    [
      "a gzip bomb in an error body",
      ({ res }) => {
        res.writeHead(400, { "content-type": "application/json", "content-encoding": "gzip" });
        const gzip = createGzip();
        gzip.pipe(res);
        flood(gzip, '{"a":"', "x".repeat(MIB));
      },
    ],
  ])("%s that never ends is cut off at the limit", async (_what, handler) => {
    const { transport, peer } = await setUp(handler, 4 * MIB);
    const failure = await failureOf(run(transport));
    expect(failure.error).toBeInstanceOf(LimitError);
    await peer.seen[0]!.closed;
  });

  it("memory stays flat while bombs of 64 MiB each are refused", async () => {
    const bomb = gzipSync(Buffer.alloc(64 * MIB, 0x78));
    const { transport } = await setUp(({ res }) => {
      res.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
      res.end(bomb);
    }, MIB);
    const used = () => {
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    await collectGarbage();
    const before = used();
    for (let count = 0; count < 8; count++) {
      expect((await failureOf(run(transport))).error).toBeInstanceOf(LimitError);
      // What one bomb left for the collector is far from what it would have grown to; what is held is next to nothing.
      expect(used() - before).toBeLessThan(32 * MIB);
      await collectGarbage(() => used() - before < 4 * MIB);
      expect(used() - before).toBeLessThan(4 * MIB);
    }
  });

  it("what is larger than the limit in sum but not in one message is read", async () => {
    const { transport } = await setUp((seen) => {
      const res = answerEvents(seen);
      const note = event(
        `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"${"x".repeat(50_000)}"}}`,
      );
      for (let count = 0; count < 10; count++) res.write(note);
      res.end(event(resultText(seen.frame.id)));
    });
    const running = run(transport);
    await responseOf(running);
    expect(running.notifications).toHaveLength(10);
  });
});

/** Writes for as long as the other side takes it. */
function flood(stream: NodeJS.WritableStream, start: string, piece: string): void {
  let open = true;
  stream.on("close", () => {
    open = false;
  });
  stream.on("error", () => {
    open = false;
  });
  const more = () => {
    while (open && stream.write(piece)) {}
    if (open) stream.once("drain", more);
  };
  stream.write(start);
  more();
}
