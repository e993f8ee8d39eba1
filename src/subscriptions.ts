/** The subscriptions of one client: what they share, and the options that they are made from. */

import { AbortHub } from "./abort-hub.ts";
import type { Clock } from "./clock.ts";
import type { Declarations } from "./declarations.ts";
import { UsageError } from "./errors.ts";
import type { EventBus } from "./events.ts";
import type { InputHandlers } from "./inputs.ts";
import type { Negotiation } from "./negotiation.ts";
import { ActiveSubscription, type Subscription, type SubscriptionHost } from "./subscription.ts";
import { readFilter, type SubscriptionFilter } from "./subscription-filter.ts";
import { DEFAULT_RELISTEN, type RelistenRules } from "./subscription-state.ts";
import type { LinkState, NotificationFrame } from "./transport.ts";
import { isObject, type JsonObject, typeName } from "./wire.ts";

/** Options of `client.subscribe`. */
export interface SubscribeOptions {
  /** Closes the subscription. */
  readonly signal?: AbortSignal | undefined;
  /** The host's own value, handed to the transport's header and token functions. */
  readonly context?: unknown;
  /** Merged over the client's `meta`. */
  readonly meta?: JsonObject | (() => JsonObject) | undefined;
  /** Merged key by key over the client's, for the capabilities that the listen request declares. */
  readonly inputs?: InputHandlers | undefined;
  /** How long the server may take to acknowledge a listen request, in milliseconds. Default 10 000. */
  readonly ackMs?: number | undefined;
  /** When a lost stream is listened to again. */
  readonly relisten?: Partial<RelistenRules> | undefined;
  /** How many items may wait to be read before a `gap` takes the place of further ones. Default 1000. */
  readonly queueSize?: number | undefined;
}

/** What the subscriptions of a client need. */
export interface SubscriptionsOptions {
  readonly engine: Pick<SubscriptionHost, "openStream"> & {
    watchLink(watcher: (state: LinkState) => void): () => void;
  };
  /** Whether the transport is a shared channel, whose links are told of. */
  readonly shared: boolean;
  /** Whether each link is probed: a listen request then waits for its link before it is handed to the transport. */
  readonly probes: boolean;
  readonly clock: Clock;
  readonly events: EventBus;
  readonly negotiation: Negotiation;
  /** Whether the client declares extensions, which may have filters of their own. */
  readonly extensible: boolean;
  readonly notified: SubscriptionHost["notified"];
  readonly missed: SubscriptionHost["missed"];
}

/** What differs from one subscription to the next besides its options. */
export interface SubscriptionParts {
  readonly declarations: Declarations;
  readonly hostMeta: string | (() => string);
}

/** All subscriptions of one client. */
export class Subscriptions implements SubscriptionHost {
  readonly clock: Clock;
  readonly events: EventBus;
  readonly negotiation: Negotiation;
  readonly aborts = new AbortHub();
  readonly openStream: SubscriptionHost["openStream"];
  readonly #options: SubscriptionsOptions;
  readonly #running = new Set<ActiveSubscription>();
  #linkIsUp: boolean;
  #lastId = 0;
  #closed = false;

  constructor(options: SubscriptionsOptions) {
    this.#options = options;
    this.clock = options.clock;
    this.events = options.events;
    this.negotiation = options.negotiation;
    this.openStream = (stream, sink) => options.engine.openStream(stream, sink);
    this.#linkIsUp = !options.shared || options.probes;
    if (options.shared) options.engine.watchLink((state) => this.#linkChanged(state));
  }

  get canWrite(): boolean {
    return this.#linkIsUp;
  }

  /** Starts a subscription. @throws {UsageError} when the filter or an option cannot work; nothing is sent then. */
  open(filter: SubscriptionFilter, options: SubscribeOptions, parts: () => SubscriptionParts): Subscription {
    const given: unknown = options;
    if (!isObject(given)) {
      throw new UsageError(`the options of subscribe must be an object, not ${typeName(given)}`, {
        path: "options",
      });
    }
    const { ackMs = 10_000, queueSize = 1000, signal, context } = options;
    checkPositive(ackMs, "ackMs");
    checkPositive(queueSize, "queueSize");
    const spec = {
      filter: readFilter(filter, this.#options.extensible),
      ...parts(),
      context,
      signal,
      ackMs,
      relisten: readRelisten(options.relisten),
      queueSize,
    };
    const subscription = new ActiveSubscription(++this.#lastId, spec, this);
    if (this.#closed) subscription.clientClosed();
    else {
      this.#running.add(subscription);
      subscription.start();
    }
    return subscription;
  }

  notified(frame: NotificationFrame): unknown {
    return this.#options.notified(frame);
  }

  missed(): unknown {
    return this.#options.missed();
  }

  left(subscription: ActiveSubscription): void {
    this.#running.delete(subscription);
  }

  /** Ends all of them; later ones end at once. */
  close(): void {
    this.#closed = true;
    for (const subscription of [...this.#running]) subscription.clientClosed();
  }

  #linkChanged(state: LinkState): void {
    this.#linkIsUp = state === "up";
    if (!this.#linkIsUp) return;
    for (const subscription of [...this.#running]) subscription.linkUp();
  }
}

function readRelisten(option: Partial<RelistenRules> = {}): RelistenRules {
  const given: unknown = option;
  if (!isObject(given)) {
    throw new UsageError(`relisten must be an object, not ${typeName(given)}`, { path: "relisten" });
  }
  const rules = { ...DEFAULT_RELISTEN };
  for (const key of Object.keys(rules) as (keyof RelistenRules)[]) rules[key] = option[key] ?? rules[key];
  // Without a pause a server that ends every stream would be asked as fast as it answers.
  checkPositive(rules.backoffMs, "relisten.backoffMs");
  checkPositive(rules.maxMs, "relisten.maxMs");
  for (const key of ["stableMs", "max", "firstMax"] as const) {
    if (!(rules[key] >= 0)) {
      throw new UsageError(
        `relisten.${key} must be a number that is not negative, not ${String(rules[key])}`,
        {
          path: `relisten.${key}`,
        },
      );
    }
  }
  return rules;
}

function checkPositive(value: number, path: string): void {
  if (typeof value === "number" && value > 0) return;
  throw new UsageError(`${path} must be a number greater than 0, not ${String(value)}`, { path });
}
