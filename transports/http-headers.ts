/**
 * The header fields of a request: the ones MCP prescribes, the ones a call mirrors, and the host's own (HDR-01, HDR-02).
 *
 * Fields are kept as a flat array of names and values, the form that costs the HTTP client least.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata}
 */

import { ConnectError, UsageError } from "../src/errors.ts";
import type { ExchangeRequest } from "../src/transport.ts";

/** Header fields of the host: name to value. An undefined value leaves the field out. */
export type HttpHeaders = Readonly<Record<string, string | undefined>>;

/** What a header or token function is told. */
export interface CallInfo {
  /** The `context` that the host gave with the call. */
  readonly context: unknown;
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Visible ASCII, space and tab: what the specification allows in a field value. */
const PLAIN_VALUE = /^[\t\x20-\x7e]*$/;
const OUTER_SPACE = /^[\t ]|[\t ]$/;

/**
 * Fields that this transport or the connection owns. A host's own value for one of them is passed over: a header that
 * disagrees with the body is refused by servers, and configurations often repeat `Content-Type` and `Accept`.
 */
const OWNED: ReadonlySet<string> = new Set([
  "accept",
  "content-type",
  "content-length",
  "host",
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
  "expect",
  "te",
  "trailer",
]);

/** Whether the transport, not the host, decides on this field. */
export function isOwnedHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return OWNED.has(lower) || lower.startsWith("mcp-");
}

/**
 * Encodes a value for `Mcp-Name` or `Mcp-Param-*`. Text that a field can carry unchanged stays as it is; the rest, and
 * text that looks like an encoded value already, becomes `=?base64?…?=` of its UTF-8 bytes.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#value-encoding}
 */
export function encodeHeaderValue(value: string): string {
  if (PLAIN_VALUE.test(value) && !OUTER_SPACE.test(value) && !looksEncoded(value)) return value;
  return `=?base64?${Buffer.from(value, "utf8").toString("base64")}?=`;
}

function looksEncoded(value: string): boolean {
  return value.startsWith("=?base64?") && value.endsWith("?=");
}

/**
 * Checks fields of the host and gives them as a flat array, without those the transport owns.
 *
 * @returns the fields, or what is wrong with them; a value is never part of that text (SAF-01)
 */
export function flattenHeaders(headers: unknown): { readonly flat: string[] } | { readonly fault: string } {
  if (typeof headers !== "object" || headers === null || Array.isArray(headers)) {
    return { fault: "headers must be an object of names and values" };
  }
  const flat: string[] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (!TOKEN.test(name)) {
      return { fault: `${JSON.stringify(name.slice(0, 60))} is not a valid header name` };
    }
    if (value === undefined) continue;
    if (typeof value !== "string") {
      return {
        fault: `the value of header ${name} must be a string, not ${value === null ? "null" : typeof value}`,
      };
    }
    if (!PLAIN_VALUE.test(value)) {
      return {
        fault: `the value of header ${name} has a character that a header cannot carry (only visible ASCII, space and tab can); encode it first`,
      };
    }
    if (!isOwnedHeader(name)) flat.push(name, value);
  }
  return { flat };
}

/** Whether a token can follow `Bearer ` in a header. */
export function isSafeToken(token: unknown): token is string {
  return typeof token === "string" && /^[\x21-\x7e]+$/.test(token);
}

/** Where the host's headers come from. */
export interface HeaderSource {
  /** An object, or a function called for every attempt. */
  readonly headers: HttpHeaders | ((call: CallInfo) => HttpHeaders) | undefined;
  /** Leaves the host's `Authorization` out, because a token takes its place. */
  readonly withoutAuthorization: boolean;
}

/** Makes the header array of each request; all that stays the same is made once. */
export class HeaderBuilder {
  readonly #fixed: readonly string[];
  readonly #perCall: ((call: CallInfo) => HttpHeaders) | undefined;
  readonly #withoutAuthorization: boolean;

  /** @throws UsageError when a header object has a name or a value that cannot be sent */
  constructor({ headers, withoutAuthorization }: HeaderSource) {
    const own = ["Accept", "application/json, text/event-stream", "Content-Type", "application/json"];
    this.#withoutAuthorization = withoutAuthorization;
    if (typeof headers === "function") {
      this.#perCall = headers;
      this.#fixed = own;
      return;
    }
    const read = flattenHeaders(headers ?? {});
    if ("fault" in read) throw new UsageError(`httpTransport: ${read.fault}.`, { path: "options.headers" });
    this.#fixed = own.concat(this.#filter(read.flat));
  }

  /**
   * The headers of one request. `Authorization` of a token is the caller's to add.
   *
   * @throws ConnectError (not sent) when a header function fails or a field cannot be sent
   */
  build(request: ExchangeRequest): string[] {
    const flat = this.#fixed.slice();
    if (this.#perCall !== undefined) flat.push(...this.#fromHost(this.#perCall, request));
    const { protocolVersion, method } = request;
    // The specification gives these two no encoding: a value that a field cannot carry is no method and no version.
    if (!PLAIN_VALUE.test(method) || !PLAIN_VALUE.test(protocolVersion)) {
      throw notSendable("the method or the protocol version has a character that a header cannot carry");
    }
    flat.push("MCP-Protocol-Version", protocolVersion, "Mcp-Method", method);
    if (request.name !== undefined) flat.push("Mcp-Name", encodeHeaderValue(request.name));
    for (const { name, value } of request.mirrored) {
      if (!TOKEN.test(name)) {
        throw notSendable(
          `the x-mcp-header name ${JSON.stringify(name.slice(0, 60))} of this tool is not a valid header name`,
        );
      }
      flat.push(`Mcp-Param-${name}`, encodeHeaderValue(value));
    }
    return flat;
  }

  #fromHost(perCall: (call: CallInfo) => HttpHeaders, request: ExchangeRequest): string[] {
    let headers: HttpHeaders;
    try {
      headers = perCall({ context: request.context });
    } catch (cause) {
      throw notSendable("the headers function of the host threw", cause);
    }
    const read = flattenHeaders(headers);
    if ("fault" in read) throw notSendable(`the headers function of the host: ${read.fault}`);
    return this.#filter(read.flat);
  }

  #filter(flat: string[]): string[] {
    if (!this.#withoutAuthorization) return flat;
    return flat.filter((_, at) => flat[at - (at % 2)]!.toLowerCase() !== "authorization");
  }
}

/** A request that cannot be put into HTTP: nothing was sent. */
export function notSendable(what: string, cause?: unknown): ConnectError {
  return new ConnectError(`The request was not sent: ${what}.`, { cause, permanent: true });
}

/** Response headers that are safe to show: none of them carries a credential. */
const SHOWN = [
  "content-type",
  "content-length",
  "date",
  "retry-after",
  "server",
  "via",
  "traceparent",
  "x-request-id",
  "x-correlation-id",
] as const;
const LONGEST_SHOWN = 256;

/** Response headers as the HTTP client gives them. */
export type RawHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The response headers that may appear in envelopes and errors, cut to a sensible length (SAF-01). */
export function shownHeaders(raw: RawHeaders): Record<string, string> {
  const shown: Record<string, string> = {};
  for (const name of SHOWN) {
    const value = headerText(raw[name]);
    if (value !== undefined) shown[name] = value.slice(0, LONGEST_SHOWN);
  }
  return shown;
}

/** The value of a field that may have come more than once: the first. */
export function headerText(value: string | string[] | undefined): string | undefined {
  return typeof value === "string" || value === undefined ? value : value[0];
}

/** The media type of a `Content-Type` field in lower case, without parameters (HTTP-01). */
export function mediaType(value: string | string[] | undefined): string {
  const text = headerText(value) ?? "";
  if (text === "application/json" || text === "text/event-stream") return text;
  const end = text.indexOf(";");
  return (end === -1 ? text : text.slice(0, end)).trim().toLowerCase();
}
