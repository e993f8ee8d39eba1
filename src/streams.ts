/** Exchanges that are no operation: the streams of `subscriptions/listen`. */

import type { Attempts } from "./attempts.ts";
import { asTransportError, clientClosed } from "./engine-errors.ts";
import type { RallyError } from "./errors.ts";
import type { Negotiation } from "./negotiation.ts";
import type { AuthChallenge, Exchange, ExchangeRequest, ExchangeSink } from "./transport.ts";
import type { WireId } from "./wire.ts";

/** A stream that is no operation: an exchange of `subscriptions/listen`. */
export interface StreamRequest {
  readonly method: string;
  readonly encode: (id: WireId, version: string) => string;
  readonly context: unknown;
  /** The challenge that refused the exchange before this one. */
  readonly challenge?: AuthChallenge | undefined;
}

/** A running stream. */
export interface StreamHandle {
  readonly wireId: WireId;
  /** As {@link Exchange.cancel}. */
  cancel(reason: string, options?: { readonly silent?: boolean }): void;
}

/** A stream that waits at the gate. */
export interface WaitingStream {
  open(): void;
  refuse(error: RallyError): void;
}

/** What the engine lends to this. */
export interface StreamsParts {
  readonly gate: {
    readonly isOpen: boolean;
    wait(stream: WaitingStream): void;
    leave(stream: WaitingStream): boolean;
  };
  readonly negotiation: Negotiation;
  readonly exchanges: Pick<Attempts, "mint" | "open" | "abandon">;
  readonly isClosed: () => boolean;
}

/** Opens the streams of one client. */
export class Streams {
  readonly #parts: StreamsParts;

  constructor(parts: StreamsParts) {
    this.#parts = parts;
  }

  /**
   * Opens one stream. It waits at the gate as operations do; the returned handle may be cancelled at any time, also before
   * the exchange exists. The sink is not called before this returns.
   */
  open(stream: StreamRequest, sink: ExchangeSink): StreamHandle {
    const { gate, negotiation, exchanges, isClosed } = this.#parts;
    const wireId = exchanges.mint();
    const holder = { handle: undefined as Exchange | undefined, cancelled: false };
    const fail = (error: RallyError) => {
      if (!holder.cancelled) sink.failure({ delivery: "not-sent", error: asTransportError(error) });
    };
    const open = () => {
      if (holder.cancelled) return;
      if (isClosed()) return fail(clientClosed());
      const protocolVersion = negotiation.version;
      const request: ExchangeRequest = {
        id: wireId,
        method: stream.method,
        protocolVersion,
        body: stream.encode(wireId, protocolVersion),
        mirrored: [],
        longLived: true,
        ...(stream.context !== undefined && { context: stream.context }),
        ...(stream.challenge !== undefined && { challenge: stream.challenge }),
      };
      exchanges.open(request, sink, holder);
      // A host's header function may have cancelled it from within.
      if (holder.cancelled) exchanges.abandon(holder.handle, "the stream was closed");
    };
    const waiting: WaitingStream = { open, refuse: fail };
    queueMicrotask(() => (gate.isOpen ? open() : holder.cancelled || gate.wait(waiting)));
    return {
      wireId,
      cancel: (reason, options) => {
        holder.cancelled = true;
        gate.leave(waiting);
        holder.handle?.cancel(reason, options);
      },
    };
  }
}
