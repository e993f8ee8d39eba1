import { readFile } from "node:fs/promises";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import * as entry from "../../src/index.ts";

const spent = { totalMs: 5, wireMs: 5, inputMs: 0, pauseMs: 0, silentMs: 5 };
const http = { status: 500, headers: {}, body: "" };

/** One of each, made the way the engine makes them. */
const ERRORS: readonly entry.RallyError[] = [
  new entry.RpcError("said no", -32603),
  new entry.CapabilityRequiredError("wants sampling", {}, { sampling: {} }),
  new entry.UnsupportedVersionError("no common version", ["2025-06-18"], ["2026-07-28"]),
  new entry.ConnectError("refused"),
  new entry.ConnectionLostError("reset", "unknown"),
  new entry.HttpStatusError("a 500", "unknown", http),
  new entry.FrameError("no frame"),
  new entry.LegacyPeerError("an old server"),
  new entry.ProtocolViolationError("an array", "result"),
  new entry.InputError("no handler", "key", "elicitation/create"),
  new entry.InputRepeatedError("asked again", ["key"], 2),
  new entry.RoundLimitError("asked on", 10, ["key"], {}),
  new entry.SuspendedError("left to the host", ["key"], {}),
  new entry.SchemaError("no schema", "inputSchema"),
  new entry.TimeoutError("late", "attempt", 5, spent),
  new entry.CancelledError("aborted"),
  new entry.LimitError("too large", "messageBytes", 1),
  new entry.ClosedError("closed"),
  new entry.UsageError("no name"),
];

const bases = ["RallyError", "TransportError"];
const classes = Object.keys(entry).filter((name) => name.endsWith("Error"));

describe("the error classes", () => {
  it("are all in this table, but for the abstract ones", () => {
    expect([...ERRORS.map(({ name }) => name), ...bases].sort()).toEqual(classes.sort());
  });

  it("B184: have a name that does not hang on what a minifier calls the class", () => {
    for (const error of ERRORS) {
      const { constructor: kind, name, message } = error;
      const real = Object.getOwnPropertyDescriptor(kind, "name")!;
      Object.defineProperty(kind, "name", { value: "a", configurable: true });
      try {
        const another = Reflect.construct(kind as never, [message, [], [], {}]) as Error;
        expect(another.name).toBe(name);
        expect(another.stack).toMatch(new RegExp(`^${name}: `));
      } finally {
        Object.defineProperty(kind, "name", real);
      }
    }
  });

  it("are told by instanceof as their kind, and as nothing else", () => {
    for (const error of ERRORS) {
      const kinds = classes.filter((name) => error instanceof (entry as never)[name]);
      const chain: string[] = [];
      for (
        let each = Object.getPrototypeOf(error);
        each !== Error.prototype;
        each = Object.getPrototypeOf(each)
      ) {
        if (classes.includes(each.constructor.name)) chain.push(each.constructor.name);
      }
      expect(kinds.sort()).toEqual(chain.sort());
      expect(entry.RallyError.is(error)).toBe(true);
      expect(error).toBeInstanceOf(Error);
    }
    for (const other of [
      undefined,
      null,
      "usage",
      {},
      new Error("x"),
      { code: "usage", name: "UsageError" },
    ]) {
      expect(classes.filter((name) => (other as object) instanceof (entry as never)[name])).toEqual([]);
      expect(entry.RallyError.is(other)).toBe(false);
    }
  });

  it("can be extended by a host, whose class is told from its parent's", () => {
    class OwnError extends entry.UsageError {}
    const own = new OwnError("mine");
    expect(own instanceof OwnError && own instanceof entry.UsageError && entry.RallyError.is(own)).toBe(true);
    expect(new entry.UsageError("theirs") instanceof OwnError).toBe(false);
  });

  it("have the codes that README gives them", async () => {
    const readme = await readFile(new URL("../../README.md", import.meta.url), "utf8");
    const rows = [...readme.matchAll(/^\| `([a-z-]+)` +\| `(\w+Error)` +\|/gm)];
    const documented = rows.map(([, code, name]) => [name, code]);
    expect(documented.sort()).toEqual(ERRORS.map(({ name, code }) => [name, code]).sort());
  });

  it("do not print a continuation or a result, and print their name once", () => {
    const secret = { requestState: "s3cret" };
    const holders = [
      new entry.RoundLimitError("asked on", 10, [], secret),
      new entry.SuspendedError("left to the host", [], secret),
      new entry.SchemaError("does not fit", "output", { result: secret }),
    ];
    for (const error of holders) {
      const printed = inspect(error, { depth: 9, showHidden: true }) + JSON.stringify(error);
      expect(printed).not.toContain("s3cret");
      expect(inspect(error).split("\n")[0]).toBe(`${error.name}: ${error.message}`);
    }
  });
});
