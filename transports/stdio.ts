/**
 * The stdio binding: a server started as a child process, one JSON-RPC message per line on its stdin and stdout.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio}
 */

import { ConnectError, ConnectionLostError, LimitError, UsageError } from "../src/errors.ts";
import type { Delivery, Transport } from "../src/transport.ts";
import type { BackoffOptions } from "./backoff.ts";
import type { ChannelPort } from "./channel.ts";
import type { EnvironmentVariables } from "./environment.ts";
import { LineReader } from "./lines.ts";
import { type Link, type LinkResources, linkTransport } from "./link.ts";
import { node } from "./node.ts";
import { partitionOf } from "./partition.ts";
import { type ProcessEnd, ServerProcess } from "./process.ts";

export type { BackoffOptions } from "./backoff.ts";

/** Options of {@link stdioTransport}. */
export interface StdioOptions {
  /** The program to start: a path, or a name that is looked up along the PATH the server gets. No shell is involved. */
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  /**
   * Variables for the server, over the few that every program needs (HOME, LANG, LOGNAME, PATH, SHELL, TERM, TMPDIR, USER;
   * on Windows their like). `undefined` takes one of those away. Values that begin with "()" are not passed on.
   */
  readonly env?: EnvironmentVariables | undefined;
  /** The server's working directory. Default: this process's own. */
  readonly cwd?: string | undefined;
  /**
   * Called with each piece of text the server writes to stderr, as it comes. stderr is read whether this is given or not;
   * its last 8 KiB are in the error when the server is lost. What is written there says nothing about success.
   */
  readonly onStderr?: ((text: string) => void) | undefined;
  /**
   * How a server that ended is started again. The next call does it: at once the first time, then after a growing wait, and
   * the count begins anew after sustained uptime. `false`: never; later calls fail with the loss. After `close()` never.
   */
  readonly restart?: BackoffOptions | false | undefined;
  /** How long the server may take to exit once its stdin is closed, before SIGTERM, in milliseconds. Default 2000. */
  readonly closeGraceMs?: number | undefined;
  /** How long it may take after SIGTERM, before SIGKILL, in milliseconds. Default 2000. */
  readonly killGraceMs?: number | undefined;
  /**
   * How much may wait for a server that does not read its stdin, in characters. More fails with a `LimitError` that says
   * "not-sent". Default 16 Mi.
   */
  readonly outboundBytes?: number | undefined;
}

/**
 * A transport to a server that is started as a child process, when the first call needs it.
 *
 * The process is the leader of a group of its own (on POSIX), and `close()` ends the whole group. A host that exits without
 * `close()` takes the group down with it; one that is ended by a signal leaves the servers to notice the end of their stdin.
 * `peer` is the program's name, with the name of the script or package it runs; other arguments may be secrets and are left out.
 *
 * @throws UsageError when the options cannot work.
 * @example
 * stdioTransport({ command: "node", args: ["server.mjs"], env: { API_KEY: key } })
 */
export function stdioTransport(options: StdioOptions): Transport {
  checkOptions(options);
  const { command, args = [], env, cwd, closeGraceMs = 2000, killGraceMs = 2000 } = options;
  const launch = { command, args: [...args], env: env && { ...env }, cwd, closeGraceMs, killGraceMs };
  const peer = describe(command, args);

  function open(link: Link): LinkResources {
    const decoder = options.onStderr === undefined ? undefined : new TextDecoder();
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
            options.onStderr!(decoder.decode(chunk, { stream: true }));
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

  return linkTransport({
    name: "stdio",
    peer,
    // Another environment may mean another account.
    partition: partitionOf(command, args, env ?? {}, cwd ?? null),
    open,
    reconnect: options.restart,
    outboundBytes: options.outboundBytes,
  });
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

function checkOptions(options: StdioOptions): void {
  const { command, args } = options;
  if (typeof command !== "string" || command === "") {
    throw new UsageError("command must be the name or path of a program", { path: "command" });
  }
  const fault = args?.findIndex((arg) => typeof arg !== "string") ?? -1;
  if (fault !== -1) {
    throw new UsageError(`args must be strings; args[${fault}] is not`, { path: `args[${fault}]` });
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

const SCRIPT = /\.(?:[cm]?[jt]s|py|rb|php|pl|sh|jar|dll)$/i;
const PACKAGE_RUNNERS = new Set(["npx", "bunx", "uvx", "pipx"]);
const PACKAGE = /^(?:@[\w.-]+\/)?[\w.-]+(?:@[\w.-]+)?$/;

const SEPARATORS = process.platform === "win32" ? /[\\/]+/ : /\/+/;

/** What follows the last separator. */
function fileName(path: string): string {
  return path.split(SEPARATORS).findLast((part) => part !== "") ?? path;
}

/** Who the server is, told from its command line: never an argument that could be a secret. */
function describe(command: string, args: readonly string[]): string {
  const program = fileName(command);
  const target = args.find((arg) => !["-y", "--yes", "-q", "--quiet", "run", "dlx"].includes(arg));
  if (target === undefined || target.startsWith("-")) return program;
  if (SCRIPT.test(target)) return `${program} ${fileName(target)}`;
  const runner = PACKAGE_RUNNERS.has(program.replace(/\.(?:cmd|exe)$/i, ""));
  return runner && PACKAGE.test(target) ? `${program} ${target}` : program;
}
