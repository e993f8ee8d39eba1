/** One link of the stdio binding: a server process, its lines, and what is said of its end. */

import { ConnectError, ConnectionLostError, LimitError } from "../src/errors.ts";
import type { Delivery } from "../src/transport.ts";
import type { ChannelPort } from "./channel.ts";
import { LineReader } from "./lines.ts";
import type { Link, LinkResources } from "./link.ts";
import { node } from "./node.ts";
import { type ProcessEnd, ServerProcess, type ServerProcessOptions } from "./process.ts";

/** What every server of one transport is started with. */
export interface ServerOptions {
  readonly launch: ServerProcessOptions;
  readonly peer: string;
  readonly onStderr: ((text: string) => void) | undefined;
}

/** Starts a server and joins it to the link. */
export function startServer(link: Link, options: ServerOptions): LinkResources {
  const { launch, peer, onStderr } = options;
  const { command, cwd } = launch;
  const decoder = onStderr === undefined ? undefined : new TextDecoder();
  const lines = new LineReader({
    messageBytes: link.limits.messageBytes,
    onLine: (text, isWhole) => link.receive(text, isWhole),
    onBadLine: (fault, bytes) => link.receiveBad(fault, bytes),
    onOversize: ({ message, limit, allowed }) => {
      server.stopReading();
      link.down({ error: (delivery) => new LimitError(message, limit, allowed, delivery) });
    },
  });
  let server: ServerProcess;
  try {
    server = start();
  } catch (error) {
    link.down({ error: () => notStarted(command, cwd, error as Error) });
    return { close: async () => {} };
  }
  if (server.started) link.up(new PipePort(server));
  return {
    close: () => {
      lines.stop();
      return server.close();
    },
  };

  function start(): ServerProcess {
    return new ServerProcess(launch, {
      stdout: (chunk) => lines.push(chunk),
      stderr: (chunk) => {
        if (decoder === undefined) return;
        try {
          onStderr!(decoder.decode(chunk, { stream: true }));
        } catch (error) {
          link.callbackFailed("onStderr", error);
        }
      },
      drained: () => link.drained(),
      ended: (end) => {
        lines.end();
        link.down({ error: (delivery) => lost(peer, end, delivery) });
      },
      failed: (error) => link.down({ error: () => notStarted(command, cwd, error) }),
    });
  }
}

/** The server's stdin: the frames of a turn become one write. */
class PipePort implements ChannelPort {
  readonly #server: ServerProcess;
  #batch = "";

  constructor(server: ServerProcess) {
    this.#server = server;
  }

  get buffered(): number {
    // A pipe that nobody reads any more takes nothing; frames then stay with the channel, as not sent.
    return this.#server.takesInput
      ? this.#server.stdin.writableLength + this.#batch.length
      : Number.POSITIVE_INFINITY;
  }

  send(text: string): void {
    this.#batch += `${text}\n`;
  }

  flush(): void {
    const batch = this.#batch;
    if (batch === "") return;
    this.#batch = "";
    this.#server.stdin.write(batch);
  }
}

function lost(peer: string, end: ProcessEnd, delivery: Delivery): ConnectionLostError {
  const outcome =
    delivery === "unknown"
      ? "whether it ran the request cannot be told"
      : "the request had not been written to it";
  const hint = end.stderr === "" ? "" : "; the end of its stderr is in error.stderr";
  return new ConnectionLostError(
    `the server process (${peer}) ${end.what}; ${outcome}${hint}`,
    delivery,
    end,
  );
}

function notStarted(
  command: string,
  cwd: string | undefined,
  error: Error & { code?: string },
): ConnectError {
  const permanent = error.code === "ENOENT" || error.code === "EACCES" || error.code === "ENOTDIR";
  return new ConnectError(`could not start "${command}": ${remedy(cwd, error)}`, { cause: error, permanent });
}

function remedy(cwd: string | undefined, error: Error & { code?: string }): string {
  // The system reports a missing working directory as if the program were missing.
  if (cwd !== undefined && !isDirectory(cwd))
    return `its working directory "${cwd}" is not an existing directory`;
  switch (error.code) {
    case "ENOENT":
      return "there is no such program (ENOENT). Check the spelling, and that it is on the PATH given to the server: env.PATH if set, else this process's PATH";
    case "EACCES":
      return "it may not be executed (EACCES). Check that it is a file, not a directory, and has execute permission";
    default:
      return error.message;
  }
}

function isDirectory(path: string): boolean {
  return node.fs.statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
