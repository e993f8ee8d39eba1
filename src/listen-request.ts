/** One `subscriptions/listen` request: how it is opened, and the sink that its exchange delivers to. */

import { type Declarations, metaText } from "./declarations.ts";
import { encodeRequest } from "./request.ts";
import type {
  AuthChallenge,
  Envelope,
  ExchangeFailure,
  ExchangeSink,
  NotificationFrame,
  ResponseFrame,
} from "./transport.ts";
import type { WireId } from "./wire.ts";

export const LISTEN = "subscriptions/listen";

/** What the engine opens a stream from. */
export interface ListenStream {
  readonly method: string;
  readonly encode: (id: WireId, version: string) => string;
  readonly context: unknown;
  readonly challenge: AuthChallenge | undefined;
}

/** A stream that the engine opened. */
export interface ListenHandle {
  readonly wireId: WireId;
  /** `silent` gives it up without telling the peer. */
  cancel(reason: string, options?: { readonly silent?: boolean }): void;
}

/** What a listen request tells of. */
export interface ListenOwner {
  /** The frame is about to be written, or to wait for a link. */
  sent(listen: Listen): void;
  received(listen: Listen, frame: NotificationFrame): void;
  answered(listen: Listen, frame: ResponseFrame, envelope: Envelope | undefined): void;
  failed(listen: Listen, failure: ExchangeFailure): void;
}

/** What one listen request is made of. */
export interface ListenParts {
  readonly declarations: Declarations;
  /** The host's metadata for this request, as text. */
  readonly hostMeta: string;
  /** The filter, as the inner text of the params. */
  readonly params: string;
  readonly context: unknown;
  readonly challenge: AuthChallenge | undefined;
}

/** One listen request. One that is no longer its owner's has no effect. */
export class Listen implements ExchangeSink {
  readonly openedMs: number;
  /** The version that it declared. */
  version = "";
  isSent = false;
  isAcknowledged = false;
  /** Anomalies that were told already: a server that makes one makes it with every frame. */
  readonly told = new Set<string>();
  readonly #owner: ListenOwner;
  #handle: ListenHandle | undefined;

  constructor(owner: ListenOwner, openedMs: number) {
    this.#owner = owner;
    this.openedMs = openedMs;
  }

  /** Its id, which the protocol calls the subscription id. Undefined before it is opened. */
  get wireId(): WireId | undefined {
    return this.#handle?.wireId;
  }

  open(parts: ListenParts, openStream: (stream: ListenStream, sink: ExchangeSink) => ListenHandle): void {
    const { declarations, hostMeta, params, context, challenge } = parts;
    const encode = (id: WireId, protocolVersion: string) => {
      this.version = protocolVersion;
      this.isSent = true;
      this.#owner.sent(this);
      const attempt = { protocolVersion, host: hostMeta, logLevel: undefined, progressToken: undefined };
      return encodeRequest({
        id,
        method: LISTEN,
        params,
        meta: metaText(declarations, attempt),
        responses: undefined,
        requestState: undefined,
      });
    };
    this.#handle = openStream({ method: LISTEN, encode, context, challenge }, this);
  }

  cancel(reason: string, silent: boolean): void {
    this.#handle?.cancel(reason, { silent });
  }

  notification(frame: NotificationFrame): void {
    this.#owner.received(this, frame);
  }

  response(frame: ResponseFrame, envelope?: Envelope): void {
    this.#owner.answered(this, frame, envelope);
  }

  failure(failure: ExchangeFailure): void {
    this.#owner.failed(this, failure);
  }
}
