/**
 * Failures of an HTTP exchange, in words. What is shown of the peer is its origin and path: a query may hold a key, and
 * what a server echoes of our credentials is blotted out (SAF-01).
 */

import {
  ConnectError,
  ConnectionLostError,
  FrameError,
  HttpStatusError,
  LimitError,
  type TransportError,
} from "../src/errors.ts";
import type { AuthChallenge, Delivery } from "../src/transport.ts";
import { isOwnedHeader, type RawHeaders, shownHeaders } from "./http-headers.ts";

/** How much of an error body is read for the excerpt, and how much is shown. */
export const EXCERPT_READ_BYTES = 4096;
const EXCERPT_CHARS = 2048;
/** Shorter texts are no credentials, and blotting them out would eat ordinary words. */
const SHORTEST_SECRET = 6;

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection was refused; is the server running, and is the port right?",
  ENOTFOUND: "the host name is not known",
  EAI_AGAIN: "the host name could not be looked up just now",
  EHOSTUNREACH: "there is no way to the host",
  ENETUNREACH: "there is no way to the network",
  ETIMEDOUT: "connecting took too long",
  UND_ERR_CONNECT_TIMEOUT: "connecting took too long",
  ERR_TLS_CERT_ALTNAME_INVALID: "the certificate is for another host name",
  CERT_HAS_EXPIRED: "the certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "the certificate is self-signed; give its authority in `tls.ca`",
  SELF_SIGNED_CERT_IN_CHAIN: "the certificate is self-signed; give its authority in `tls.ca`",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "the certificate's authority is not known; give it in `tls.ca`",
};

/** The connection was never made: not a byte of the request left. */
export function connectFailed(peer: string, error: Error): ConnectError {
  const code = codeOf(error);
  const reason = (code !== undefined ? REASONS[code] : undefined) ?? error.message;
  const suffix = code !== undefined ? ` (${code})` : "";
  return new ConnectError(`Could not connect to ${peer}: ${reason}${suffix}. Nothing was sent.`, {
    cause: harmless(error),
    permanent: code !== undefined && /CERT|SIGNATURE/.test(code),
  });
}

/** The connection ended after the request had been written and before its answer was complete. */
export function connectionLost(
  peer: string,
  method: string,
  when: string,
  error?: Error,
): ConnectionLostError {
  const code = error !== undefined ? codeOf(error) : undefined;
  const why = error === undefined ? "" : `: ${error.message}${code !== undefined ? ` (${code})` : ""}`;
  return new ConnectionLostError(
    `The answer of ${peer} to ${method} was lost ${when}${why}. Whether the server ran the request is unknown.`,
    "unknown",
    { cause: error !== undefined ? harmless(error) : undefined },
  );
}

/** What came is no answer in the sense of the protocol. */
export function badAnswer(peer: string, method: string, fault: string, cause?: unknown): FrameError {
  return new FrameError(`The answer of ${peer} to ${method} cannot be used: ${fault}.`, { cause });
}

/** The answer is larger than `limits.messageBytes`. */
export function tooLarge(peer: string, method: string, allowed: number, status: number): LimitError {
  return new LimitError(
    `The answer of ${peer} to ${method} (HTTP ${status}) is larger than ${allowed} bytes after decoding; raise limits.messageBytes if such answers are expected.`,
    "messageBytes",
    allowed,
    status >= 400 ? deliveryOf(status) : "unknown",
  );
}

/** What a status without a JSON-RPC answer tells of the request (HTTP-03). */
export function deliveryOf(status: number): Delivery {
  // 303 says that the request was run and that its outcome lies elsewhere; 304 and 300 say nothing that fits a POST.
  if (status === 301 || status === 302 || status === 307 || status === 308) return "rejected";
  if ((status >= 400 && status < 500) || status === 503) return "rejected";
  return "unknown";
}

/** What a status error is made of. */
export interface StatusDetails {
  readonly peer: string;
  readonly method: string;
  readonly status: number;
  readonly headers: RawHeaders;
  readonly body: Uint8Array;
  readonly challenge: AuthChallenge | undefined;
  readonly secrets: readonly string[];
  /** What to say instead of the usual hint. */
  readonly hint?: string | undefined;
}

/** The status says no, and the body is no JSON-RPC error. */
export function statusError(details: StatusDetails): HttpStatusError {
  const { peer, method, status, headers, challenge } = details;
  const hint = details.hint ?? hintOf(status, challenge);
  return new HttpStatusError(
    `${peer} answered ${method} with HTTP ${status} and no JSON-RPC error${hint === "" ? "" : `: ${hint}`}.`,
    deliveryOf(status),
    { status, headers: shownHeaders(headers), body: excerpt(details.body, details.secrets), challenge },
  );
}

function hintOf(status: number, challenge: AuthChallenge | undefined): string {
  if (status === 401) return "it wants authorization; give httpTransport a token it accepts";
  if (status === 403) {
    return challenge?.params.error === "insufficient_scope"
      ? "the token does not allow this; a token with the scope of the challenge is needed"
      : "it refuses this client";
  }
  if (status === 404 || status === 405) return "the URL seems not to be an MCP endpoint of this revision";
  if (status === 429) return "it is asked too often";
  if (status === 503) return "it is not available now";
  return "";
}

function excerpt(body: Uint8Array, secrets: readonly string[]): string {
  let text = new TextDecoder().decode(body.subarray(0, EXCERPT_READ_BYTES));
  for (const secret of secrets) text = text.replaceAll(secret, "[redacted]");
  return text.slice(0, EXCERPT_CHARS);
}

/**
 * What must not come back in the excerpt of an error body: the values of the host's own header fields, the token apart
 * from its scheme, and the query of the URL with each of its values.
 */
export function secretsOf(headers: readonly string[], path: string): string[] {
  const query = path.includes("?") ? path.slice(path.indexOf("?")) : "";
  const secrets: string[] = [];
  for (let at = 0; at < headers.length; at += 2) {
    if (isOwnedHeader(headers[at]!)) continue;
    const value = headers[at + 1]!;
    secrets.push(value, value.slice(value.indexOf(" ") + 1));
  }
  secrets.push(query, query.slice(1));
  for (const [, value] of new URLSearchParams(query)) secrets.push(value, encodeURIComponent(value));
  return secrets
    .filter((secret, at) => secret.length >= SHORTEST_SECRET && secrets.indexOf(secret) === at)
    .sort((a, b) => b.length - a.length);
}

/** Whether an error is one of ours already. */
export function isTransportError(error: unknown): error is TransportError {
  return error instanceof Error && "delivery" in error;
}

function codeOf(error: Error): string | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : undefined;
}

/** undici's parser error carries the bytes it could not parse, which are the peer's answer: they are left behind. */
function harmless(error: Error): Error {
  if (!("data" in error)) return error;
  const copy = new Error(error.message);
  copy.name = error.name;
  return copy;
}
