import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LineReader } from "../../transports/lines.ts";
import { collectGarbage } from "../support/collector.ts";

interface Read {
  readonly lines: string[];
  readonly faults: string[];
  readonly limits: string[];
}

function reader(messageBytes = 1024): { reader: LineReader; read: Read } {
  const read: Read = { lines: [], faults: [], limits: [] };
  const lineReader = new LineReader({
    messageBytes,
    onLine: (text) => read.lines.push(text),
    onBadLine: (fault, bytes) => read.faults.push(`${fault}: ${bytes}`),
    onOversize: (error) => read.limits.push(`${error.limit} ${error.allowed}`),
  });
  return { reader: lineReader, read };
}

function readAll(chunks: readonly Uint8Array[], messageBytes?: number): Read {
  const { reader: lineReader, read } = reader(messageBytes);
  for (const chunk of chunks) lineReader.push(chunk);
  return read;
}

describe("cutting bytes into lines", () => {
  const cases: { name: string; bytes: string | Uint8Array; lines: string[]; faults?: string[] }[] = [
    { name: "one line", bytes: "a\n", lines: ["a"] },
    { name: "three lines in one chunk", bytes: "a\nbb\nccc\n", lines: ["a", "bb", "ccc"] },
    { name: "CRLF endings", bytes: "a\r\nb\r\n", lines: ["a", "b"] },
    { name: "a CR that ends no line stays", bytes: "a\rb\n", lines: ["a\rb"] },
    { name: "blank lines are left out", bytes: "\n\r\n   \n\t\na\n\n", lines: ["a"] },
    { name: "characters of two, three and four bytes", bytes: "é€😀\nx\n", lines: ["é€😀", "x"] },
    { name: "line separators of JavaScript are no line ends", bytes: "a\u2028b\n", lines: ["a\u2028b"] },
    { name: "a byte order mark is not part of the line", bytes: "\ufeff{}\n", lines: ["{}"] },
    {
      name: "a line of spaces of any kind is blank, behind a byte order mark too",
      bytes: " \t\n\u00a0\n\u3000 \n\ufeff\n\ufeff \nx \n",
      lines: ["x "],
    },
    {
      name: "a line that is not UTF-8 is told, and the next one is read",
      bytes: Buffer.from([0x61, 0x0a, 0xff, 0xfe, 0x0a, 0xc3, 0xa9, 0x0a]),
      lines: ["a", "é"],
      faults: ["the line is not UTF-8: 2"],
    },
  ];
  for (const { name, bytes, lines, faults = [] } of cases) {
    it(`STD-01 B121: ${name}, whole, byte by byte, and in two parts cut anywhere`, () => {
      const all = Buffer.from(bytes as Uint8Array);
      const expected = { lines, faults, limits: [] };
      expect(readAll([all])).toEqual(expected);
      expect(readAll([...all].map((byte) => Buffer.of(byte)))).toEqual(expected);
      for (let cut = 0; cut <= all.length; cut++) {
        expect(readAll([all.subarray(0, cut), all.subarray(cut)]), `cut at ${cut}`).toEqual(expected);
      }
    });
  }

  it("STD-01 B121: any lines in any chunking give the same lines", () => {
    const line = fc.string({ unit: "grapheme", minLength: 1 }).filter((text) => !/[\r\n]/.test(text));
    fc.assert(
      fc.property(fc.array(line), fc.array(fc.nat({ max: 40 })), (lines, sizes) => {
        const all = Buffer.from(lines.map((text) => `${text}\n`).join(""));
        const chunks: Buffer[] = [];
        let at = 0;
        for (const size of sizes) {
          chunks.push(all.subarray(at, at + size));
          at += size;
        }
        chunks.push(all.subarray(at));
        const expected = lines
          .map((text) => (text.startsWith("\ufeff") ? text.slice(1) : text))
          .filter((text) => text.trim() !== "");
        expect(readAll(chunks)).toEqual({ lines: expected, faults: [], limits: [] });
      }),
    );
  });

  it("STD-01: large pieces and small pieces of one line keep their order", () => {
    const text = Array.from({ length: 60_000 }, (_, index) => `${index}é`).join(",");
    const all = Buffer.from(`${text}\n${text}\n`);
    const chunks: Buffer[] = [];
    for (let at = 0, step = 0; at < all.length; step++) {
      const size = [1, 4095, 4096, 3, 20_000, 17, 70_000][step % 7]!;
      chunks.push(all.subarray(at, at + size));
      at += size;
    }
    expect(readAll(chunks, all.length).lines).toEqual([text, text]);
  });

  it("STD-01: a long line that begins as ASCII and goes on otherwise, or is not UTF-8 at its end, is read right", () => {
    const start = "x".repeat(10_000);
    for (const more of ["é".repeat(5000), `${start}é`, "", "\r", `é${start}\r`]) {
      const all = Buffer.from(`${start}${more}\nnext\n`);
      for (const size of [1, 4097, 9999, 10_001]) {
        const chunks: Buffer[] = [];
        for (let at = 0; at < all.length; at += size) chunks.push(all.subarray(at, at + size));
        expect(readAll(chunks, 40_000).lines).toEqual([start + more.replace("\r", ""), "next"]);
      }
    }
    const broken = Buffer.concat([Buffer.from(start), Buffer.from([0xff]), Buffer.from("\nnext\n")]);
    const read = readAll([broken.subarray(0, 10_000), broken.subarray(10_000)], 40_000);
    expect(read).toEqual({ lines: ["next"], faults: ["the line is not UTF-8: 10001"], limits: [] });
  });

  it("STD-01: a last line without its newline is delivered at the end, and nothing after", () => {
    const { reader: lineReader, read } = reader();
    lineReader.push(Buffer.from('a\n{"b":'));
    lineReader.push(Buffer.from("1}"));
    lineReader.end();
    lineReader.push(Buffer.from("c\n"));
    expect(read.lines).toEqual(["a", '{"b":1}']);
  });

  it("STD-01: a reader that is stopped by its own callback delivers nothing more of the chunk", () => {
    const lines: string[] = [];
    const lineReader: LineReader = new LineReader({
      messageBytes: 100,
      onLine: (text) => {
        lines.push(text);
        lineReader.stop();
      },
      onBadLine: () => {},
      onOversize: () => {},
    });
    lineReader.push(Buffer.from("a\nb\nc"));
    expect(lines).toEqual(["a"]);
  });
});

describe("bounds", () => {
  it("LIM-01 B119: a line of exactly the limit passes, one byte more is a LimitError, in any chunking", () => {
    for (const ending of ["\n", "\r\n"]) {
      const fits = Buffer.from("x".repeat(10) + ending);
      const over = Buffer.from(`${"x".repeat(11)}${ending}y\n`);
      for (let cut = 0; cut <= fits.length; cut++) {
        expect(readAll([fits.subarray(0, cut), fits.subarray(cut)], 10).lines).toEqual(["x".repeat(10)]);
      }
      for (let cut = 0; cut <= over.length; cut++) {
        const read = readAll([over.subarray(0, cut), over.subarray(cut)], 10);
        expect(read).toEqual({ lines: [], faults: [], limits: ["messageBytes 10"] });
      }
    }
  });

  it("LIM-01 B119: bytes without a newline are given up at the limit, once", () => {
    const { reader: lineReader, read } = reader(1_000_000);
    const block = Buffer.alloc(65_536, 0x78);
    for (let index = 0; index < 100; index++) lineReader.push(block);
    expect(read).toEqual({ lines: [], faults: [], limits: ["messageBytes 1000000"] });
  });

  it("STD-01 B119: time grows with the bytes, not with their square, for one line in 1 KiB chunks", () => {
    const time = (mebibytes: number): number => {
      const chunk = Buffer.alloc(1024, 0x78);
      const { reader: lineReader, read } = reader(2 ** 30);
      const start = process.cpuUsage();
      for (let index = 0; index < mebibytes * 1024; index++) lineReader.push(chunk);
      lineReader.push(Buffer.from("\n"));
      const { user, system } = process.cpuUsage(start);
      expect(read.lines[0]?.length).toBe(mebibytes * 1024 * 1024);
      return user + system;
    };
    time(2);
    const small = Math.min(time(4), time(4), time(4));
    const large = Math.min(time(16), time(16));
    // Four times the bytes. A quadratic reader takes sixteen times as long; 8 leaves room for a busy machine.
    expect(large / small).toBeLessThan(8);
  });

  it("STD-01 B118: after a large line its buffer is let go of, though small remains are kept", async () => {
    const { reader: lineReader, read } = reader(2 ** 30);
    await collectGarbage();
    const before = process.memoryUsage().arrayBuffers;
    const held = () => process.memoryUsage().arrayBuffers - before;
    (() => {
      const large = Buffer.alloc(50 * 1024 * 1024, 0x78);
      large[large.length - 10] = 0x0a;
      lineReader.push(large.subarray(0, 1_000_000));
      lineReader.push(large.subarray(1_000_000));
    })();
    expect(read.lines[0]?.length).toBe(50 * 1024 * 1024 - 10);
    read.lines.length = 0;
    await collectGarbage(() => held() < 1024 * 1024);
    expect(held()).toBeLessThan(1024 * 1024);
    lineReader.push(Buffer.from("\n"));
    expect(read.lines).toEqual(["x".repeat(9)]);
  });
});
