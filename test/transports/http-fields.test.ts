import { describe, expect, it } from "vitest";
import { readChallenge } from "../../transports/auth-challenge.ts";
import { ByteCollector } from "../../transports/bytes.ts";
import { encodeHeaderValue, mediaType } from "../../transports/http-headers.ts";
import { judgeRedirect } from "../../transports/http-redirect.ts";
import { retryAfterMs } from "../../transports/retry-after.ts";

describe("encodeHeaderValue", () => {
  it.each([
    ["plain ASCII", "us-west1", "us-west1"],
    ["inner spaces and tabs", "a b\tc", "a b\tc"],
    ["the empty string", "", ""],
    ["characters outside ASCII", "Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="],
    ["an emoji", "🎾", "=?base64?8J+Ovg==?="],
    ["spaces around", " padded ", "=?base64?IHBhZGRlZCA=?="],
    ["a leading tab", "\tx", "=?base64?CXg=?="],
    ["a trailing space", "x ", "=?base64?eCA=?="],
    ["a line break", "line1\nline2", "=?base64?bGluZTEKbGluZTI=?="],
    ["a header injection", "a\r\nX-Evil: 1", "=?base64?YQ0KWC1FdmlsOiAx?="],
    ["a NUL", "a\0b", "=?base64?YQBi?="],
    ["DEL", "\x7f", "=?base64?fw==?="],
    ["what looks encoded", "=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="],
    ["what looks encoded and is empty", "=?base64??=", "=?base64?PT9iYXNlNjQ/Pz0=?="],
    ["the shortest overlap of prefix and suffix", "=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="],
    ["the prefix alone", "=?base64?x", "=?base64?x"],
    ["the sentinel in capitals", "=?BASE64?eA==?=", "=?BASE64?eA==?="],
  ])("HDR-01 B059: %s", (_what, value, encoded) => {
    expect(encodeHeaderValue(value)).toBe(encoded);
  });
});

describe("mediaType", () => {
  it.each([
    ["application/json", "application/json"],
    ["application/json; charset=utf-8", "application/json"],
    ["Application/JSON;charset=UTF-8", "application/json"],
    ["text/event-stream;charset=utf-8", "text/event-stream"],
    [" text/event-stream ; x=y", "text/event-stream"],
    [["application/json", "text/html"], "application/json"],
    [undefined, ""],
  ])("HTTP-01: %j is %j", (value, type) => {
    expect(mediaType(value)).toBe(type);
  });
});

describe("retryAfterMs", () => {
  const now = Date.UTC(2026, 6, 28, 12, 0, 0);

  it.each([
    ["seconds", "1", 1000],
    ["zero", "0", 0],
    ["a day", "86400", 86_400_000],
    ["more than a number can hold", "9".repeat(40), Number.MAX_SAFE_INTEGER],
    ["spaces around", " 2 ", 2000],
    ["a date", "Tue, 28 Jul 2026 12:00:05 GMT", 5000],
    ["a date of the RFC 850 form", "Tuesday, 28-Jul-26 12:00:05 GMT", 5000],
    ["a date of the asctime form", "Tue Jul 28 12:00:05 2026", 5000],
    ["a date that has passed", "Tue, 28 Jul 2026 11:00:00 GMT", 0],
    ["a negative number", "-5", undefined],
    ["a fraction", "1.5", undefined],
    ["an exponent", "1e3", undefined],
    ["words", "abc", undefined],
    ["words with a number", "in 5 minutes", undefined],
    ["a date that is none", "Tue, 99 Foo 2026 12:00:05 GMT", undefined],
    ["an ISO date, which is no HTTP date", "2026-07-28T12:00:05Z", undefined],
    ["nothing", "", undefined],
    ["no field", undefined, undefined],
  ])("HTTP-03 B104: %s", (_what, value, expected) => {
    expect(retryAfterMs(value, now)).toBe(expected);
  });
});

describe("readChallenge", () => {
  it.each([
    ["no field", undefined, "", {}],
    ["a bare scheme", "Bearer", "bearer", {}],
    [
      "quoted and bare values",
      'Bearer error="invalid_token", max=5',
      "bearer",
      { error: "invalid_token", max: "5" },
    ],
    [
      "the challenge of the specification",
      'Bearer resource_metadata="https://example.com/.well-known/oauth-protected-resource", scope="files:read files:write"',
      "bearer",
      {
        resource_metadata: "https://example.com/.well-known/oauth-protected-resource",
        scope: "files:read files:write",
      },
    ],
    ["escapes and commas inside quotes", 'Bearer realm="a, \\"b\\" \\\\"', "bearer", { realm: 'a, "b" \\' }],
    ["names in any case", 'BEARER Error="x"', "bearer", { error: "x" }],
    ["the Bearer one of several", 'Basic realm="x", Bearer scope="y"', "bearer", { scope: "y" }],
    ["several fields", ["Negotiate", 'Bearer scope="y"'], "bearer", { scope: "y" }],
    ["the first when none is Bearer", 'Digest realm="x", Basic realm="y"', "digest", { realm: "x" }],
    ["a token68", "Negotiate abc+/==, Bearer a=b", "bearer", { a: "b" }],
    ["empty list elements", ', ,Bearer a=b,,c="d",', "bearer", { a: "b", c: "d" }],
    ["spaces around the sign", "Bearer a = b", "bearer", { a: "b" }],
    ["a name twice: the first counts", "Bearer a=1, a=2", "bearer", { a: "1" }],
    [
      "a name that would reach the prototype",
      "Bearer __proto__=1, constructor=2",
      "bearer",
      { constructor: "2" },
    ],
    ["an open quote", 'Bearer error="x', "", {}],
    ["a broken second challenge", 'Bearer a=b, Basic "', "bearer", { a: "b" }],
    ["no scheme", '="x"', "", {}],
    ["more than anyone sends", `Bearer a="${"x".repeat(10_000)}"`, "", {}],
    ["too many parameters", `Bearer ${Array.from({ length: 40 }, (_, at) => `p${at}=1`).join(", ")}`, "", {}],
  ])("B166 B175: %s", (_what, field, scheme, params) => {
    expect(readChallenge(401, field)).toEqual({ status: 401, scheme, params });
  });

  it("SAF-02: hostile fields are read in no time", () => {
    const fields = [
      ", ".repeat(4000),
      `Bearer ${"a=b,".repeat(2000)}`,
      `Bearer ${"a".repeat(8000)}`,
      `x ${"=".repeat(8000)}`,
    ];
    const start = process.cpuUsage();
    for (const field of fields) readChallenge(401, field);
    expect(process.cpuUsage(start).user).toBeLessThan(100_000);
  });
});

describe("judgeRedirect", () => {
  const base = "https://example.com/mcp?key=secret";

  it.each([
    [307, "/other", 0, "/other"],
    [308, "other?x=1", 0, "/other?x=1"],
    [307, "https://example.com/deep/mcp", 2, "/deep/mcp"],
  ])("HTTP-04: %i to %s within the origin is followed", (status, location, hops, path) => {
    expect(judgeRedirect(status, location, base, hops)).toEqual({ path });
  });

  it.each([
    ["B170: another host", 307, "https://evil.example/mcp", "another origin"],
    ["B170: another port", 308, "https://example.com:8443/mcp", "another origin"],
    ["B170: https to http", 307, "http://example.com/mcp", "another origin"],
    ["B173: loopback", 302, "http://127.0.0.1:80/admin", "another origin"],
    ["B170: a scheme-relative URL", 307, "//evil.example/mcp", "another origin"],
    ["B172: file", 307, "file:///etc/passwd", "another origin"],
    ["B172: unix", 307, "unix:///x", "another origin"],
    ["B172: data", 307, "data:text/plain,x", "another origin"],
    ["B172: ftp", 307, "ftp://example.com/", "another origin"],
    ["301", 301, "/other", "turns POST into GET"],
    ["302", 302, "/other", "turns POST into GET"],
    ["303", 303, "/other", "turns POST into GET"],
    ["credentials in the target", 307, "https://user:pw@example.com/mcp", "credentials"],
    ["no Location", 307, undefined, "without a Location"],
    ["no URL", 307, "https://[", "not a URL"],
    ["too many hops", 307, "/other", "more than 3"],
  ])("HTTP-04: %s is not followed", (what, status, location, reason) => {
    const redirect = judgeRedirect(status, location, base, what === "too many hops" ? 3 : 0);
    expect(redirect).toEqual({ refusal: expect.stringContaining(reason) });
    expect(JSON.stringify(redirect)).not.toMatch(/secret|pw|passwd/);
  });
});

describe("ByteCollector", () => {
  it("LIM-01: gives back what it took, whatever the sizes of the chunks", () => {
    const all = Uint8Array.from({ length: 100_000 }, (_, at) => at % 251);
    for (const sizes of [
      [100_000],
      [1, 99_999],
      Array.from({ length: 1000 }, () => 100),
      [20_000, 1, 1, 50_000, 3, 29_995],
    ]) {
      const collector = new ByteCollector(100_000);
      let at = 0;
      for (const size of sizes) {
        expect(collector.push(all.slice(at, at + size))).toBe(true);
        at += size;
      }
      expect(Buffer.compare(collector.take(), all)).toBe(0);
      expect(collector.push(Uint8Array.of(1))).toBe(false);
    }
  });

  it("LIM-01: a body that trickles in byte by byte costs about its size", () => {
    const collector = new ByteCollector(4 * 1024 * 1024);
    const before = process.memoryUsage();
    for (let count = 0; count < 1024 * 1024; count++) collector.push(new Uint8Array(1));
    const after = process.memoryUsage();
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(8 * 1024 * 1024);
    expect(collector.take().length).toBe(1024 * 1024);
  });
});
