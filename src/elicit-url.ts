/**
 * Which URLs of a server may be put before a user (MRTR-16). Nothing here opens or fetches anything.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#safe-url-handling}
 */

/** A URL that may be shown. Show `url.href`: it is the form in which look-alike and invisible characters are escaped. */
export interface ElicitUrl {
  readonly url: URL;
  /** Scheme, host and port; show it set apart from the rest. */
  readonly origin: string;
  /** True for plain http, which is let through to loopback only. */
  readonly insecure: boolean;
  /** True when a label of the host name is written in punycode: it may imitate another name, so warn the user. */
  readonly punycode: boolean;
}

/** Why a URL must not be shown, as the rest of a sentence: "it is …". Holds nothing of the URL but its scheme. */
export interface ElicitUrlFault {
  readonly fault: string;
}

// The URL parser forgives spaces, control characters, backslashes and missing slashes, and a text may hold invisible
// characters; a user who reads it would see another address than the one that is opened.
const MISLEADING = /[\p{C}\p{Z}\\]/u;
const BEGINNING = /^https?:\/\/([^/?#]+)/i;
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/**
 * Checks the `url` of an elicitation: https, or http to this machine (localhost, 127.0.0.0/8, [::1]), and without
 * credentials. Never throws.
 */
export function checkElicitUrl(text: string): ElicitUrl | ElicitUrlFault {
  if (typeof text !== "string")
    return { fault: `it is ${text === null ? "null" : typeof text}, not a string` };
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1]?.toLowerCase();
  if (scheme === undefined) return { fault: "it is no absolute URL" };
  if (scheme !== "https" && scheme !== "http") {
    return {
      fault: `its scheme is "${scheme.slice(0, 20)}", and only https (or http to this machine) may be shown`,
    };
  }
  const authority = BEGINNING.exec(text)?.[1];
  if (authority === undefined || MISLEADING.test(text) || !URL.canParse(text))
    return { fault: "it is no valid URL" };
  const url = new URL(text);
  if (authority.includes("@") || url.username !== "" || url.password !== "") {
    return { fault: "it holds credentials or an @ before its host, which hides where it leads" };
  }
  const insecure = url.protocol === "http:";
  if (insecure && !LOOPBACK.test(url.hostname)) {
    return {
      fault: "it is plain http to another machine, and only https (or http to this machine) may be shown",
    };
  }
  const punycode = url.hostname.split(".").some((label) => label.startsWith("xn--"));
  return { url, origin: url.origin, insecure, punycode };
}
