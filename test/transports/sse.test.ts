import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SseReader } from "../../transports/sse.ts";

const LIMIT = 1024 * 1024;

/** Reads a stream given in chunks; the fault is the last element, as `!fault`, if there was one. */
function read(chunks: readonly Uint8Array[], limit = LIMIT, end = true): string[] {
  const messages: string[] = [];
  const reader = new SseReader(limit, (data) => messages.push(data));
  for (const chunk of chunks) {
    const fault = reader.push(chunk);
    if (fault !== undefined) return [...messages, `!${fault}`];
  }
  const fault = end ? reader.end() : undefined;
  return fault === undefined ? messages : [...messages, `!${fault}`];
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** The bytes cut into pieces of the given sizes, the last piece being what is left. */
function cut(all: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let at = 0;
  for (const size of sizes) {
    pieces.push(all.subarray(at, at + size));
    at += size;
  }
  pieces.push(all.subarray(at));
  return pieces;
}

describe("events", () => {
  it.each([
    ["LF", "data: x\n\n", ["x"]],
    ["CRLF", "data: x\r\n\r\n", ["x"]],
    ["CR", "data: x\r\r", ["x"]],
    ["B109: CRLF, then LF", "data: x\r\n\n", ["x"]],
    ["LF, then CR", "data: x\n\r", ["x"]],
    ["no space after the colon", "data:x\n\n", ["x"]],
    ["one space is taken, a second is data", "data:  x\n\n", [" x"]],
    ["several lines of data", "data: {\ndata: }\n\n", ["{\n}"]],
    ["comments", ": ping\n\n:\r\ndata: x\n: in between\n\n", ["x"]],
    ["a byte order mark", "\uFEFFdata: x\n\n", ["x"]],
    ["a byte order mark inside data is data", "data: \uFEFFx\n\n", ["\uFEFFx"]],
    ["the type message", "event: message\ndata: x\n\n", ["x"]],
    ["B094: empty data with id and retry", "id: 0\nretry: 1000\ndata: \n\ndata: x\n\n", ["x"]],
    ["B094: another type", "event: ping\ndata: {}\n\ndata: x\n\n", ["x"]],
    ["a type counts for its own event only", "event: ping\n\ndata: x\n\n", ["x"]],
    ["a field without a colon", "data\ndata: x\n\n", ["\nx"]],
    ["unknown fields", "foo: bar\ndata: x\n\n", ["x"]],
    ["two events", "data: x\n\ndata: y\n\n", ["x", "y"]],
    ["blank lines alone", "\n\n\r\n\r\r\n", []],
    ["nothing", "", []],
  ])("HTTP-01: %s", (_what, stream, expected) => {
    expect(read([bytes(stream)])).toEqual(expected);
  });

  it("HTTP-01 B107: every way to cut a stream in two or byte by byte gives the same events", () => {
    const stream = bytes(
      '\uFEFFevent: message\r\ndata: {"text":\r\ndata: "é世🎾"}\r\n\r\n: ping\r\rdata: two\n\ndata: three\r\n\n',
    );
    const expected = ['{"text":\n"é世🎾"}', "two", "three"];
    for (let at = 0; at <= stream.length; at++)
      expect(read(cut(stream, [at]), LIMIT, false)).toEqual(expected);
    expect(
      read(
        Array.from(stream, (byte) => Uint8Array.of(byte)),
        LIMIT,
        false,
      ),
    ).toEqual(expected);
  });

  it("HTTP-01 B107: any chunking of any data with any line break gives the data back", () => {
    const data = fc.array(
      fc.string({ unit: "grapheme" }).map((text) => text.replace(/[\r\n]/g, " ")),
      { minLength: 1, maxLength: 4 },
    );
    const breaks = fc.constantFrom("\n", "\r", "\r\n");
    const sizes = fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 60 });
    fc.assert(
      fc.property(fc.array(fc.tuple(data, breaks), { maxLength: 5 }), sizes, (events, pieces) => {
        const stream = events
          .map(([lines, eol]) => lines.map((line) => `data: ${line}${eol}`).join("") + eol)
          .join("");
        const expected = events.map(([lines]) => lines.join("\n")).filter((text) => text !== "");
        expect(read(cut(bytes(stream), pieces), LIMIT, false)).toEqual(expected);
      }),
      { numRuns: 300 },
    );
  });

  it("HTTP-01: an event that ends with CR alone is there at once, without waiting for an LF", () => {
    expect(read([bytes("data: x\r"), bytes("\r")], LIMIT, false)).toEqual(["x"]);
  });

  it.each([
    ["one line break, then the end", ["data: x\n"], ["x"]],
    ["no line break, then the end", ["data: ", "x"], ["x"]],
    ["a character cut in the middle", ["data: x\n", "data: \xc3"], ["x\n"]],
    ["the end after a whole event", ["data: x\n\n"], ["x"]],
  ])("B088: an event without its blank line is given at the end: %s", (_what, chunks, expected) => {
    const stream = chunks.map((chunk) => Uint8Array.from(chunk, (char) => char.charCodeAt(0)));
    expect(read(stream, LIMIT, false).length).toBeLessThan(2);
    expect(read(stream)).toEqual(expected);
  });
});

describe("bounds", () => {
  it.each([
    ["a lone continuation byte", [0x80]],
    ["an overlong form", [0xc0, 0xaf]],
    ["a surrogate", [0xed, 0xa0, 0x80]],
    ["a character cut short by a line break", [0xe4, 0xb8, 0x0a]],
  ])("HTTP-01: bytes that are not UTF-8 are a fault: %s", (_what, wrong) => {
    const stream = Uint8Array.from([...bytes("data: "), ...wrong, ...bytes("\n\n")]);
    expect(read([stream])).toEqual(["!not-utf8"]);
    expect(read(Array.from(stream, (byte) => Uint8Array.of(byte)))).toEqual(["!not-utf8"]);
  });

  it.each([
    ["at the bound", "x".repeat(100), true],
    ["one above it", "x".repeat(101), false],
    ["at the bound in bytes", "é".repeat(50), true],
    ["above it in bytes, not in characters", "é".repeat(51), false],
  ])("LIM-01: the data of an event is counted in bytes: %s", (_what, data, fits) => {
    const stream = bytes(`data: ${data}\n\n`);
    for (const chunks of [
      [stream],
      cut(stream, [20, 20, 20]),
      Array.from(stream, (byte) => Uint8Array.of(byte)),
    ]) {
      expect(read(chunks, 100)).toEqual(fits ? [data] : ["!too-large"]);
    }
  });

  it("LIM-01: the bound is on an event, not on the stream", () => {
    const reader = new SseReader(100, () => {});
    for (let count = 0; count < 1000; count++)
      expect(reader.push(bytes(`data: ${"x".repeat(90)}\n\n`))).toBeUndefined();
  });

  it.each([
    ["one endless line of data", "x"],
    ["endless lines of data", "data: xxxxxxxxxxxxxxxxxxxxxxxx\n"],
    ["an endless comment", ":"],
  ])("LIM-01 B110: is stopped at the bound: %s", (_what, piece) => {
    const reader = new SseReader(10_000, () => {});
    const chunk = bytes(piece.repeat(Math.ceil(2048 / piece.length)));
    let pushed = 0;
    reader.push(bytes(piece === ":" ? ":" : "data: "));
    while (reader.push(chunk) === undefined) {
      pushed += chunk.length;
      expect(pushed).toBeLessThan(40_000);
    }
    expect(reader.push(bytes("\n\ndata: x\n\n"))).toBe("too-large");
  });

  it("B110: reading one long line is linear in its length", () => {
    const time = (mebibytes: number) => {
      const chunk = bytes("x".repeat(2048));
      let length = 0;
      const reader = new SseReader(64 * LIMIT, (data) => {
        length = data.length;
      });
      const start = process.cpuUsage();
      reader.push(bytes("data: "));
      for (let count = 0; count < mebibytes * 512; count++) reader.push(chunk);
      reader.push(bytes("\n\n"));
      const { user, system } = process.cpuUsage(start);
      expect(length).toBe(mebibytes * LIMIT);
      return user + system;
    };
    time(4);
    // Quadratic reading would take 16 times as long for four times the bytes.
    expect(time(20)).toBeLessThan(Math.max(time(5), 2000) * 10);
  });

  it("LIM-01: a line that trickles in byte by byte does not cost more memory than its size", () => {
    const reader = new SseReader(64 * LIMIT, () => {});
    const one = Uint8Array.of(0x78);
    reader.push(bytes("data: "));
    const before = process.memoryUsage();
    for (let count = 0; count < LIMIT; count++) reader.push(one);
    const after = process.memoryUsage();
    const grown = after.heapUsed + after.external - before.heapUsed - before.external;
    expect(grown).toBeLessThan(12 * LIMIT);
  });
});
