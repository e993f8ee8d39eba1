/** One WebSocket: the upgrade, the frames, the ping watchdog, and what each way to end means (WS-01, WS-02). */

import type { Agent, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { ClientOptions, RawData, WebSocket } from "ws";
import { ConnectError, ConnectionLostError, LimitError, type TransportError } from "../src/errors.ts";
import type { AuthChallenge, Delivery, ExchangeRequest } from "../src/transport.ts";
import { readChallenge } from "./auth-challenge.ts";
import type { ChannelPort } from "./channel.ts";
import { type CallInfo, flattenHeaders, type HttpHeaders } from "./http-headers.ts";
import type { TokenSource } from "./http-token.ts";
import type { Link, LinkEnd, LinkResources } from "./link.ts";
import { retryAfterMs } from "./retry-after.ts";

/** What every link of a transport has in common. Times are in milliseconds. */
export interface WebSocketSettings {
  readonly url: string;
  readonly peer: string;
  readonly headers: HttpHeaders | ((call: CallInfo) => HttpHeaders);
  readonly token: TokenSource | undefined;
  readonly pingMs: number;
  readonly pongMs: number;
  readonly handshakeMs: number;
  readonly closeMs: number;
  readonly agent: Agent | undefined;
}

const SUBPROTOCOL = "mcp";
const NORMAL = 1000;
const UNSUPPORTED_DATA = 1003;

/** Close codes after which connecting again would end the same way: a broken protocol, a policy, a size. */
const FINAL_CODES: ReadonlySet<number> = new Set([1002, 1003, 1007, 1008, 1009]);

/** How `ws` names a message that is larger than `maxPayload`. */
const OVERSIZE = "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH";
/** Its other faults in what came: close codes 1002 and 1007. */
const PROTOCOL_FAULT = /^WS_ERR_/;

/** Opens a WebSocket and carries its frames to a link. */
export class WebSocketLink implements LinkResources {
  readonly #settings: WebSocketSettings;
  readonly #link: Link;
  #socket: WebSocket | undefined;
  #tcp: Socket | undefined;
  #opened = false;
  #closing = false;
  /** Either the time of the next ping, or the time by which something must have come after one. */
  #watch: ReturnType<typeof setTimeout> | undefined;
  #bytesSeen = 0;

  constructor(settings: WebSocketSettings, link: Link, request: ExchangeRequest) {
    this.#settings = settings;
    this.#link = link;
    this.#connect(request).catch((error: unknown) => this.#connectFailed(error as Error));
  }

  async close(): Promise<void> {
    this.#closing = true;
    clearTimeout(this.#watch);
    const socket = this.#socket;
    if (socket === undefined || socket.readyState === socket.CLOSED) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => socket.terminate(), this.#settings.closeMs);
      socket.once("close", () => {
        clearTimeout(timer);
        resolve();
      });
      // Before the upgrade there is no one to say goodbye to.
      if (this.#opened) socket.close(NORMAL);
      else socket.terminate();
    });
  }

  async #connect(request: ExchangeRequest): Promise<void> {
    // Loaded at the first call, so that a host which never uses this binding does not pay for it.
    const [{ WebSocket }, headers] = await Promise.all([import("ws"), this.#headers(request)]);
    if (this.#closing) return;
    const options: ClientOptions & { closeTimeout: number } = {
      headers,
      perMessageDeflate: false,
      maxPayload: this.#link.limits.messageBytes,
      handshakeTimeout: this.#settings.handshakeMs,
      closeTimeout: this.#settings.closeMs,
      ...(this.#settings.agent !== undefined && { agent: this.#settings.agent }),
    };
    this.#socket = new WebSocket(this.#settings.url, [SUBPROTOCOL], options);
    this.#listen(this.#socket);
  }

  async #headers({ context, ...request }: ExchangeRequest): Promise<Record<string, string>> {
    const { headers, token } = this.#settings;
    const read = flattenHeaders(typeof headers === "function" ? headers({ context }) : headers);
    if ("fault" in read) throw new Error(read.fault);
    const fields: Record<string, string> = {};
    for (let at = 0; at < read.flat.length; at += 2) {
      const name = read.flat[at]!;
      const lower = name.toLowerCase();
      // The handshake is the protocol's own, and a token takes the place of another authorization.
      if (lower.startsWith("sec-websocket-") || (token !== undefined && lower === "authorization")) continue;
      fields[name] = read.flat[at + 1]!;
    }
    if (token !== undefined) fields.Authorization = `Bearer ${await token.get({ ...request, context })}`;
    return fields;
  }

  #listen(socket: WebSocket): void {
    socket.on("unexpected-response", (_request, response) => this.#refused(socket, response));
    socket.on("upgrade", ({ socket: tcp }) => {
      this.#tcp = tcp;
      tcp.on("drain", () => this.#link.drained());
    });
    socket.on("open", () => {
      this.#opened = true;
      this.#link.up(new WebSocketPort(socket, this.#tcp!));
      this.#awaitPing(0);
    });
    socket.on("message", (data, isBinary) => this.#message(socket, data, isBinary));
    socket.on("error", (error: Error & { code?: string }) => this.#failed(error));
    socket.on("close", (code, reason) => {
      clearTimeout(this.#watch);
      this.#end(lostEnd(this.#settings.peer, closeText(code, reason), code));
    });
  }

  #message(socket: WebSocket, data: RawData, isBinary: boolean): void {
    if (isBinary) {
      socket.close(UNSUPPORTED_DATA, "MCP messages are text frames");
      const what =
        "sent a binary frame, and the connection was closed with 1003: MCP messages are text frames";
      this.#end(lostEnd(this.#settings.peer, what, UNSUPPORTED_DATA));
      return;
    }
    // `ws` has checked that it is UTF-8, and gives one Buffer unless told otherwise.
    this.#link.receive((data as Buffer).toString("utf8"));
  }

  #failed(error: Error & { code?: string }): void {
    const { peer } = this.#settings;
    if (!this.#opened) {
      this.#connectFailed(error);
    } else if (error.code === OVERSIZE) {
      const allowed = this.#link.limits.messageBytes;
      const message =
        `${peer} sent a message of more than ${allowed} bytes, and the connection was closed with 1009. ` +
        "If answers of that size are expected, raise limits.messageBytes";
      this.#end({ error: (delivery) => new LimitError(message, "messageBytes", allowed, delivery) });
    } else {
      const fault = PROTOCOL_FAULT.test(error.code ?? "");
      const closeCode = error.code === "WS_ERR_INVALID_UTF8" ? 1007 : fault ? 1002 : undefined;
      this.#end(lostEnd(peer, `was lost: ${error.message}`, closeCode, error));
    }
  }

  #connectFailed(error: Error & { code?: string }): void {
    const { peer } = this.#settings;
    // An error about several addresses has its text in its parts.
    const what = error.message || error.code || "it cannot be reached";
    this.#end({
      error: () => new ConnectError(`could not connect to ${peer}: ${what}`, { cause: error }),
    });
  }

  #refused(socket: WebSocket, response: IncomingMessage): void {
    const status = response.statusCode ?? 0;
    const challenge =
      status === 401 || status === 403
        ? readChallenge(status, response.headers["www-authenticate"])
        : undefined;
    const retryMs = retryAfterMs(response.headers["retry-after"], Date.now());
    this.#end({
      error: () =>
        new ConnectError(refusal(this.#settings.peer, status, challenge), {
          status,
          permanent: status >= 400 && status < 500 && status !== 408 && status !== 429,
        }),
      ...(challenge !== undefined && this.#settings.token?.canAnswer === true && { challenge }),
      ...(retryMs !== undefined && { retryAfterMs: retryMs }),
    });
    socket.terminate();
  }

  #end(end: LinkEnd): void {
    clearTimeout(this.#watch);
    this.#link.down(end);
  }

  #awaitPing(waitedMs: number): void {
    const { pingMs } = this.#settings;
    if (pingMs > 0 && !this.#closing) this.#watch = setTimeout(this.#ping, Math.max(0, pingMs - waitedMs));
  }

  readonly #ping = (): void => {
    if (this.#closing || this.#socket?.readyState !== this.#socket?.OPEN) return;
    this.#bytesSeen = this.#tcp!.bytesRead;
    this.#socket!.ping();
    this.#watch = setTimeout(this.#judge, this.#settings.pongMs);
  };

  /** Any byte since the ping is a sign of life: the pong may be waiting behind a message that is still coming in. */
  readonly #judge = (): void => {
    if (this.#tcp!.bytesRead !== this.#bytesSeen) {
      this.#awaitPing(this.#settings.pongMs);
      return;
    }
    const what = `answered no ping within ${this.#settings.pongMs} ms`;
    this.#socket!.terminate();
    this.#end(lostEnd(this.#settings.peer, what));
  };
}

/** The outgoing side: the frames of a turn leave in one write of the socket below. */
class WebSocketPort implements ChannelPort {
  readonly #socket: WebSocket;
  readonly #tcp: Socket;
  #corked = false;

  constructor(socket: WebSocket, tcp: Socket) {
    this.#socket = socket;
    this.#tcp = tcp;
  }

  get buffered(): number {
    // A socket that is closing takes nothing more; frames then stay with the channel, as not sent.
    return this.#socket.readyState === this.#socket.OPEN
      ? this.#socket.bufferedAmount
      : Number.POSITIVE_INFINITY;
  }

  send(text: string): void {
    if (this.#socket.readyState !== this.#socket.OPEN) throw new Error("the WebSocket is closing");
    if (!this.#corked) {
      this.#corked = true;
      this.#tcp.cork();
    }
    this.#socket.send(text);
  }

  flush(): void {
    if (!this.#corked) return;
    this.#corked = false;
    this.#tcp.uncork();
  }
}

function lostEnd(peer: string, what: string, closeCode?: number, cause?: Error): LinkEnd {
  return {
    error: (delivery) => lost(peer, what, delivery, { ...(closeCode !== undefined && { closeCode }), cause }),
    final: closeCode !== undefined && FINAL_CODES.has(closeCode),
  };
}

function lost(
  peer: string,
  what: string,
  delivery: Delivery,
  details: { closeCode?: number; cause?: Error | undefined },
): TransportError {
  const outcome =
    delivery === "unknown" ? "whether the request was run cannot be told" : "the request had not been sent";
  const bar =
    details.closeCode !== undefined && FINAL_CODES.has(details.closeCode)
      ? ". Connecting again would end the same way: remove the cause and make a new transport"
      : "";
  return new ConnectionLostError(`${peer} ${what}; ${outcome}${bar}`, delivery, details);
}

function closeText(code: number, reason: Buffer): string {
  if (code === 1006) return "ended the connection without a close frame";
  const text = reason
    .toString("utf8")
    .replace(/\p{Cc}/gu, " ")
    .trim();
  return `closed the connection with ${code === 1005 ? "no code" : code}${text === "" ? "" : ` (${text})`}`;
}

function refusal(peer: string, status: number, challenge: AuthChallenge | undefined): string {
  const what = `${peer} refused the WebSocket upgrade with HTTP ${status}`;
  if (challenge !== undefined) return `${what}: check the token and what it allows`;
  if (status >= 300 && status < 400) return `${what}: redirects are not followed; use the URL it leads to`;
  if (status === 404 || status === 400 || status === 405 || status === 426) {
    return `${what}: check the path, and that the endpoint speaks WebSocket with the subprotocol "${SUBPROTOCOL}"`;
  }
  return what;
}
