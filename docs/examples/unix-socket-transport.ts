import { connect } from "node:net";
import { ConnectError, ConnectionLostError, LimitError, type Transport } from "../../src/index.ts";
import { LineReader } from "../../transports/lines.ts";
import { type Link, type LinkResources, linkTransport } from "../../transports/link.ts";

/** A transport to a server that listens on a Unix domain socket and speaks one JSON-RPC message per line. */
export function unixSocketTransport(path: string): Transport {
  return linkTransport({ name: "unix", peer: path, open: (link) => openSocket(link, path) });
}

function openSocket(link: Link, path: string): LinkResources {
  const socket = connect(path);
  let connected = false;
  let cause: Error | undefined;
  const port = {
    send: (text: string) => void socket.write(`${text}\n`),
    get buffered() {
      return socket.writable ? socket.writableLength : Number.POSITIVE_INFINITY;
    },
  };
  const lines = new LineReader({
    messageBytes: link.limits.messageBytes,
    onLine: (text, isWhole) => link.receive(text, isWhole),
    onBadLine: (fault, bytes) => link.receiveBad(fault, bytes),
    onOversize: ({ message, limit, allowed }) =>
      link.down({ error: (delivery) => new LimitError(message, limit, allowed, delivery) }),
  });
  socket.on("connect", () => {
    connected = true;
    link.up(port);
  });
  socket.on("data", (bytes) => lines.push(bytes));
  socket.on("end", () => lines.end());
  socket.on("drain", () => link.drained());
  socket.on("error", (error) => {
    cause = error;
  });
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.once("close", () => {
    const lost = `the server at ${path} closed the socket`;
    link.down({
      error: (delivery) =>
        connected
          ? new ConnectionLostError(lost, delivery, { cause })
          : new ConnectError(`nothing answers at ${path}`, { cause }),
    });
  });
  return {
    close() {
      socket.destroySoon();
      const timer = setTimeout(() => socket.destroy(), 1000);
      return closed.finally(() => clearTimeout(timer));
    },
  };
}
