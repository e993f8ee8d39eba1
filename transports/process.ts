/**
 * One server process: its start, its three streams, how its end is noticed, and the ladder that ends it (STD-02, STD-03).
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio#shutdown}
 */

import type { ChildProcessWithoutNullStreams } from "node:child_process";
import type { Writable } from "node:stream";
import { type EnvironmentVariables, serverEnvironment } from "./environment.ts";
import { ProcessGroup } from "./process-group.ts";
import { node } from "./node.ts";
import { StderrTail } from "./stderr-tail.ts";
import { windowsCommand } from "./windows-command.ts";

/** What to start, and how to end it. */
export interface ServerProcessOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: EnvironmentVariables | undefined;
  readonly cwd?: string | undefined;
  /** How long the process may take to exit after its stdin was closed, in milliseconds. */
  readonly closeGraceMs: number;
  /** How long its group may take to exit after SIGTERM, in milliseconds. */
  readonly killGraceMs: number;
}

/** How a process ended, or stopped being of use. */
export interface ProcessEnd {
  /** One clause that follows "the process": "exited with code 1". */
  readonly what: string;
  readonly exitCode?: number;
  readonly signal?: string;
  readonly stderr: string;
  readonly cause?: Error;
}

/** Where a process reports to. */
export interface ServerProcessEvents {
  stdout(chunk: Buffer): void;
  stderr(chunk: Buffer): void;
  /** stdin takes more again. */
  drained(): void;
  /** Once: no more output will come, or no more input is taken. All output has been delivered before it. */
  ended(end: ProcessEnd): void;
  /** Instead of everything else: the process could not be started. */
  failed(error: Error): void;
}

/** A grandchild may hold the pipes of a process that has exited; this long without output, and the rest is given up. */
const QUIET_MS = 100;
/** … and this long in any case. */
const DRAIN_MS = 2000;
/** A process that closed a stream is usually about to exit: this long is waited for its exit code. */
const EXIT_CODE_MS = 250;
/** After SIGKILL only the kernel can be slow. */
const REAP_MS = 1000;

/** A server process that was started, or that failed to. */
export class ServerProcess {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #group: ProcessGroup | undefined;
  readonly #events: ServerProcessEvents;
  readonly #options: ServerProcessOptions;
  readonly #tail = new StderrTail();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #exitedAt: number | undefined;
  #over = false;
  #inputBroken = false;

  /** Starts the process. Throws what `spawn` throws for arguments that no process could be given. */
  constructor(options: ServerProcessOptions, events: ServerProcessEvents) {
    this.#options = options;
    this.#events = events;
    const env = serverEnvironment(options.env);
    const { command, args, verbatim } = windowsCommand(options.command, options.args, env);
    this.#child = node.childProcess.spawn(command, args, {
      cwd: options.cwd,
      env,
      stdio: ["pipe", "pipe", "pipe"],
      // A group of its own, so that ending it ends what it started; and Ctrl-C on a terminal reaches the host alone,
      // which then closes it in good order.
      detached: process.platform !== "win32",
      windowsHide: true,
      windowsVerbatimArguments: verbatim,
    });
    const { pid } = this.#child;
    if (pid === undefined) {
      this.#child.on("error", (error) => this.#events.failed(error));
      return;
    }
    this.#group = new ProcessGroup(this.#child, pid);
    this.#listen();
  }

  /** Whether there is a process. When not, `failed` is about to be called. */
  get started(): boolean {
    return this.#group !== undefined;
  }

  get stdin(): Writable {
    return this.#child.stdin;
  }

  /** False when stdin takes no more: what is written now would be lost. */
  get takesInput(): boolean {
    return !this.#inputBroken && this.#exitedAt === undefined && this.#child.stdin.writable;
  }

  /** Reads no further: what the process writes from now on fails, so that one that floods us stops. */
  stopReading(): void {
    this.#child.stdout.destroy();
  }

  #listen(): void {
    const { stdin, stdout, stderr } = this.#child;
    stdout.on("data", (chunk: Buffer) => {
      if (this.#exitedAt !== undefined) this.#drainAfterExit();
      this.#events.stdout(chunk);
    });
    stderr.on("data", (chunk: Buffer) => {
      this.#tail.push(chunk);
      this.#events.stderr(chunk);
    });
    stdin.on("drain", () => this.#events.drained());
    stdin.on("error", (error) => this.#waitForExitCode("closed its stdin", error));
    stdout.on("end", () => this.#waitForExitCode("closed its stdout"));
    // Reading from a pipe hardly fails; if it does, the stream's end says the rest.
    stdout.on("error", (error) => this.#waitForExitCode("broke its stdout", error));
    stderr.on("error", () => {});
    this.#child.on("error", () => {});
    this.#child.on("exit", () => {
      this.#exitedAt = performance.now();
      this.#drainAfterExit();
    });
    this.#child.on("close", () => this.#end());
  }

  #drainAfterExit(): void {
    if (this.#over) return;
    clearTimeout(this.#timer);
    const left = this.#exitedAt! + DRAIN_MS - performance.now();
    this.#timer = setTimeout(() => this.#end(), Math.max(0, Math.min(QUIET_MS, left)));
  }

  #waitForExitCode(what: string, cause?: Error): void {
    this.#inputBroken = true;
    if (this.#over || this.#exitedAt !== undefined || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => this.#end(what, cause), EXIT_CODE_MS);
  }

  #end(what?: string, cause?: Error): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    const { exitCode, signalCode } = this.#child;
    this.#events.ended({
      what:
        exitCode !== null
          ? `exited with code ${exitCode}`
          : signalCode !== null
            ? `was ended by ${signalCode}`
            : (what ?? "closed its streams"),
      ...(exitCode !== null && { exitCode }),
      ...(signalCode !== null && { signal: signalCode }),
      stderr: this.#tail.text(),
      ...(cause !== undefined && { cause }),
    });
  }

  /** Ends the process and all it started: closed stdin, then SIGTERM, then SIGKILL. Resolves within both graces and a second. */
  async close(): Promise<void> {
    this.#over = true;
    clearTimeout(this.#timer);
    const group = this.#group;
    if (group === undefined) return;
    const { stdin, stdout, stderr } = this.#child;
    stdin.end();
    if (!(await group.gone(this.#options.closeGraceMs))) {
      group.signal("SIGTERM");
      if (!(await group.gone(this.#options.killGraceMs))) {
        group.signal("SIGKILL");
        await group.gone(REAP_MS);
      }
    }
    group.release();
    // A process that left the group may still hold the other ends; ours must not keep this process alive.
    stdin.destroy();
    stdout.destroy();
    stderr.destroy();
  }
}
