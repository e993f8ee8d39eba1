/** What a script of {@link createScriptedPeer} sees and can do. */

import type { Socket } from "node:net";
import type { MemoryHandler } from "../../transports/memory.ts";
import type { Transport } from "../transport.ts";
import type { JsonObject, RpcId } from "../wire.ts";

/** One request as it reached the peer. */
export interface PeerRequest {
  readonly id: RpcId;
  readonly method: string;
  /** The params; an empty object when the request had none. */
  readonly params: JsonObject;
  /** `params._meta`; an empty object when there was none. */
  readonly meta: JsonObject;
  /** The frame as it came, character for character. */
  readonly text: string;
  /** The headers: of the POST over HTTP, of the upgrade over WebSocket. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
  /** Which connection of the binding carried it, from 0: over stdio, how often the process was started before. */
  readonly link: number;
}

/** A whole HTTP answer, as a script wants it. */
export interface PeerHttpAnswer {
  /** Default 200. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Several parts are written one by one, each in a turn of its own. */
  readonly body?: string | Uint8Array | readonly (string | Uint8Array)[];
}

/**
 * One request in the hands of its script. Nothing here is checked: a script may answer twice, late, or with nonsense.
 *
 * `result`, `error`, `raw` and `pieces` end the exchange. On a shared channel everything still works afterwards and after a
 * cancel, which is how a script plays a duplicate or a late answer; over HTTP there is no place left to write to, so
 * it is ignored. A script that returns without ending its exchange leaves it open: the client waits.
 */
export interface PeerExchange {
  /** The number of this exchange, from 0, over all bindings of the peer. */
  readonly index: number;
  /** Aborts when the client cancels the request or its connection goes away, unless the exchange had ended. */
  readonly signal: AbortSignal;
  /** Resolves with the reason when `signal` aborts. Never rejects. */
  readonly cancelled: Promise<string>;
  /** The socket under this exchange, for what no method here plays. Absent in memory; over stdio, the bridge to the child. */
  readonly socket?: Socket;
  /** Answers with a result. */
  result(value: unknown): void;
  /**
   * Answers with a JSON-RPC error. Over HTTP the status is `options.status`; by default 404 for an unknown method, 400 for
   * the codes that tell of a bad request, else 200.
   */
  error(code: number, message: string, data?: unknown, options?: { readonly status?: number }): void;
  /** Sends a notification. Over HTTP it makes the answer an event stream. */
  notify(method: string, params?: JsonObject): void;
  /** Sends a frame of any text; the exchange goes on. Over HTTP it makes the answer an event stream. */
  frame(text: string): void;
  /** Sends a text verbatim in place of the answer. */
  raw(text: string): void;
  /** As `raw`, in pieces of `size` bytes, each written by itself, whatever characters that cuts. */
  pieces(text: string, size: number): Promise<void>;
  /**
   * Writes bytes with no framing: to the child's stdout, into the body of the HTTP event stream, or onto the socket under the
   * WebSocket. Resolves when they are written. Not in memory.
   */
  bytes(data: Uint8Array | string): Promise<void>;
  /**
   * Ends the connection in good order without an answer: the event stream or the HTTP body, the child (exit code 0), the
   * WebSocket (with the close code given, by default 1001).
   */
  drop(closeCode?: number): void;
  /** Kills the child with SIGKILL, or resets the socket. */
  crash(): void;
  /** Answers in HTTP's own terms. Throws on the other bindings. */
  http(answer: PeerHttpAnswer): void;
}

/** Decides what the peer does with one request. An error thrown here is answered with -32603 and fails `peer.close()`. */
export type Script = (request: PeerRequest, exchange: PeerExchange) => void | Promise<void>;

/** A script, or the result to give. */
export type Step = Script | JsonObject;

/** Options of {@link createScriptedPeer}. */
export interface ScriptedPeerOptions {
  /** Answers `server/discover` by itself, so that scripts see the calls alone. A result to give, or false. Default true. */
  readonly discover?: boolean | JsonObject;
  /** How long `close` waits for the client's sockets and processes to go before it calls them leftovers. Default 1000. */
  readonly closeGraceMs?: number;
}

/** A server of the scripted peer that listens. */
export interface PeerServer {
  readonly url: string;
  /** The same as the peer's `close`, for this server alone. */
  close(): Promise<void>;
}

/** A command that starts a child process whose stdin and stdout lead to the scripted peer. */
export interface PeerCommand {
  readonly command: string;
  readonly args: string[];
  /** The same as the peer's `close`, for these children alone. */
  close(): Promise<void>;
}

/** What a shared channel of your own must be able to do, to carry a scripted peer. */
export interface PeerChannelPort {
  /** Sends one frame, with the channel's own framing. */
  send(text: string): void;
  /** Sends bytes with no framing. Needed by scripts that call `exchange.bytes()`. */
  write?(data: Uint8Array | string): void;
  /**
   * Sends one frame in the pieces given, each by itself. Needed by scripts that call `exchange.pieces()` when the framing is
   * not `send`'s; the default joins them.
   */
  sendPieces?(parts: readonly Uint8Array[]): Promise<void>;
  /** Ends the channel in good order. */
  end(): void;
  /** Breaks the channel as a crash would. Default: `end`. */
  crash?(): void;
}

/** The peer's end of a channel of your own. */
export interface PeerChannel {
  /** Takes one message that came. */
  receive(text: string): void;
  /** Tells that the channel is gone: the signals of what is open on it abort. */
  gone(reason: string): void;
}

/** How the HTTP binding of a scripted peer behaves. */
export interface PeerHttpOptions {
  /** How requests are answered when nothing demands otherwise. Default "json". */
  readonly answer?: "json" | "sse";
}

/** A peer that plays a script over any binding. */
export interface ScriptedPeer {
  /** The requests that scripts were given, in order. A `server/discover` that the peer answered itself is not among them. */
  readonly requests: readonly PeerRequest[];
  /** The notifications that clients sent, in order. */
  readonly notifications: readonly { readonly method: string; readonly params: JsonObject }[];
  /** Every frame that clients sent, in order, as text. */
  readonly received: readonly string[];
  /** The ids of the requests that clients cancelled: by notification on a channel, by closing the stream over HTTP. */
  readonly cancelled: readonly RpcId[];
  /** Resolves when at least `count` requests have come; rejects after `timeoutMs` (default 5000). */
  waitFor(count: number, timeoutMs?: number): Promise<void>;
  /** Resolves when at least `count` requests were cancelled; rejects after `timeoutMs` (default 5000). */
  waitForCancelled(count: number, timeoutMs?: number): Promise<void>;
  /** A transport that leads to the peer inside this process. Everything but `bytes` and `http` can be played over it. */
  memory(): Transport;
  /** A handler for `memoryTransport`. It can answer and notify; the other methods of an exchange throw. */
  handler(): MemoryHandler;
  /** Serves one connection of a shared channel that you accept yourself: how a transport of your own is tested. */
  channel(port: PeerChannelPort): PeerChannel;
  /** Starts a Streamable HTTP server on 127.0.0.1. */
  http(options?: PeerHttpOptions): Promise<PeerServer>;
  /** Makes a command to start over stdio. Each child that it starts is a real process; scripts run in this one. */
  stdio(): Promise<PeerCommand>;
  /** Starts a WebSocket server on 127.0.0.1. */
  websocket(): Promise<PeerServer>;
  /**
   * Closes everything. Rejects when a client left a socket open or a child running after `closeGraceMs`, or when a script had
   * thrown, so that every test is also a test for leaks. Everything is freed either way.
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
