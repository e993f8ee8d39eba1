/** Finds what a client left open, so that the end of a test tells of its leaks. */

import type { Server, Socket } from "node:net";

/** The sockets of one server that are open. */
export interface SocketWatch {
  readonly open: ReadonlySet<Socket>;
  /** Waits until no socket is open, at most `graceMs`; then destroys the rest and gives how many there were. */
  drain(graceMs: number): Promise<number>;
}

/** Follows the sockets that `server` accepts. */
export function watchSockets(server: Server): SocketWatch {
  const open = new Set<Socket>();
  let onEmpty: (() => void) | undefined;
  server.on("connection", (socket) => {
    open.add(socket);
    socket.once("close", () => {
      open.delete(socket);
      if (open.size === 0) onEmpty?.();
    });
  });
  return {
    open,
    async drain(graceMs) {
      if (open.size > 0 && graceMs > 0) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, graceMs);
          onEmpty = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      const left = open.size;
      for (const socket of open) socket.destroy();
      return left;
    },
  };
}

/** Starts `server` on a free port of 127.0.0.1. */
export function listenOnLoopback(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      server.removeListener("error", reject);
      resolve((server.address() as { port: number }).port);
    });
  });
}

/** Closes a server that has no socket open any more. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}
