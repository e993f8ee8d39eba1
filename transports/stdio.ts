/**
 * The stdio binding: a server started as a child process, one JSON-RPC message per line on its stdin and stdout.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio}
 */

import { ConnectError, UsageError } from "../src/errors.ts";
import type { Transport } from "../src/transport.ts";
import type { BackoffOptions } from "./backoff.ts";
import type { EnvironmentVariables } from "./environment.ts";
import { type Link, type LinkResources, linkTransport } from "./link.ts";
import { partitionOf } from "./partition.ts";
import type { ServerOptions } from "./stdio-server.ts";

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
  const server: ServerOptions = { launch, peer, onStderr: options.onStderr };
  return linkTransport({
    name: "stdio",
    peer,
    // Another environment may mean another account.
    partition: partitionOf(command, args, env ?? {}, cwd ?? null),
    open: (link) => openServer(link, server),
    reconnect: options.restart,
    outboundBytes: options.outboundBytes,
  });
}

/** Starts the server, once the code that does it is there: it is loaded with the first server. */
function openServer(link: Link, options: ServerOptions): LinkResources {
  let isWanted = true;
  const opened = import("./stdio-server.ts").then(
    ({ startServer }) => (isWanted ? startServer(link, options) : undefined),
    (cause) => {
      const message =
        "the part of mcp-rally that starts servers could not be loaded: was the package changed?";
      link.down({ error: () => new ConnectError(message, { cause, permanent: true }) });
      return undefined;
    },
  );
  return {
    close: async () => {
      isWanted = false;
      await (await opened)?.close();
    },
  };
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
