/** A host and sinks that write down everything a transport tells them, and let a test wait for what it needs. */

import type {
  AnomalyKind,
  Exchange,
  ExchangeFailure,
  ExchangeRequest,
  LinkState,
  NotificationFrame,
  ResponseFrame,
  Transport,
  TransportHost,
} from "../../src/transport.ts";

export interface RecordedExchange {
  readonly id: number;
  readonly handle: Exchange;
  readonly notifications: NotificationFrame[];
  /** Every response and failure: a correct transport gives one, or none after a cancel. */
  readonly ends: (ResponseFrame | ExchangeFailure)[];
  /** The result of the response. Rejects with the error of a failure, or on an error response. */
  readonly result: Promise<Record<string, unknown>>;
  /** The failure. Rejects when a response comes. */
  readonly failure: Promise<ExchangeFailure>;
}

/** What the anomalies of a channel tell, all of it optional. */
export interface AnomalyDetail {
  readonly callback?: string;
  readonly excerpt?: string;
  readonly count?: number;
}

export interface Recorder {
  readonly host: TransportHost;
  readonly links: LinkState[];
  readonly causes: (Error | undefined)[];
  readonly notifications: NotificationFrame[];
  readonly anomalies: { kind: AnomalyKind; detail: AnomalyDetail }[];
  /** Sends one request with a fresh wire id. */
  send(method: string, params?: Record<string, unknown>, more?: Partial<ExchangeRequest>): RecordedExchange;
  /** Resolves as soon as `condition` holds, looked at whenever something was recorded. */
  until(condition: () => boolean): Promise<void>;
}

function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (error: Error) => void } {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((fulfil, refuse) => {
    resolve = fulfil;
    reject = refuse;
  });
  return { promise, resolve, reject };
}

let lastId = 0;

export function request(
  method: string,
  params: Record<string, unknown> = {},
  more: Partial<ExchangeRequest> = {},
): ExchangeRequest {
  const id = more.id ?? ++lastId;
  return {
    id,
    method,
    protocolVersion: "2026-07-28",
    body: JSON.stringify({ jsonrpc: "2.0", id, method, params }),
    mirrored: [],
    ...more,
  };
}

/** Attaches a recorder to something that carries exchanges; `limits` as in the contract. */
export function record(
  transport: Pick<Transport, "exchange"> & Partial<Pick<Transport, "attach">>,
  messageBytes = 16 * 1024 * 1024,
): Recorder {
  const waiters = new Set<() => void>();
  const changed = () => {
    for (const waiter of waiters) waiter();
  };
  const recorder: Recorder = {
    links: [],
    causes: [],
    notifications: [],
    anomalies: [],
    host: {
      limits: { messageBytes },
      notification(frame) {
        recorder.notifications.push(frame);
        changed();
      },
      link(state, cause) {
        recorder.links.push(state);
        recorder.causes.push(cause);
        changed();
      },
      anomaly(kind, detail) {
        recorder.anomalies.push({ kind, detail: detail as AnomalyDetail });
        changed();
      },
    },
    send(method, params, more) {
      const notifications: NotificationFrame[] = [];
      const ends: RecordedExchange["ends"] = [];
      const result = deferred<Record<string, unknown>>();
      const failure = deferred<ExchangeFailure>();
      result.promise.catch(() => {});
      failure.promise.catch(() => {});
      let returned = false;
      const fresh = () => {
        if (!returned) throw new Error("the sink was called before exchange() returned");
      };
      const handle = transport.exchange(request(method, params, more), {
        notification(frame) {
          fresh();
          notifications.push(frame);
          changed();
        },
        response(frame) {
          fresh();
          ends.push(frame);
          if (frame.kind === "result") result.resolve(frame.result);
          else result.reject(new Error(`error ${frame.error.code}: ${frame.error.message}`));
          failure.reject(new Error("a response came"));
          changed();
        },
        failure(end) {
          fresh();
          ends.push(end);
          failure.resolve(end);
          result.reject(end.error);
          changed();
        },
      });
      returned = true;
      return { id: lastId, handle, notifications, ends, result: result.promise, failure: failure.promise };
    },
    until(condition) {
      return new Promise((resolve) => {
        const check = () => {
          if (!condition()) return;
          waiters.delete(check);
          resolve();
        };
        waiters.add(check);
        check();
      });
    },
  };
  transport.attach?.(recorder.host);
  return recorder;
}
