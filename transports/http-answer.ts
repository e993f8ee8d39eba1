/**
 * One HTTP response, read as the answer to one JSON-RPC request: which kind of body it is, what the frames in it mean for
 * the exchange, and what a status without a frame means (HTTP-01 to HTTP-04, REQ-02 to REQ-04).
 */

import { systemClock } from "../src/clock.ts";
import type { TransportError } from "../src/errors.ts";
import type { AnomalyKind, AuthChallenge, Delivery, ExchangeFailure } from "../src/transport.ts";
import { decodeFrame, type ErrorFrame, type NotificationFrame, type ResponseFrame } from "../src/wire.ts";
import { isInsufficientScope, readChallenge } from "./auth-challenge.ts";
import { ByteCollector, decodeText } from "./bytes.ts";
import { badAnswer, connectionLost, EXCERPT_READ_BYTES, statusError, tooLarge } from "./http-errors.ts";
import { headerText, mediaType, type RawHeaders } from "./http-headers.ts";
import { type Inflater, type InflateSink, isIdentity, startInflater } from "./http-inflate.ts";
import { judgeRedirect } from "./http-redirect.ts";
import { retryAfterMs } from "./retry-after.ts";
import { SseReader } from "./sse.ts";

/** What a failure can say besides its error. */
export type FailureExtras = Pick<ExchangeFailure, "retryAfterMs" | "challenge">;

/** The exchange that an answer belongs to. After `respond` or `fail` it is settled; the rest is dropped. */
export interface AnsweredExchange {
  readonly id: number;
  readonly method: string;
  readonly peer: string;
  /** How many redirects led there. */
  readonly hops: number;
  readonly messageBytes: number;
  /** Whether the connection may be HTTP/2. */
  readonly multiplex: boolean;
  /** Whether a token function can answer a challenge. */
  readonly answersChallenges: boolean;
  /** Whether the end of the exchange was told, or nobody wants it any more. */
  readonly settled: boolean;
  /** The URL that was asked, with its query. */
  wholeUrl(): string;
  /** Texts of the request that must not come back in an error, the longest first. */
  secrets(): readonly string[];
  notification(frame: NotificationFrame): void;
  respond(frame: ResponseFrame, status: number, headers: RawHeaders): void;
  /** @param mayLinger whether the rest of the body is worth waiting for, to keep the connection */
  fail(delivery: Delivery, error: TransportError, mayLinger: boolean, extras?: FailureExtras): void;
  /** Sends the same request to another path of the origin. */
  follow(path: string): void;
  anomaly(kind: AnomalyKind, detail: unknown): void;
  /** A body that was paused may go on. */
  resumeBody(): void;
}

/** What the body is read as. */
type Reading = "json" | "events" | "error" | "redirect";

const NO_BYTES = new Uint8Array(0);

/** Reads one response. The exchange calls `start`, then `push` for each chunk, then `end` or `broken`. */
export class HttpAnswer implements InflateSink {
  readonly #exchange: AnsweredExchange;
  readonly #status: number;
  readonly #headers: RawHeaders;
  #reading: Reading = "json";
  #body: ByteCollector | undefined;
  #events: SseReader | undefined;
  #inflater: Inflater | undefined;
  /** True while what is left of an ended event stream is read. */
  #ending = false;
  /** Whether an error body may be a JSON-RPC error, so that all of it is read. Undefined before its first byte. */
  #mayBeJson: boolean | undefined;

  constructor(exchange: AnsweredExchange, status: number, headers: RawHeaders) {
    this.#exchange = exchange;
    this.#status = status;
    this.#headers = headers;
  }

  /** Decides from status and headers what to read, or that there is nothing to read. */
  start(): void {
    const status = this.#status;
    const media = mediaType(this.#headers["content-type"]);
    if (media === "text/event-stream" && (status < 300 || status >= 400)) {
      this.#reading = "events";
      this.#events = new SseReader(this.#exchange.messageBytes, (data) => this.#event(data));
    } else {
      if (status >= 400) this.#reading = "error";
      else if (status >= 300) this.#reading = "redirect";
      else if (media !== "application/json" || isBodiless(status)) {
        this.#refuse(media);
        return;
      }
      this.#body = new ByteCollector(this.#exchange.messageBytes);
    }
    const encoding = headerText(this.#headers["content-encoding"]);
    if (encoding !== undefined && !isIdentity(encoding)) this.#inflate(encoding);
    else if (this.#reading === "json") this.#checkLength();
  }

  /** Takes the next bytes. False when the body should pause until `resumeBody`. */
  push(chunk: Uint8Array): boolean {
    if (this.#inflater !== undefined) return this.#inflater.write(chunk);
    this.#take(chunk);
    return true;
  }

  /** The body is complete. */
  end(): void {
    if (this.#inflater !== undefined) this.#inflater.end();
    else this.#end();
  }

  /** The body broke off. */
  broken(error: Error): void {
    if (this.#reading === "error" || this.#reading === "redirect") {
      // A refusal is known from its status, whatever became of its body.
      this.#end();
      return;
    }
    this.#endEvents();
    if (!this.#exchange.settled) {
      const { peer, method } = this.#exchange;
      this.#exchange.fail("unknown", connectionLost(peer, method, "on the way", error), false);
    }
  }

  /** Forgets what is buffered; only events that come after the response are still looked at. */
  drop(): void {
    this.#body = undefined;
    if (this.#inflater !== undefined) {
      this.#inflater.stop();
      this.#inflater = undefined;
      this.#events = undefined;
    }
  }

  /** Takes bytes that came after the response: a second answer among them is told as an anomaly. */
  pushLate(chunk: Uint8Array): void {
    this.#events?.push(chunk);
  }

  inflated(chunk: Uint8Array): void {
    if (!this.#exchange.settled) this.#take(chunk);
  }

  inflateEnded(): void {
    if (!this.#exchange.settled) this.#end();
  }

  inflateFailed(cause: Error): void {
    this.#rejectBody("its compressed body is damaged", cause);
  }

  inflateReady(): void {
    this.#exchange.resumeBody();
  }

  #inflate(encoding: string): void {
    this.#inflater = startInflater(encoding, this);
    if (this.#inflater === undefined) {
      this.#reject(
        `its Content-Encoding ${JSON.stringify(encoding.slice(0, 40))} is not one of gzip, deflate and br`,
      );
    }
  }

  /** An answer that says beforehand that it is too large is not read at all. */
  #checkLength(): void {
    const announced = headerText(this.#headers["content-length"]);
    if (announced !== undefined && Number(announced) > this.#exchange.messageBytes) this.#failTooLarge();
  }

  #take(chunk: Uint8Array): void {
    if (this.#events !== undefined) {
      const fault = this.#events.push(chunk);
      if (fault === undefined || this.#exchange.settled) return;
      if (fault === "too-large") this.#failTooLarge();
      else this.#reject("its event stream is not valid UTF-8");
      return;
    }
    const body = this.#body;
    if (body === undefined) return;
    if (this.#reading !== "json") {
      this.#mayBeJson ??= this.#reading === "error" && this.#looksLikeJson(chunk);
      if (!this.#mayBeJson) {
        // Of a body that is no JSON only an excerpt is of use.
        body.push(chunk.subarray(0, EXCERPT_READ_BYTES));
        if (body.size >= EXCERPT_READ_BYTES) this.#end();
        return;
      }
    }
    if (!body.push(chunk)) this.#failTooLarge();
  }

  #looksLikeJson(chunk: Uint8Array): boolean {
    return mediaType(this.#headers["content-type"]) === "application/json" || chunk[0] === 0x7b /* { */;
  }

  #end(): void {
    switch (this.#reading) {
      case "json":
        this.#endJson();
        break;
      case "events":
        this.#endEvents();
        if (this.#exchange.settled) break;
        if (this.#status >= 400) this.#endError();
        else {
          const { peer, method } = this.#exchange;
          const error = connectionLost(peer, method, "when its stream ended without a response");
          this.#exchange.fail("unknown", error, true);
        }
        break;
      case "redirect":
        this.#endRedirect();
        break;
      case "error":
        this.#endError();
        break;
    }
  }

  #endJson(): void {
    const bytes = this.#body?.take() ?? NO_BYTES;
    if (bytes.length === 0) {
      this.#rejectBody(`HTTP ${this.#status} came with an empty body`);
      return;
    }
    let text: string;
    try {
      text = decodeText(bytes);
    } catch {
      this.#rejectBody("it is not valid UTF-8");
      return;
    }
    const frame = decodeFrame(text);
    // There is one request on this POST: an error in its answer is about it, whatever its id (REQ-02).
    if (frame.kind === "error" || (frame.kind === "result" && frame.id === this.#exchange.id)) {
      this.#respond(frame);
    } else if (frame.kind === "result") {
      this.#reject(
        `it carries the id ${JSON.stringify(frame.id).slice(0, 60)}, and the request's is ${this.#exchange.id}`,
      );
    } else if (frame.kind === "bad") {
      this.#rejectBody(frame.fault);
    } else {
      this.#reject(`a ${frame.kind} came in place of a response`);
    }
  }

  /** A body whose length nothing told ends where its connection does: when it is not whole, that was a loss (MRTR-18). */
  #rejectBody(fault: string, cause?: Error): void {
    const { peer, method, multiplex } = this.#exchange;
    const { "content-length": length, "transfer-encoding": coding } = this.#headers;
    // HTTP/2 needs neither field, and marks the end by itself.
    if (multiplex || length !== undefined || coding !== undefined) this.#reject(fault, cause);
    else this.#exchange.fail("unknown", connectionLost(peer, method, "on the way"), false);
  }

  #endEvents(): void {
    this.#ending = true;
    this.#events?.end();
  }

  /** One message of the event stream. */
  #event(data: string): void {
    const exchange = this.#exchange;
    const frame = decodeFrame(data);
    if (exchange.settled) {
      if (frame.kind === "result" || frame.kind === "error") {
        exchange.anomaly("late-response", { exchange: exchange.id, id: shortId(frame.id) });
      }
      return;
    }
    switch (frame.kind) {
      case "notification":
        exchange.notification(frame);
        break;
      case "result":
      case "error":
        if (frame.id === exchange.id || (frame.kind === "error" && (frame.id ?? null) === null)) {
          this.#respond(frame);
        } else {
          exchange.anomaly("unknown-id", { exchange: exchange.id, id: shortId(frame.id) });
        }
        break;
      case "request":
        // In this revision servers send no requests, and answering one is forbidden (REQ-04).
        exchange.anomaly("peer-request", {
          exchange: exchange.id,
          id: shortId(frame.id),
          method: frame.method.slice(0, 100),
        });
        break;
      case "bad":
        if (frame.id !== undefined && frame.id !== exchange.id) {
          exchange.anomaly("bad-frame", { exchange: exchange.id, id: shortId(frame.id), fault: frame.fault });
        } else if (!this.#ending) {
          // At the end of a stream a frame that is not whole is the cut itself; before it, it is the server's (REQ-03).
          this.#reject(frame.fault);
        }
        break;
    }
  }

  #endRedirect(): void {
    const redirect = judgeRedirect(
      this.#status,
      headerText(this.#headers.location),
      this.#exchange.wholeUrl(),
      this.#exchange.hops,
    );
    if ("path" in redirect) this.#exchange.follow(redirect.path);
    else this.#failStatus(undefined, redirect.refusal);
  }

  #endError(): void {
    const challenge = this.#challenge();
    const frame = this.#errorFrame();
    if (frame !== undefined && !this.#statusCounts(challenge)) this.#respond(frame);
    else this.#failStatus(challenge);
  }

  #challenge(): AuthChallenge | undefined {
    if (this.#status !== 401 && this.#status !== 403) return undefined;
    return readChallenge(this.#status, this.#headers["www-authenticate"]);
  }

  /** Whether the status counts for more than a JSON-RPC error that came with it, because it says what to do next. */
  #statusCounts(challenge: AuthChallenge | undefined): boolean {
    if (challenge === undefined) return this.#retryAfter() !== undefined;
    if (isInsufficientScope(challenge)) return true;
    return this.#status === 401 && (challenge.scheme !== "" || this.#exchange.answersChallenges);
  }

  #retryAfter(): number | undefined {
    if (this.#status !== 429 && this.#status !== 503) return undefined;
    return retryAfterMs(headerText(this.#headers["retry-after"]), systemClock.wallNow());
  }

  #errorFrame(): ErrorFrame | undefined {
    const bytes = this.#body?.take() ?? NO_BYTES;
    if (bytes.length === 0) return undefined;
    try {
      const frame = decodeFrame(decodeText(bytes));
      return frame.kind === "error" ? frame : undefined;
    } catch {
      return undefined;
    }
  }

  #respond(frame: ResponseFrame): void {
    this.#exchange.respond(frame, this.#status, this.#headers);
  }

  /** A 2xx that is neither JSON nor an event stream: told at once, not when its body ends (HTTP-02). */
  #refuse(media: string): void {
    const came = isBodiless(this.#status)
      ? "carries no answer"
      : media === ""
        ? "came without a Content-Type"
        : `came with the Content-Type ${JSON.stringify(media.slice(0, 80))}`;
    const fault = `HTTP ${this.#status} ${came}; a request must be answered with application/json or text/event-stream`;
    this.#exchange.fail("unknown", badAnswer(this.#exchange.peer, this.#exchange.method, fault), true);
  }

  #reject(fault: string, cause?: unknown): void {
    this.#exchange.fail(
      "unknown",
      badAnswer(this.#exchange.peer, this.#exchange.method, fault, cause),
      false,
    );
  }

  #failTooLarge(): void {
    const { peer, method, messageBytes } = this.#exchange;
    const error = tooLarge(peer, method, messageBytes, this.#status);
    this.#exchange.fail(error.delivery, error, false);
  }

  #failStatus(challenge: AuthChallenge | undefined, hint?: string): void {
    const exchange = this.#exchange;
    const error = statusError({
      peer: exchange.peer,
      method: exchange.method,
      status: this.#status,
      headers: this.#headers,
      body: this.#body?.take() ?? NO_BYTES,
      challenge,
      secrets: exchange.secrets(),
      hint,
    });
    const waitMs = this.#retryAfter();
    const answerable =
      challenge !== undefined &&
      exchange.answersChallenges &&
      (challenge.status === 401 || isInsufficientScope(challenge));
    exchange.fail(error.delivery, error, true, {
      ...(waitMs !== undefined ? { retryAfterMs: waitMs } : undefined),
      ...(answerable ? { challenge } : undefined),
    });
  }
}

/** An id of the peer, cut to what is worth showing. */
function shortId<Id>(id: Id): Id | string {
  return typeof id === "string" ? id.slice(0, 60) : id;
}

/** Statuses that say there is no answer: what comes with them is not read as one. */
function isBodiless(status: number): boolean {
  return status === 202 || status === 204 || status === 205;
}
