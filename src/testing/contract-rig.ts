/** What the cases of the transport contract are played on: a transport, a scripted peer, and a record of every call. */

import assert from "node:assert/strict";
import { META, PROTOCOL_VERSION } from "../protocol.ts";
import type {
  AnomalyKind,
  Exchange,
  ExchangeFailure,
  ExchangeSink,
  LinkState,
  NotificationFrame,
  ResponseFrame,
  Transport,
  TransportHost,
} from "../transport.ts";
import type { JsonObject, WireId } from "../wire.ts";
import type { ScriptedPeer, Step } from "./peer-types.ts";

/** How an exchange ended. */
export type End =
  | { readonly kind: "response"; readonly frame: ResponseFrame }
  | { readonly kind: "failure"; readonly failure: ExchangeFailure };

/** Something that happens inside a call of a sink: how a case re-enters the transport. */
export type React = (call: "notification" | "response" | "failure", recorded: Recorded) => void;

/** One exchange and all that its sink was told. */
export class Recorded implements ExchangeSink {
  readonly id: WireId;
  readonly body: string;
  readonly notifications: NotificationFrame[] = [];
  end: End | undefined;
  readonly #violations: string[];
  readonly #react: React | undefined;
  readonly #patienceMs: number;
  #exchange: Exchange | undefined;
  #cancelled = false;
  #onEnd: (() => void) | undefined;
  #onNotification: (() => void) | undefined;

  constructor(id: WireId, body: string, rig: Rig, react: React | undefined) {
    this.id = id;
    this.body = body;
    this.#violations = rig.violations;
    this.#patienceMs = rig.patienceMs;
    this.#react = react;
  }

  /** Records that `exchange()` has returned. */
  started(exchange: Exchange): void {
    this.#exchange = exchange;
  }

  cancel(reason = "the case cancels", options?: { readonly silent?: boolean }): void {
    this.#cancelled = true;
    this.#exchange?.cancel(reason, options);
  }

  notification(frame: NotificationFrame): void {
    this.#check("notification");
    this.notifications.push(frame);
    this.#react?.("notification", this);
    this.#onNotification?.();
  }

  response(frame: ResponseFrame): void {
    this.#finish("response", { kind: "response", frame });
  }

  failure(failure: ExchangeFailure): void {
    this.#finish("failure", { kind: "failure", failure });
  }

  /** Resolves with the end. */
  ended(): Promise<End> {
    return patiently(this.#patienceMs, `exchange ${this.id} ended`, (resolve) => {
      if (this.end !== undefined) resolve(this.end);
      else this.#onEnd = () => resolve(this.end as End);
    });
  }

  /** Resolves with the result, which must be the end. */
  async result(): Promise<JsonObject> {
    const end = await this.ended();
    if (end.kind === "failure") {
      throw new Error(`exchange ${this.id} should have a result`, { cause: end.failure.error });
    }
    assert(end.frame.kind === "result", `exchange ${this.id} should have a result, not an error`);
    return end.frame.result;
  }

  /** Resolves with the failure, which must be the end. */
  async failed(): Promise<ExchangeFailure> {
    const end = await this.ended();
    assert(end.kind === "failure", `exchange ${this.id} should fail, but it was answered`);
    const { failure } = end;
    assert.equal(failure.error.delivery, failure.delivery, "failure and error tell the same delivery");
    return failure;
  }

  /** Resolves when there are `count` notifications. */
  notified(count: number): Promise<void> {
    return patiently(this.#patienceMs, `exchange ${this.id} had ${count} notifications`, (resolve) => {
      this.#onNotification = () => {
        if (this.notifications.length >= count) resolve();
      };
      this.#onNotification();
    });
  }

  #finish(call: "response" | "failure", end: End): void {
    this.#check(call);
    this.end ??= end;
    this.#react?.(call, this);
    this.#onEnd?.();
  }

  /** The grammar of a sink; see `ExchangeSink`. Violations are kept, because a transport may swallow what a sink throws. */
  #check(call: string): void {
    const told = `sink.${call}() of exchange ${this.id} was called`;
    if (this.#exchange === undefined) this.#violations.push(`${told} before exchange() returned`);
    if (this.#cancelled) this.#violations.push(`${told} after a cancel`);
    if (this.end !== undefined) this.#violations.push(`${told} after the exchange had ended`);
  }
}

/** A transport under test with its peer. */
export class Rig implements TransportHost {
  readonly peer: ScriptedPeer;
  readonly transport: Transport;
  readonly limits: { readonly messageBytes: number };
  readonly patienceMs: number;
  /** What the transport told its host. */
  readonly notifications: NotificationFrame[] = [];
  readonly links: LinkState[] = [];
  readonly anomalies: AnomalyKind[] = [];
  readonly violations: string[] = [];
  #lastId = 0;

  constructor(peer: ScriptedPeer, transport: Transport, messageBytes: number, patienceMs: number) {
    this.peer = peer;
    this.transport = transport;
    this.limits = { messageBytes };
    this.patienceMs = patienceMs;
    transport.attach(this);
  }

  notification(frame: NotificationFrame): void {
    this.notifications.push(frame);
  }

  link(state: LinkState): void {
    this.links.push(state);
  }

  anomaly(kind: AnomalyKind): void {
    this.anomalies.push(kind);
  }

  /** Starts an exchange. Its id is its progress token too, as the engine has it. */
  start(params: JsonObject = {}, options: { method?: string; react?: React } = {}): Recorded {
    const { method = "tools/call", react } = options;
    const id = ++this.#lastId;
    const meta = {
      [META.protocolVersion]: PROTOCOL_VERSION,
      [META.clientInfo]: { name: "transport-contract", version: "1.0.0" },
      [META.clientCapabilities]: {},
      [META.progressToken]: id,
    };
    const named = method === "tools/call" ? { name: "contract", ...params } : params;
    const body = JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...named, _meta: meta } });
    const recorded = new Recorded(id, body, this, react);
    recorded.started(
      this.transport.exchange(
        {
          id,
          method,
          ...(method === "tools/call" ? { name: String(named.name) } : {}),
          protocolVersion: PROTOCOL_VERSION,
          body,
          mirrored: [],
        },
        recorded,
      ),
    );
    return recorded;
  }

  /** Starts `count` exchanges in one turn. */
  startMany(count: number, params: JsonObject = {}): Recorded[] {
    return Array.from({ length: count }, () => this.start(params));
  }

  /** Resolves when `count` requests have reached the peer. */
  arrived(count: number): Promise<void> {
    return this.peer.waitFor(count, this.patienceMs);
  }

  /** Resolves when the peer has seen `count` cancellations. */
  cancelled(count: number): Promise<void> {
    return this.peer.waitForCancelled(count, this.patienceMs);
  }

  /** Closes everything and checks what holds at the end of every case. */
  async finish(): Promise<void> {
    await patiently(this.patienceMs, "close() resolved", (resolve, reject) =>
      this.transport.close().then(resolve, reject),
    );
    await this.peer.close();
    assert.deepEqual(this.violations, [], "the grammar of ExchangeSink is kept");
  }
}

/** Opens rigs for one case. */
export type OpenRig = (script: Step, options?: { messageBytes?: number }) => Promise<Rig>;

/** What a case needs the peer to be able to play over the binding. */
export type ContractNeed = "frames" | "loss" | "pieces";

/** One case of the contract. */
export interface ContractCase {
  readonly title: string;
  readonly needs?: ContractNeed;
  run(open: OpenRig): Promise<void>;
}

/** A promise that rejects when it takes too long, saying what should have happened. */
export function patiently<T>(
  patienceMs: number,
  what: string,
  executor: (resolve: (value: T) => void, reject: (error: unknown) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new assert.AssertionError({ message: `not within ${patienceMs} ms: ${what}` })),
      patienceMs,
    );
    executor(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
