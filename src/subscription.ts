/**
 * `subscriptions/listen`: one handle for the host, however many listen requests it takes to keep it.
 * What happens when is decided by the reducer in subscription-state.ts; here it is done.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions}
 */

import type { Abortable, AbortHub } from "./abort-hub.ts";
import type { Clock, TimerHandle } from "./clock.ts";
import type { Declarations } from "./declarations.ts";
import { cancelled, clientClosed, metaFailed } from "./engine-errors.ts";
import type { RallyError } from "./errors.ts";
import { callHost, type EventBus } from "./events.ts";
import { judgeFailure, judgeResponse } from "./listen-end.ts";
import { Listen, type ListenHandle, type ListenOwner, type ListenStream } from "./listen-request.ts";
import type { Negotiation } from "./negotiation.ts";
import { ignore } from "./outcome.ts";
import { encodeValue } from "./request.ts";
import type { Acknowledgment, SubscriptionFilter } from "./subscription-filter.ts";
import { endedUnacknowledged, notAcknowledged, readChange, readNews } from "./subscription-frames.ts";
import { type SubscriptionItem, SubscriptionQueue } from "./subscription-queue.ts";
import { SubscriptionReporter } from "./subscription-reporter.ts";
import {
  NEW_SUBSCRIPTION,
  type RelistenRules,
  type SubscriptionEffect,
  type SubscriptionEnd,
  type SubscriptionEvent,
  stepSubscription,
} from "./subscription-state.ts";
import type {
  AuthChallenge,
  Envelope,
  ExchangeFailure,
  ExchangeSink,
  NotificationFrame,
  ResponseFrame,
} from "./transport.ts";

/**
 * A running subscription. Iterate over it for the changes; leaving the loop closes it. The loop ends by itself when the
 * subscription does, for whatever reason: `closed` tells which.
 */
export interface Subscription extends AsyncIterable<SubscriptionItem, undefined> {
  /** Its number in this client, as events show it: the same however often it listens again. */
  readonly id: number;
  readonly state: "opening" | "open" | "lost" | "closed";
  /**
   * The part of the filter that the server honours, from its first acknowledgment; it may be empty. Rejects with the error
   * when the subscription ends before that.
   */
  readonly acknowledged: Promise<SubscriptionFilter>;
  /** What the last acknowledgment left out of the filter: names of its members, and URIs. Empty before the first. */
  readonly refused: readonly string[];
  /** Resolves once, with the reason. Never rejects. */
  readonly closed: Promise<SubscriptionEnd>;
  /** Ends the subscription. Idempotent. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What a subscription needs of its client. */
export interface SubscriptionHost {
  readonly clock: Clock;
  readonly events: EventBus;
  readonly negotiation: Negotiation;
  readonly aborts: AbortHub;
  /** Whether frames can be written now: false on a shared channel without a link. */
  readonly canWrite: boolean;
  openStream(stream: ListenStream, sink: ExchangeSink): ListenHandle;
  /** A change notification came: evicts what it makes stale, and tells the host's listener, whose promise it may give. */
  notified(frame: NotificationFrame): unknown;
  /** Changes may have been missed: whatever is cached may be stale. */
  missed(): unknown;
  /** It is over. */
  left(subscription: ActiveSubscription): void;
}

/** One subscription as the host asked for it, checked. Times are in milliseconds. */
export interface SubscriptionSpec {
  readonly filter: SubscriptionFilter;
  readonly declarations: Declarations;
  readonly hostMeta: string | (() => string);
  readonly context: unknown;
  readonly signal: AbortSignal | undefined;
  readonly ackMs: number;
  readonly relisten: RelistenRules;
  readonly queueSize: number;
}

/** See {@link Subscription}. Made by the client alone. */
export class ActiveSubscription implements Subscription, Abortable, ListenOwner {
  readonly id: number;
  readonly acknowledged: Promise<SubscriptionFilter>;
  readonly closed: Promise<SubscriptionEnd>;
  readonly #host: SubscriptionHost;
  readonly #spec: SubscriptionSpec;
  readonly #filterText: string;
  readonly #queue: SubscriptionQueue;
  readonly #report: SubscriptionReporter;
  #state = NEW_SUBSCRIPTION;
  #refused: readonly string[] = [];
  /** The listen request that is out. */
  #listen: Listen | undefined;
  /** The acknowledgment's timer, or the pause's: never both. */
  #timer: TimerHandle;
  /** The next frame comes after a loss: a gap goes before it. */
  #owesGap = false;
  #challenge: AuthChallenge | undefined;
  #abortReason: unknown;
  #acknowledge!: (filter: SubscriptionFilter) => void;
  #refuse!: (error: RallyError) => void;
  #settle!: (end: SubscriptionEnd) => void;

  constructor(id: number, spec: SubscriptionSpec, host: SubscriptionHost) {
    this.id = id;
    this.#spec = spec;
    this.#host = host;
    this.#filterText = `"notifications":${encodeValue(spec.filter, "filter")}`;
    this.#queue = new SubscriptionQueue(spec.queueSize, () => this.#end({ reason: "closed-by-host" }));
    this.#report = new SubscriptionReporter(id, host.events, host.clock);
    this.acknowledged = new Promise((resolve, reject) => {
      this.#acknowledge = resolve;
      this.#refuse = reject;
    });
    // A host need not look at it: a rejection that nobody handles would end its process (SAF-02).
    this.acknowledged.catch(ignore);
    this.closed = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** Sends the first listen request, unless the signal has aborted. */
  start(): void {
    const { signal } = this.#spec;
    if (signal?.aborted) {
      this.aborted(signal.reason);
      return;
    }
    if (signal !== undefined) this.#host.aborts.join(signal, this);
    this.#run("listen");
  }

  get state(): Subscription["state"] {
    return this.#state.phase.at;
  }

  get refused(): readonly string[] {
    return this.#refused;
  }

  [Symbol.asyncIterator](): AsyncIterator<SubscriptionItem, undefined> {
    return this.#queue;
  }

  async close(): Promise<void> {
    this.#end({ reason: "closed-by-host" });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  aborted(reason: unknown): void {
    this.#abortReason = reason;
    this.#end({ reason: "closed-by-host" });
  }

  /** The client is being closed. */
  clientClosed(): void {
    this.#end({ reason: "client-closed" });
  }

  /** A link is up: from now on an acknowledgment can come. */
  linkUp(): void {
    const listen = this.#listen;
    if (listen?.isSent === true && this.#timer === undefined) this.#awaitAcknowledgment(listen);
  }

  // --- what a listen request tells ------------------------------------------------------------------------------------

  sent(listen: Listen): void {
    // A channel that waits for its link may wait for long; its own bounds hold there.
    if (this.#host.canWrite) this.#awaitAcknowledgment(listen);
  }

  received(listen: Listen, frame: NotificationFrame): void {
    if (this.#listen !== listen) return;
    const news = readNews(listen, frame, this.#spec.filter, this.#report);
    switch (news?.type) {
      case "acknowledged":
        return this.#acknowledgedBy(listen, news);
      case "changed":
        return this.#changed(listen, frame);
      case "cancelled":
        return this.#cancelledByServer(news.message);
    }
  }

  answered(listen: Listen, frame: ResponseFrame, envelope: Envelope | undefined): void {
    if (this.#listen !== listen) return;
    this.#listen = undefined;
    this.#dispatch(judgeResponse(listen, frame, envelope, this.#host.negotiation));
  }

  failed(listen: Listen, failure: ExchangeFailure): void {
    if (this.#listen !== listen) return;
    this.#listen = undefined;
    const end = judgeFailure(listen, failure, this.#host.negotiation);
    if (end === undefined) return this.#lose(failure.error, failure.retryAfterMs);
    this.#challenge = failure.challenge;
    this.#dispatch(end);
  }

  #acknowledgedBy(listen: Listen, { filter, refused }: Acknowledgment): void {
    listen.isAcknowledged = true;
    this.#stopTimer();
    this.#payGap();
    this.#host.negotiation.sawModern();
    this.#refused = refused;
    this.#acknowledge(filter);
    this.#dispatch({ type: "acknowledged", nowMs: this.#host.clock.now() });
  }

  #changed(listen: Listen, frame: NotificationFrame): void {
    this.#payGap();
    callHost(() => this.#host.notified(frame));
    if (this.#listen !== listen) return;
    const change = readChange(frame, this.#spec.filter);
    if ("type" in change) this.#queue.push(change);
    else this.#report.anomaly(listen, change);
  }

  #cancelledByServer(message: string | undefined): void {
    // The server knows: it is not told again.
    this.#cancel("ended by the server", true);
    this.#end({ reason: "server-cancelled", ...(message !== undefined && { message }) });
  }

  // --- steps ----------------------------------------------------------------------------------------------------------

  #end(end: SubscriptionEnd): void {
    this.#dispatch({ type: "end", end });
  }

  #fail(error: RallyError): void {
    this.#end({ reason: "failed", error });
  }

  #lose(error: RallyError, retryAfterMs?: number): void {
    this.#stopTimer();
    // From here on nobody tells what changes.
    if (this.#state.phase.at === "open") callHost(() => this.#host.missed());
    const nowMs = this.#host.clock.now();
    this.#dispatch({ type: "lost", error, retryAfterMs, nowMs, random: Math.random() }, error.code);
  }

  #dispatch(event: SubscriptionEvent, code?: string): void {
    const before = this.#state;
    const { state, effects } = stepSubscription(before, event, this.#spec.relisten);
    if (state === before) return;
    this.#state = state;
    for (const effect of effects) this.#run(effect);
    // A listen request tells of itself, with its id.
    if (this.#state === state && state.phase.at !== "opening") this.#publish(code);
  }

  #run(effect: SubscriptionEffect): void {
    switch (effect) {
      case "listen":
        return this.#sendListen();
      case "pause":
        return this.#pause();
      case "settle":
        return this.#close();
    }
  }

  #sendListen(): void {
    this.#stopTimer();
    const spec = this.#spec;
    const host = this.#host;
    let meta: string;
    try {
      meta = typeof spec.hostMeta === "string" ? spec.hostMeta : spec.hostMeta();
    } catch (cause) {
      return this.#fail(metaFailed(cause));
    }
    // A meta function may have closed it from within.
    if (this.#state.phase.at !== "opening") return;
    if (this.#state.known) this.#owesGap = true;
    const challenge = this.#challenge;
    this.#challenge = undefined;
    const listen = new Listen(this, host.clock.now());
    this.#listen = listen;
    const parts = {
      declarations: spec.declarations,
      hostMeta: meta,
      params: this.#filterText,
      context: spec.context,
      challenge,
    };
    listen.open(parts, host.openStream);
    this.#publish();
  }

  #awaitAcknowledgment(listen: Listen): void {
    const { clock } = this.#host;
    const { ackMs } = this.#spec;
    if (listen.isAcknowledged || ackMs === Number.POSITIVE_INFINITY) return;
    this.#timer = clock.setTimer(() => {
      this.#timer = undefined;
      if (this.#listen !== listen) return;
      this.#cancel("not acknowledged in time", false);
      this.#lose(notAcknowledged(ackMs, clock.now() - listen.openedMs));
    }, ackMs);
  }

  #pause(): void {
    const { phase } = this.#state;
    if (phase.at !== "lost") return;
    this.#timer = this.#host.clock.setTimer(() => {
      this.#timer = undefined;
      this.#dispatch({ type: "timer" });
    }, phase.delayMs);
  }

  #close(): void {
    const { phase } = this.#state;
    if (phase.at !== "closed") return;
    const { end } = phase;
    const host = this.#host;
    this.#stopTimer();
    this.#cancel(end.reason === "client-closed" ? "the client is closing" : "cancelled by the caller", false);
    if (this.#spec.signal !== undefined) host.aborts.leave(this.#spec.signal, this);
    host.left(this);
    this.#queue.end({ drop: end.reason === "closed-by-host" });
    this.#settle(end);
    this.#refuse(this.#unacknowledged(end));
  }

  #unacknowledged(end: SubscriptionEnd): RallyError {
    if (end.reason === "failed") return end.error;
    if (end.reason === "closed-by-host") return cancelled(this.#abortReason);
    if (end.reason === "client-closed") return clientClosed("unknown");
    return endedUnacknowledged(end.reason);
  }

  // --- small things -----------------------------------------------------------------------------------------------

  #cancel(reason: string, silent: boolean): void {
    const listen = this.#listen;
    this.#listen = undefined;
    if (listen !== undefined) callHost(() => listen.cancel(reason, silent));
  }

  #stopTimer(): void {
    if (this.#timer === undefined) return;
    this.#host.clock.clearTimer(this.#timer);
    this.#timer = undefined;
  }

  #payGap(): void {
    if (!this.#owesGap) return;
    this.#owesGap = false;
    callHost(() => this.#host.missed());
    this.#queue.push({ type: "gap", reason: "relistened" });
  }

  #publish(code?: string): void {
    this.#report.changed(this.#state.phase, this.#listen?.wireId, this.#refused, code);
  }
}
