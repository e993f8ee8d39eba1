/**
 * The shared-channel multiplexer: many exchanges over one two-way stream of frames.
 *
 * It owns the one map from wire id to pending exchange. Responses are routed by `id`, progress by `progressToken`,
 * subscription traffic by `subscriptionId` and a server's cancellation by `requestId`: all four are the wire id, so all
 * four go through that map. It knows frames and delivery, and nothing of processes, sockets or reconnecting; those are
 * behind a {@link ChannelPort}.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio}
 */

import { ConnectionLostError, FrameError, LimitError, type TransportError } from "../src/errors.ts";
import { META } from "../src/protocol.ts";
import type {
  AnomalyKind,
  Delivery,
  Exchange,
  ExchangeFailure,
  ExchangeRequest,
  ExchangeSink,
  NotificationFrame,
  ResponseFrame,
  TransportHost,
  WireId,
} from "../src/transport.ts";
import { type BadFrame, decodeFrame, encodeCancelled, isObject } from "../src/wire.ts";

/** The byte layer of a link: a socket or a pipe that takes whole frames. */
export interface ChannelPort {
  /** Hands one frame over, with whatever framing the binding needs. When it throws, the frame counts as not sent. */
  send(text: string): void;
  /** Called once after the frames of a turn: for a port that joins them into one write. */
  flush?(): void;
  /**
   * Bytes taken that the operating system has not taken yet. Above a bound the channel keeps frames back, where a cancel
   * can still drop them, until `drained` is called. `Infinity` says that the port takes nothing any more.
   */
  readonly buffered: number;
}

/** Bounds of a {@link Channel}. */
export interface ChannelOptions {
  /**
   * How much may wait to be sent, counted in characters of the encoded frames. A frame that would wait behind more than this
   * fails at once with a `LimitError` that says "not-sent". A frame that waits for nothing is never too large. Default 16 Mi.
   */
  readonly outboundBytes?: number | undefined;
}

/** How the exchanges of a link end when the link does: made anew for each, because an error belongs to one operation. */
export type FailureFactory = (delivery: Delivery) => ExchangeFailure;

/** Exchanges that were taken off a channel and are still to be failed. */
export type Stranded = readonly Exchange[];

const OUTBOUND_BYTES = 16 * 1024 * 1024;
/** Above this the port's buffer counts as full. Frames behind it stay with us, where a cancel is free. */
const PORT_FULL_BYTES = 256 * 1024;
/** How many ended wire ids are remembered, to tell an answer that is late from one that is to nothing. */
const REMEMBERED_IDS = 256;
/** This many bad frames of a link are told one by one; after that each time their number has doubled. */
const BAD_FRAMES_TOLD = 16;
const EXCERPT_CHARS = 120;
const RESOLVED = Promise.resolve();
/** So many cancelled exchanges may stand in the outbox until it is swept. */
const SWEEP_ABOVE = 64;

/** One exchange on the channel, and the handle the engine holds. */
class Pending implements Exchange {
  readonly id: WireId;
  readonly listen: boolean;
  /** Whether it is in the channel's map. One that is not was stranded: its link is gone. */
  attached = true;
  state: "queued" | "written" | "ended" = "queued";
  /** The frame; let go as soon as it is written. */
  body: string;
  sink: ExchangeSink | undefined;
  readonly #channel: Channel;

  constructor(channel: Channel, request: ExchangeRequest, sink: ExchangeSink) {
    this.#channel = channel;
    this.id = request.id;
    this.listen = request.method === "subscriptions/listen";
    this.body = request.body;
    this.sink = sink;
  }

  cancel(reason: string, options?: { readonly silent?: boolean }): void {
    this.#channel.abandon(this, reason, options?.silent === true);
  }
}

/**
 * An exchange that can only fail: the sink hears of it on a fresh turn, unless it is cancelled first.
 * For a transport that is closed, or cannot take the request for another reason.
 */
export function refuseExchange(sink: ExchangeSink, failure: ExchangeFailure): Exchange {
  let live = true;
  queueMicrotask(() => {
    if (!live) return;
    live = false;
    sink.failure(failure);
  });
  return {
    cancel: () => {
      live = false;
    },
  };
}

/** Many exchanges over one stream of frames. One channel outlives its links: `up` gives it a port, `detach` takes it away. */
export class Channel {
  readonly #host: TransportHost;
  readonly #outboundBytes: number;
  /** The one map. An exchange is in it from `exchange` to its end. */
  readonly #pending = new Map<WireId, Pending>();
  /** Those of them whose frame is still to be written, in order, and some that were cancelled before it was. */
  #outbox: Pending[] = [];
  #queued = 0;
  #outboxChars = 0;
  #port: ChannelPort | undefined;
  #flushing = false;
  readonly #ended = new Float64Array(REMEMBERED_IDS);
  #endedAt = 0;
  #badFrames = 0;

  constructor(host: TransportHost, options: ChannelOptions = {}) {
    this.#host = host;
    this.#outboundBytes = options.outboundBytes ?? OUTBOUND_BYTES;
  }

  /** How many exchanges wait for their frame to be written. */
  get queued(): number {
    return this.#queued;
  }

  /** Starts an exchange: its frame is written in this turn when there is a port, otherwise when there is one. */
  exchange(request: ExchangeRequest, sink: ExchangeSink): Exchange {
    const refusal = this.#refusal(request);
    if (refusal !== undefined) return refuseExchange(sink, { delivery: refusal.delivery, error: refusal });
    const pending = new Pending(this, request, sink);
    this.#pending.set(request.id, pending);
    this.#outbox.push(pending);
    this.#queued++;
    this.#outboxChars += request.body.length;
    if (this.#port !== undefined) this.#scheduleFlush();
    return pending;
  }

  /** A link is up: what was queued is written now, in order. */
  up(port: ChannelPort): void {
    this.#port = port;
    this.#badFrames = 0;
    this.#scheduleFlush();
  }

  /** The port's buffer has room again. */
  drained(): void {
    if (this.#queued > 0) this.#scheduleFlush();
  }

  /**
   * The link is down: takes the port and every exchange away, without telling a sink yet, so that what the sinks and the
   * host start in reaction belongs to the next link. Hand the result to {@link Channel.fail}.
   */
  detach(): Stranded {
    this.#port = undefined;
    const stranded = [...this.#pending.values()];
    for (const pending of stranded) pending.attached = false;
    this.#pending.clear();
    this.#outbox = [];
    this.#queued = 0;
    this.#outboxChars = 0;
    return stranded;
  }

  /** Fails what `detach` gave: "not-sent" for frames that were never written, "unknown" for the others. */
  fail(stranded: Stranded, failure: FailureFactory): void {
    for (const exchange of stranded as readonly Pending[]) {
      if (exchange.state === "ended") continue;
      this.#fail(exchange, failure(exchange.state === "queued" ? "not-sent" : "unknown"));
    }
  }

  /**
   * Takes one frame from the peer. Never throws.
   *
   * @param isWhole false for what the stream ended in the middle of. When that is no frame, it is the loss itself, which
   * is about to be told, and not a peer's bad answer.
   */
  receive(text: string, isWhole = true): void {
    const frame = decodeFrame(text);
    switch (frame.kind) {
      case "result":
      case "error":
        this.#response(frame);
        break;
      case "notification":
        this.#notification(frame);
        break;
      case "request":
        // stdio.mdx: a server must not write requests, and a client must not write responses (REQ-04).
        this.anomaly("peer-request", { id: brief(frame.id), method: brief(frame.method) });
        break;
      case "bad":
        if (isWhole) this.#bad(frame, text);
        else this.#tellBad({ fault: "the stream ended in the middle of a message", chars: text.length });
        break;
    }
  }

  /** Takes note of bytes that are no frame at all: a line that is not UTF-8. */
  receiveBad(fault: string, bytes: number): void {
    this.#tellBad({ fault, bytes });
  }

  /** Tells the host what a peer did. A host that throws does no harm. */
  anomaly(kind: AnomalyKind, detail: unknown): void {
    try {
      this.#host.anomaly(kind, detail);
    } catch {
      // There is no one left to tell.
    }
  }

  /** @internal The cancel of one exchange (CAN-02). */
  abandon(pending: Pending, reason: string, silent: boolean): void {
    if (pending.state === "ended") return;
    const written = pending.state === "written";
    // Of a stranded exchange there is no one left to tell.
    const { attached } = pending;
    this.#end(pending);
    if (!written || silent || !attached || this.#port === undefined) return;
    try {
      this.#port.send(encodeCancelled(pending.id, reason));
      this.#scheduleFlush();
    } catch {
      // The link is about to end, and the exchange has ended already.
    }
  }

  #refusal(request: ExchangeRequest): TransportError | undefined {
    if (this.#outboxChars > 0 && this.#outboxChars + request.body.length > this.#outboundBytes) {
      return new LimitError(
        `${this.#queued} frames of ${this.#outboxChars} characters already wait to be sent; the peer does not read them. ` +
          `outboundBytes allows ${this.#outboundBytes}`,
        "outboundBytes",
        this.#outboundBytes,
        "not-sent",
      );
    }
    if (this.#pending.has(request.id)) {
      return new FrameError(`wire id ${request.id} is in use: every exchange needs an id of its own`, {
        delivery: "not-sent",
      });
    }
    return undefined;
  }

  #scheduleFlush(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    // Half the price of queueMicrotask, which in Node.js makes an async resource.
    void RESOLVED.then(this.#flush);
  }

  /** Writes what waits. A microtask after the first of a turn, so that what is sent together is written together. */
  readonly #flush = (): void => {
    this.#flushing = false;
    const port = this.#port;
    if (port === undefined) return;
    const outbox = this.#outbox;
    this.#outbox = [];
    let at = 0;
    for (; at < outbox.length && port.buffered <= PORT_FULL_BYTES; at++) {
      const pending = outbox[at]!;
      if (pending.state !== "queued") continue;
      const { body } = pending;
      this.#unqueue(pending);
      pending.state = "written";
      try {
        port.send(body);
      } catch (cause) {
        const error = new ConnectionLostError("the request could not be handed to the channel", "not-sent", {
          cause,
        });
        this.#fail(pending, { delivery: "not-sent", error });
      }
      // The port, or what a sink did in reaction, may have taken the link down.
      if (this.#port !== port) return;
    }
    if (at < outbox.length) this.#outbox = [...outbox.slice(at), ...this.#outbox];
    try {
      port.flush?.();
    } catch {
      // A port that cannot write reports the loss of its link, and that ends what was written.
    }
  };

  #response(frame: ResponseFrame): void {
    const pending = this.#find(frame.id);
    if (pending === undefined) {
      const ended = this.#hasEnded(frame.id);
      this.anomaly(ended ? "late-response" : "unknown-id", {
        id: brief(frame.id),
        kind: frame.kind,
        ...(frame.kind === "error" && { rpcCode: frame.error.code }),
      });
      return;
    }
    const sink = pending.sink!;
    this.#end(pending);
    try {
      sink.response(frame);
    } catch (error) {
      this.anomaly("host-callback", { callback: "response", error });
    }
  }

  #notification(frame: NotificationFrame): void {
    const { method, params } = frame;
    if (method === "notifications/progress") {
      const pending = this.#find(params?.progressToken);
      if (pending !== undefined) this.#notify(pending, frame);
      else this.anomaly("unknown-token", { method, progressToken: brief(params?.progressToken) });
      return;
    }
    if (method === "notifications/cancelled") {
      const pending = this.#find(params?.requestId);
      // cancellation.mdx: a server may only tear down a subscription with it, never another request.
      if (pending?.listen === true) this.#notify(pending, frame);
      else this.anomaly("unexpected-cancel", { requestId: brief(params?.requestId) });
      return;
    }
    const meta = params?._meta;
    const subscriptionId = isObject(meta) ? meta[META.subscriptionId] : undefined;
    if (subscriptionId !== undefined) {
      const pending = this.#find(subscriptionId);
      if (pending !== undefined) this.#notify(pending, frame);
      else this.anomaly("unknown-token", { method: brief(method), subscriptionId: brief(subscriptionId) });
      return;
    }
    try {
      this.#host.notification(frame);
    } catch (error) {
      this.anomaly("host-callback", { callback: "notification", error });
    }
  }

  #notify(pending: Pending, frame: NotificationFrame): void {
    try {
      pending.sink!.notification(frame);
    } catch (error) {
      this.anomaly("host-callback", { callback: "notification", error });
    }
  }

  #bad(frame: BadFrame, text: string): void {
    const pending = this.#find(frame.id);
    if (pending !== undefined) {
      const error = new FrameError(`the answer is not a valid JSON-RPC message: ${frame.fault}`);
      this.#fail(pending, { delivery: "unknown", error });
      return;
    }
    // What begins like a message may hold what a message holds, so it is not shown; a banner or a stack trace is.
    const start = text.trimStart();
    const excerpt = start.startsWith("{") ? undefined : printable(text);
    // A log line may be JSON too; only a message begins like this.
    const isMessage = start.startsWith('{"jsonrpc"');
    const detail = { fault: frame.fault, chars: text.length, isMessage };
    this.#tellBad(excerpt === undefined ? detail : { ...detail, excerpt });
  }

  #tellBad(detail: object): void {
    const count = ++this.#badFrames;
    if (count > BAD_FRAMES_TOLD && (count & (count - 1)) !== 0) return;
    this.anomaly("bad-frame", { ...detail, count });
  }

  #fail(pending: Pending, failure: ExchangeFailure): void {
    const sink = pending.sink!;
    this.#end(pending);
    try {
      sink.failure(failure);
    } catch (error) {
      this.anomaly("host-callback", { callback: "failure", error });
    }
  }

  /** The exchange that a peer's id, token or subscription id names: strictly the number we wrote (REQ-02). */
  #find(id: unknown): Pending | undefined {
    if (typeof id !== "number") return undefined;
    const pending = this.#pending.get(id);
    return pending?.state === "written" ? pending : undefined;
  }

  #unqueue(pending: Pending): void {
    this.#queued--;
    this.#outboxChars -= pending.body.length;
    pending.body = "";
  }

  #end(pending: Pending): void {
    const { state } = pending;
    pending.state = "ended";
    // A stranded exchange is no longer in the map, nor counted among what is queued.
    if (pending.attached) {
      pending.attached = false;
      this.#pending.delete(pending.id);
      if (state === "queued") {
        this.#unqueue(pending);
        this.#sweepOutbox();
      }
    }
    pending.body = "";
    pending.sink = undefined;
    this.#ended[this.#endedAt] = pending.id;
    this.#endedAt = (this.#endedAt + 1) % REMEMBERED_IDS;
  }

  /** Lets go of what was cancelled while it waited, before that is most of the outbox. */
  #sweepOutbox(): void {
    if (this.#outbox.length < SWEEP_ABOVE + 2 * this.#queued) return;
    this.#outbox = this.#outbox.filter(({ state }) => state === "queued");
  }

  #hasEnded(id: unknown): boolean {
    return typeof id === "number" && id !== 0 && this.#ended.includes(id);
  }
}

/** A peer's value in a form that is safe to keep: no longer than needed to recognise it. */
function brief(value: unknown): unknown {
  if (typeof value === "string") return value.length > 100 ? `${value.slice(0, 100)}…` : value;
  return typeof value === "object" && value !== null ? typeof value : value;
}

/** The beginning of a noise line, without what would move a terminal's cursor. */
function printable(text: string): string {
  const start = text.length > EXCERPT_CHARS ? `${text.slice(0, EXCERPT_CHARS)}…` : text;
  return start.replace(/\p{Cc}/gu, " ").trim();
}
