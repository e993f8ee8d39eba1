/** A relay between a client and a peer that cuts the connection after an exact number of bytes. */

import { connect, createServer, type NetConnectOpts, type Server, type Socket } from "node:net";

/** Where, and how, a connection is cut. */
export interface Cut {
  /** up: on the way to the peer; down: on the way back. */
  readonly direction: "up" | "down";
  /** How many bytes of that direction get through. The cut comes as soon as they have; 0 down is the first byte's turn. */
  readonly offset: number;
  /** A stream that ends in good order, or one that is torn down. */
  readonly how: "end" | "reset";
}

/** See {@link startCuttingProxy}. */
export interface CuttingProxy {
  /** The port, or the path of a Unix socket, that clients connect to. */
  readonly address: number | string;
  /** Bytes that went through since the last plan, over all connections. */
  readonly passed: { readonly up: number; readonly down: number };
  /** Whether the planned cut was made. */
  readonly fired: boolean;
  /** Plans one cut, or none, for what comes from now on. */
  plan(cut: Cut | undefined): void;
  /** Resolves with the number of sockets that clients left open after `graceMs`; 0 at once when there are none. */
  drain(graceMs: number): Promise<number>;
  close(): Promise<void>;
}

/** Starts a relay to `target`, on `listenOn` (a path) or a free port of 127.0.0.1. */
export async function startCuttingProxy(target: NetConnectOpts, listenOn?: string): Promise<CuttingProxy> {
  const relay = new Relay(target);
  await relay.listen(listenOn);
  return relay;
}

class Relay implements CuttingProxy {
  readonly passed = { up: 0, down: 0 };
  fired = false;
  address: number | string = 0;
  readonly #target: NetConnectOpts;
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  #cut: Cut | undefined;
  #onEmpty: (() => void) | undefined;

  constructor(target: NetConnectOpts) {
    this.#target = target;
    this.#server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => this.#relay(socket));
  }

  async listen(path: string | undefined): Promise<void> {
    const { promise, resolve, reject } = withResolvers<void>();
    this.#server.once("error", reject);
    if (path === undefined) this.#server.listen(0, "127.0.0.1", resolve);
    else this.#server.listen(path, resolve);
    await promise;
    this.address = path ?? (this.#server.address() as { port: number }).port;
  }

  plan(cut: Cut | undefined): void {
    this.#cut = cut;
    this.fired = false;
    this.passed.up = 0;
    this.passed.down = 0;
  }

  async drain(graceMs: number): Promise<number> {
    if (this.#open.size > 0) {
      const { promise, resolve } = withResolvers<void>();
      const timer = setTimeout(resolve, graceMs);
      this.#onEmpty = resolve;
      await promise;
      clearTimeout(timer);
    }
    const left = this.#open.size;
    for (const socket of this.#open) socket.destroy();
    return left;
  }

  async close(): Promise<void> {
    await this.drain(0);
    const { promise, resolve } = withResolvers<void>();
    this.#server.close(() => resolve());
    await promise;
  }

  #relay(client: Socket): void {
    const peer = connect({ ...this.#target, noDelay: true, allowHalfOpen: true } as NetConnectOpts);
    this.#watch(client);
    this.#watch(peer);
    this.#pump("up", client, peer);
    this.#pump("down", peer, client);
    if (this.#cut?.direction === "up" && this.#cut.offset === 0 && !this.fired) this.#sever(client, peer);
  }

  #watch(socket: Socket): void {
    this.#open.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => {
      this.#open.delete(socket);
      if (this.#open.size === 0) this.#onEmpty?.();
    });
  }

  #pump(direction: "up" | "down", from: Socket, to: Socket): void {
    from.on("data", (bytes: Buffer) => {
      const cut = this.#cut;
      if (cut === undefined || cut.direction !== direction || this.fired) {
        this.passed[direction] += bytes.length;
        if (to.writable) to.write(bytes);
        return;
      }
      const room = cut.offset - this.passed[direction];
      this.passed[direction] += Math.min(room, bytes.length);
      if (bytes.length < room) {
        to.write(bytes);
        return;
      }
      const last = bytes.subarray(0, room);
      if (last.length > 0) to.write(last);
      this.#sever(from, to);
    });
    // One side's end is the other's: what is relayed is the peer's and the client's own behaviour until the cut.
    from.on("end", () => to.end());
    from.on("close", () => to.destroy());
  }

  /** Both ends are told in the same way. Bytes already written go out before an end, and are in the kernel before a reset. */
  #sever(one: Socket, other: Socket): void {
    this.fired = true;
    const { how } = this.#cut!;
    for (const socket of [one, other]) {
      socket.removeAllListeners("data");
      socket.removeAllListeners("end");
      // What is still said into the cut connection goes nowhere.
      socket.resume();
      if (how === "end") socket.end();
      // A socket that is not connected, and a Unix socket, know no reset.
      else if (socket.remotePort === undefined) socket.destroy();
      else socket.write("", () => socket.resetAndDestroy());
    }
  }
}

function withResolvers<T>() {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
