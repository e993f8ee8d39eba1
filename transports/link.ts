/**
 * A transport over one shared channel whose links come and go: lazy opening, single flight, backoff, and orderly close.
 *
 * A binding supplies `open`, which makes one link out of a socket or a process. Everything that is the same for all of
 * them (what is queued while there is no link, what fails when one is lost, when the next is opened) is here. Links are
 * opened again; exchanges are not issued again: that is the engine's to decide.
 */

import { type Clock, systemClock, type TimerHandle } from "../src/clock.ts";
import { ClosedError, ConnectError, type TransportError } from "../src/errors.ts";
import type {
  AuthChallenge,
  Delivery,
  Exchange,
  ExchangeFailure,
  ExchangeRequest,
  ExchangeSink,
  Limits,
  LinkState,
  Transport,
  TransportHost,
} from "../src/transport.ts";
import { Backoff, type BackoffOptions } from "./backoff.ts";
import { Channel, type ChannelPort, type FailureFactory, refuseExchange, type Stranded } from "./channel.ts";

export type { BackoffOptions } from "./backoff.ts";

/** Why a link ended, or did not come up. */
export interface LinkEnd {
  /** The error of one stranded exchange, made anew for each. */
  readonly error: (delivery: Delivery) => TransportError;
  /** The link must not be opened again: later exchanges fail with the same error, "not-sent". */
  readonly final?: boolean;
  /** The challenge of a refused link that a token function may answer; handed on to the engine. */
  readonly challenge?: AuthChallenge;
  /** How long the peer asked us to wait, in milliseconds. */
  readonly retryAfterMs?: number;
}

/** What `open` reports to. Everything is ignored after `down`, and after the transport was closed. */
export interface Link {
  readonly limits: Limits;
  /** The link can carry frames. */
  up(port: ChannelPort): void;
  /** One frame came. `isWhole` is false for what a stream ended in the middle of: it may be a frame, or the beginning of one. */
  receive(text: string, isWhole?: boolean): void;
  /** Bytes came that are no frame: what is wrong with them, and how many there were. */
  receiveBad(fault: string, bytes: number): void;
  /** The port has room again, after its `buffered` was high. */
  drained(): void;
  /** The link is lost, or did not come up. The first call counts. */
  down(end: LinkEnd): void;
  /** A callback of the host threw: it is told, and nothing else changes. */
  callbackFailed(callback: string, error: unknown): void;
}

/** What `open` gives back. */
export interface LinkResources {
  /**
   * Frees what the link holds, gracefully and within a bounded time. Called once, after `down` or when the transport is
   * closed. The next link is opened only when it has resolved, so two never exist side by side.
   */
  close(): Promise<void>;
}

/** How to make a transport out of links. */
export interface LinkTransportOptions {
  /** The binding: "stdio", "websocket", or a name of your own. */
  readonly name: string;
  /** Who is at the other end. Never a secret. */
  readonly peer: string;
  /** See {@link Transport.partition}; undefined where it can't be told, and private results are then not cached. */
  readonly partition?: (() => string) | undefined;
  /** Opens one link, for the exchange that asked for it. May throw: the link then did not come up. */
  readonly open: (link: Link, request: ExchangeRequest) => LinkResources;
  /** When a lost link is opened again: the next exchange does it, after this backoff. `false`: never. */
  readonly reconnect?: BackoffOptions | false | undefined;
  /** See {@link ChannelOptions.outboundBytes}. */
  readonly outboundBytes?: number | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

/** Makes a transport for a shared channel. See {@link LinkTransportOptions}. */
export function linkTransport(options: LinkTransportOptions): Transport {
  return new LinkTransport(options);
}

/**
 * - `idle`: no link; the next exchange asks for one.
 * - `waiting`: an exchange asked; backoff runs, or the link before is still being freed.
 * - `opening`: `open` was called, and the link is not up yet.
 * - `up`: frames flow.
 * - `barred`: the link must not be opened again.
 * - `closed`: the host closed the transport.
 */
type State = "idle" | "waiting" | "opening" | "up" | "barred" | "closed";

class LinkTransport implements Transport {
  readonly name: string;
  readonly peer: string;
  readonly shared = true;
  readonly #options: LinkTransportOptions;
  readonly #backoff: Backoff;
  readonly #clock: Clock;
  /** Closings under way: of the links before, and of the current one at the end. */
  readonly #freeing = new Set<Promise<void>>();
  #host: TransportHost | undefined;
  #channel: Channel | undefined;
  #state: State = "idle";
  #current: ActiveLink | undefined;
  /** The exchange that asked for the next link; one that answers a challenge goes first. */
  #asker: ExchangeRequest | undefined;
  #timer: TimerHandle;
  #bar: FailureFactory | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: LinkTransportOptions) {
    this.name = options.name;
    this.peer = options.peer;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#backoff = new Backoff(options.reconnect === false ? {} : options.reconnect, this.#clock);
  }

  partition(): string | undefined {
    return this.#options.partition?.();
  }

  attach(host: TransportHost): void {
    this.#host = host;
    this.#channel = new Channel(host, { outboundBytes: this.#options.outboundBytes });
  }

  exchange(request: ExchangeRequest, sink: ExchangeSink): Exchange {
    if (this.#state === "closed") return refuseExchange(sink, closedFailure("not-sent"));
    if (this.#state === "barred") return refuseExchange(sink, this.#bar!("not-sent"));
    if (this.#channel === undefined) {
      const error = new ConnectError("the transport was not attached to a client");
      return refuseExchange(sink, { delivery: "not-sent", error });
    }
    const exchange = this.#channel.exchange(request, sink);
    if (this.#state !== "up") this.#ask(request);
    return exchange;
  }

  close(): Promise<void> {
    this.#closing ??= this.#shutDown();
    return this.#closing;
  }

  #ask(request: ExchangeRequest): void {
    if (this.#asker === undefined || request.challenge !== undefined) this.#asker = request;
    if (this.#state !== "idle") return;
    this.#state = "waiting";
    const delayMs = this.#backoff.next();
    if (delayMs > 0) this.#timer = this.#clock.setTimer(this.#openWhenFree, delayMs);
    // A fresh turn, so that the host is not called back before `exchange` has returned.
    else queueMicrotask(this.#openWhenFree);
  }

  readonly #openWhenFree = (): void => {
    if (this.#freeing.size === 0) this.#open();
    else void Promise.all(this.#freeing).then(this.#openWhenFree);
  };

  #open(): void {
    if (this.#state !== "waiting") return;
    const asker = this.#asker;
    this.#asker = undefined;
    if (asker === undefined || this.#channel!.queued === 0) {
      // Every exchange that wanted the link was cancelled meanwhile.
      this.#state = "idle";
      return;
    }
    this.#state = "opening";
    this.#tell("connecting");
    if ((this.#state as State) !== "opening") return;
    const link = new ActiveLink(this.#host!.limits, this.#channel!, this.#linkUp, this.#linkDown);
    this.#current = link;
    try {
      link.resources = this.#options.open(link, asker);
    } catch (cause) {
      link.down({
        error: () => new ConnectError(`the ${this.name} link could not be opened`, { cause }),
      });
      return;
    }
    // `open` may have reported the end before it returned, or the host may have closed the transport meanwhile.
    if (this.#current !== link) this.#free(link);
  }

  readonly #linkUp = (link: ActiveLink, port: ChannelPort): void => {
    if (this.#current !== link || this.#state !== "opening") return;
    this.#state = "up";
    this.#asker = undefined;
    this.#backoff.up();
    this.#tell("up");
    if (this.#current === link) this.#channel!.up(port);
  };

  readonly #linkDown = (link: ActiveLink, end: LinkEnd): void => {
    if (this.#current !== link) return;
    const wasUp = this.#state === "up";
    const failure = failureFactory(end);
    this.#current = undefined;
    this.#asker = undefined;
    this.#backoff.down();
    if (end.final === true || (wasUp && this.#options.reconnect === false)) {
      this.#state = "barred";
      this.#bar = failure;
    } else {
      this.#state = "idle";
    }
    const stranded = this.#channel!.detach();
    this.#free(link);
    this.#tell("down", end.error(wasUp ? "unknown" : "not-sent"));
    this.#channel!.fail(stranded, failure);
  };

  /** Starts freeing a link once; `close` and the next opening wait for it. */
  #free(link: ActiveLink): void {
    const resources = link.resources;
    if (resources === undefined) return;
    link.resources = undefined;
    const freed: Promise<void> = resources.close().then(
      () => void this.#freeing.delete(freed),
      () => void this.#freeing.delete(freed),
    );
    this.#freeing.add(freed);
  }

  async #shutDown(): Promise<void> {
    this.#state = "closed";
    this.#clock.clearTimer(this.#timer);
    const link = this.#current;
    this.#current = undefined;
    this.#asker = undefined;
    let stranded: Stranded = [];
    if (this.#channel !== undefined) stranded = this.#channel.detach();
    link?.end();
    if (link !== undefined) this.#free(link);
    this.#tell("closed");
    this.#channel?.fail(stranded, closedFailure);
    // Closed from inside `open`, the link's resources are among these only after it has returned.
    do await Promise.all(this.#freeing);
    while (this.#freeing.size > 0);
  }

  #tell(state: LinkState, cause?: Error): void {
    try {
      this.#host?.link(state, cause);
    } catch (error) {
      this.#channel?.anomaly("host-callback", { callback: "link", error });
    }
  }
}

/** One link as its binding sees it: silent as soon as it has ended. */
class ActiveLink implements Link {
  readonly limits: Limits;
  resources: LinkResources | undefined;
  readonly #channel: Channel;
  readonly #up: (link: ActiveLink, port: ChannelPort) => void;
  readonly #down: (link: ActiveLink, end: LinkEnd) => void;
  #ended = false;

  constructor(
    limits: Limits,
    channel: Channel,
    up: (link: ActiveLink, port: ChannelPort) => void,
    down: (link: ActiveLink, end: LinkEnd) => void,
  ) {
    this.limits = limits;
    this.#channel = channel;
    this.#up = up;
    this.#down = down;
  }

  up(port: ChannelPort): void {
    if (!this.#ended) this.#up(this, port);
  }

  receive(text: string, isWhole?: boolean): void {
    if (!this.#ended) this.#channel.receive(text, isWhole);
  }

  receiveBad(fault: string, bytes: number): void {
    if (!this.#ended) this.#channel.receiveBad(fault, bytes);
  }

  drained(): void {
    if (!this.#ended) this.#channel.drained();
  }

  callbackFailed(callback: string, error: unknown): void {
    this.#channel.anomaly("host-callback", { callback, error });
  }

  down(end: LinkEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#down(this, end);
  }

  /** The transport is being closed: nothing more is reported. */
  end(): void {
    this.#ended = true;
  }
}

function failureFactory(end: LinkEnd): FailureFactory {
  return (delivery: Delivery): ExchangeFailure => ({
    delivery,
    error: end.error(delivery),
    ...(end.challenge !== undefined && { challenge: end.challenge }),
    ...(end.retryAfterMs !== undefined && { retryAfterMs: end.retryAfterMs }),
  });
}

function closedFailure(delivery: Delivery): ExchangeFailure {
  return { delivery, error: new ClosedError("the transport was closed", delivery) };
}
