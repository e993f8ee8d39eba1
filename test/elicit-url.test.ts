import { describe, expect, it } from "vitest";
import { checkElicitUrl } from "../src/elicit-url.ts";

describe("checkElicitUrl", () => {
  it.each([
    ["https://example.com/pay?x=1#f", "https://example.com", false, false],
    ["HTTPS://Example.COM:8443/", "https://example.com:8443", false, false],
    ["http://localhost:3000/a", "http://localhost:3000", true, false],
    ["http://127.0.0.1/", "http://127.0.0.1", true, false],
    ["http://127.8.9.10:80/", "http://127.8.9.10", true, false],
    ["http://[::1]:8080/", "http://[::1]:8080", true, false],
    ["https://xn--pple-43d.com/", "https://xn--pple-43d.com", false, true],
    ["https://\u0430pple.com/", "https://xn--pple-43d.com", false, true],
    ["https://login.xn--pple-43d.com/", "https://login.xn--pple-43d.com", false, true],
    ["https://example.com/xn--/\u00e9?q=a@b", "https://example.com", false, false],
  ])("MRTR-16 B022: %s may be shown", (text, origin, insecure, punycode) => {
    expect(checkElicitUrl(text)).toEqual({ url: new URL(text), origin, insecure, punycode });
  });

  it.each([
    ["javascript:alert(1)", /scheme is "javascript"/],
    ["JavaScript:alert(1)", /scheme is "javascript"/],
    ["data:text/html,x", /scheme is "data"/],
    ["file:///etc/passwd", /scheme is "file"/],
    ["vbscript:x", /scheme/],
    ["blob:https://example.com/1", /scheme/],
    ["ftp://example.com/", /scheme/],
    ["http://example.com/", /plain http/],
    ["http://10.0.0.1/", /plain http/],
    ["http://169.254.169.254/", /plain http/],
    ["http://localhost.example.com/", /plain http/],
    ["http://127.0.0.1.example.com/", /plain http/],
    ["http://[::2]/", /plain http/],
    ["https://user:pass@example.com/", /credentials/],
    ["https://user@example.com/", /credentials/],
    ["https://@example.com/", /credentials/],
    ["https://example.com@evil.example/", /credentials/],
    [" https://example.com/", /no absolute URL/],
    ["https://example.com/a b", /no valid URL/],
    ["https://exam\nple.com/", /no valid URL/],
    ["https://example.com/\u202egnp.exe", /no valid URL/],
    ["https:\\\\example.com\\", /no valid URL/],
    ["https://example.com\\@evil.example/", /no valid URL/],
    ["https:example.com", /no valid URL/],
    ["https:///example.com", /no valid URL/],
    ["https://", /no valid URL/],
    ["https://exa mple.com/", /no valid URL/],
    ["https://example.com:99999/", /no valid URL/],
    ["example.com", /no absolute URL/],
    ["/relative", /no absolute URL/],
    ["", /no absolute URL/],
    [null as unknown as string, /not a string/],
  ])("MRTR-16 B022: %j is refused", (text, reason) => {
    expect(checkElicitUrl(text)).toEqual({ fault: expect.stringMatching(reason) });
  });

  it("SAF-01: the reason holds neither credentials nor a query", () => {
    for (const text of [
      "https://ann:hunter2@example.com/",
      "http://example.com/?token=hunter2",
      "hunter2://x",
    ]) {
      const checked = checkElicitUrl(text);
      expect("fault" in checked && checked.fault.replace('scheme is "hunter2"', "")).not.toContain("hunter2");
    }
  });
});
