/**
 * One POST, from its headers to the end of its response. The object is the exchange that the engine holds and the handler
 * that undici calls, so a call needs no closures, and nothing of it outlives the answer.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http}
 */

import type { Dispatcher } from "undici";
import { ClosedError, type TransportError } from "../src/errors.ts";
import type {
  AnomalyKind,
  Delivery,
  Envelope,
  Exchange,
  ExchangeRequest,
  ExchangeSink,
} from "../src/transport.ts";
import type { NotificationFrame, ResponseFrame } from "../src/wire.ts";
import { type AnsweredExchange, type FailureExtras, HttpAnswer } from "./http-answer.ts";
import { connectFailed, connectionLost, isTransportError, secretsOf } from "./http-errors.ts";
import { notSendable, type RawHeaders, shownHeaders } from "./http-headers.ts";
import type { PoolUser } from "./http-pool.ts";
import type { HttpSite, SiteExchange } from "./http-site.ts";

/**
 * Where an exchange stands:
 * - `preparing`: headers and token are being made, or undici is being loaded.
 * - `queued`: undici has the request; no connection has taken it yet.
 * - `sent`: it is being written, or has been.
 * - `answering`: the response headers came; the body is being read.
 * - `lingering`: the sink has its end; the response stream may still end by itself, which keeps the connection.
 * - `over`.
 */
type ExchangeState = "preparing" | "queued" | "sent" | "answering" | "lingering" | "over";

/** More than this after the answer is not waited for. */
const MOST_LINGERING_BYTES = 64 * 1024;

/** The reason given to undici. Made once: nobody reads its stack. */
const ABANDONED = new Error("the exchange was ended by mcp-rally");

class HttpEnvelope implements Envelope {
  readonly status: number;
  readonly #raw: RawHeaders;

  constructor(status: number, raw: RawHeaders) {
    this.status = status;
    this.#raw = raw;
  }

  /** Picked when asked for: a plain result never is. */
  get headers(): Readonly<Record<string, string>> {
    return shownHeaders(this.#raw);
  }
}

/** See the head of this file. Made by the transport alone. */
export class HttpExchange
  implements Exchange, PoolUser, SiteExchange, AnsweredExchange, Dispatcher.DispatchHandler
{
  readonly #site: HttpSite;
  readonly #request: ExchangeRequest;
  /** Gone once the end was delivered, or the exchange cancelled. */
  #sink: ExchangeSink | undefined;
  #state: ExchangeState = "preparing";
  /** True until `begin` returns: the sink must not be called before that. */
  #entering = true;
  #headers: string[] = [];
  #path: string;
  #hops = 0;
  /** Undici's handle on the running request: gone once there is nothing left to abort. */
  #controller: Dispatcher.DispatchController | undefined;
  #answer: HttpAnswer | undefined;
  #lateBytes = 0;

  constructor(site: HttpSite, request: ExchangeRequest, sink: ExchangeSink) {
    this.#site = site;
    this.#request = request;
    this.#sink = sink;
    this.#path = site.path;
  }

  /** Starts the exchange, or lets it fail because the transport is closed. Never throws. */
  begin(isClosed: boolean): void {
    this.#site.started(this);
    if (isClosed) this.close();
    else this.#prepare();
    this.#entering = false;
  }

  cancel(_reason: string): void {
    if (this.#sink !== undefined) this.#stop();
  }

  /** Ends the exchange because the transport closes. */
  close(): void {
    if (this.#state === "lingering") {
      this.#stop();
      return;
    }
    const delivery = this.#wasSent() ? "unknown" : "not-sent";
    const error = new ClosedError(
      `The transport to ${this.peer} was closed before ${this.method} was answered.`,
      delivery,
    );
    this.fail(delivery, error, false);
  }

  /** Gives up waiting for the end of an answered stream. */
  stopLingering(): void {
    if (this.#state === "lingering") this.#stop();
  }

  // --- for the pool ------------------------------------------------------------------------------------------------

  dispatchOn(dispatcher: Dispatcher): boolean {
    if (this.#sink === undefined || this.#state === "over") return false;
    this.#state = "queued";
    try {
      dispatcher.dispatch(
        {
          origin: this.#site.origin,
          path: this.#path,
          method: "POST",
          headers: this.#headers,
          body: this.#request.body,
          // The engine's timers decide how long an answer may take (HTTP-04).
          headersTimeout: 0,
          bodyTimeout: 0,
          // Only this lets undici put a POST beside another on one HTTP/2 connection. It does not make it send one a
          // second time: see onRequestStart.
          idempotent: this.#site.multiplex,
        },
        this,
      );
    } catch (error) {
      this.refuse(error);
    }
    return true;
  }

  refuse(cause: unknown): void {
    const error = isTransportError(cause) ? cause : notSendable("it could not be prepared", cause);
    this.fail("not-sent", error, false);
  }

  // --- what undici tells -------------------------------------------------------------------------------------------

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#state === "queued") {
      this.#controller = controller;
      this.#state = "sent";
      return;
    }
    // Cancelled while it waited for a connection: nothing is written (CAN-01). Or undici, having lost an HTTP/2
    // connection, is about to write the request again: issuing again is the engine's to decide, with an id of its own.
    this.#controller = undefined;
    if (this.#wasSent())
      this.fail("unknown", connectionLost(this.peer, this.method, "with its connection"), false);
    else this.#finish();
    // undici takes an exception here as the end of this request alone, while an abort costs it the idle connection too.
    // What a dispatcher of the host makes of an exception is not known, so that one gets the abort.
    if (this.#site.ownsConnections) throw ABANDONED;
    controller.abort(ABANDONED);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: RawHeaders): void {
    // Interim answers (1xx) come through here too.
    if (status < 200 || this.#state !== "sent") return;
    this.#state = "answering";
    this.#answer = new HttpAnswer(this, status, headers);
    this.#answer.start();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#state === "answering") {
      const goOn = this.#answer!.push(chunk);
      if (!goOn && this.#controller !== undefined) controller.pause();
    } else if (this.#state === "lingering") {
      this.#lateBytes += chunk.length;
      if (this.#lateBytes > MOST_LINGERING_BYTES) this.#stop();
      else this.#answer!.pushLate(chunk);
    }
  }

  onResponseEnd(): void {
    this.#controller = undefined;
    if (this.#state === "answering") this.#answer!.end();
    else this.#finish();
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#controller = undefined;
    if (this.#state === "queued") this.fail("not-sent", connectFailed(this.peer, error), false);
    else if (this.#state === "sent") {
      this.fail("unknown", connectionLost(this.peer, this.method, "before it began", error), false);
    } else if (this.#state === "answering") this.#answer!.broken(error);
    else if (this.#state === "lingering") this.#finish();
  }

  // --- for the answer ----------------------------------------------------------------------------------------------

  get id(): number {
    return this.#request.id;
  }

  get method(): string {
    return this.#request.method;
  }

  get peer(): string {
    return this.#site.peer;
  }

  get hops(): number {
    return this.#hops;
  }

  get messageBytes(): number {
    return this.#site.messageBytes;
  }

  get multiplex(): boolean {
    return this.#site.multiplex;
  }

  get answersChallenges(): boolean {
    return this.#site.token?.canAnswer === true;
  }

  get settled(): boolean {
    return this.#sink === undefined;
  }

  // Functions and not properties, so that no print of the exchange shows what they give.
  wholeUrl(): string {
    return this.#site.origin + this.#path;
  }

  secrets(): string[] {
    return secretsOf(this.#headers, this.#path);
  }

  notification(frame: NotificationFrame): void {
    this.#sink?.notification(frame);
  }

  respond(frame: ResponseFrame, status: number, headers: RawHeaders): void {
    const sink = this.#sink;
    if (sink === undefined) return;
    this.#settle();
    sink.response(frame, new HttpEnvelope(status, headers));
  }

  fail(delivery: Delivery, error: TransportError, mayLinger: boolean, extras?: FailureExtras): void {
    const sink = this.#sink;
    if (sink === undefined) return;
    if (this.#entering) {
      // Whatever the rest of the preparation does, nothing is sent any more.
      this.#state = "over";
      queueMicrotask(() => this.fail(delivery, error, mayLinger, extras));
      return;
    }
    if (mayLinger) this.#settle();
    else this.#stop();
    sink.failure({ delivery, error, ...extras });
  }

  follow(path: string): void {
    this.#hops++;
    this.#path = path;
    this.#answer?.drop();
    this.#answer = undefined;
    const controller = this.#controller;
    this.#controller = undefined;
    // Before the abort: it calls back at once, and the answer that it ends is not the one that counts.
    this.#state = "preparing";
    controller?.abort(ABANDONED);
    this.#run();
  }

  anomaly(kind: AnomalyKind, detail: unknown): void {
    if (this.#state !== "over") this.#site.anomaly(kind, detail);
  }

  resumeBody(): void {
    this.#controller?.resume();
  }

  // --- the way to the end ------------------------------------------------------------------------------------------

  #prepare(): void {
    const { headers, token } = this.#site;
    try {
      this.#headers = headers.build(this.#request);
      const bearer = token?.get(this.#request);
      if (typeof bearer === "object") {
        bearer.then(
          (value) => this.#go(value),
          (error: unknown) => this.refuse(error),
        );
      } else {
        this.#go(bearer);
      }
    } catch (error) {
      this.refuse(error);
    }
  }

  #go(bearer: string | undefined): void {
    if (this.#sink === undefined) return;
    if (bearer !== undefined) this.#headers.push("Authorization", `Bearer ${bearer}`);
    this.#run();
  }

  #run(): void {
    this.#site.connections(this.#request.longLived === true).run(this);
  }

  #wasSent(): boolean {
    return this.#state === "sent" || this.#state === "answering";
  }

  /** The sink gets its end now. What is left of the response may come to its own end. */
  #settle(): void {
    this.#sink = undefined;
    if (this.#controller === undefined) {
      this.#finish();
      return;
    }
    this.#state = "lingering";
    this.#answer?.drop();
    // A body that waited for its decoder waits no longer.
    this.#controller.resume();
    this.#site.lingers(this);
  }

  /** Ends everything at once. Closing the response stream is what cancels a request over HTTP (CAN-01). */
  #stop(): void {
    const controller = this.#controller;
    this.#finish();
    controller?.abort(ABANDONED);
  }

  #finish(): void {
    this.#state = "over";
    this.#sink = undefined;
    this.#controller = undefined;
    this.#answer?.drop();
    this.#answer = undefined;
    this.#site.finished(this);
  }
}
