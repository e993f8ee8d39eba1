/** What the command line needs of the world around it; injected, so that tests can stand in for a terminal. */

import type { Readable, Writable } from "node:stream";

/** Where input comes from. */
export type CliInput = Readable & {
  readonly isTTY?: boolean | undefined;
  setRawMode?(on: boolean): unknown;
};

/** Where output goes. */
export type CliOutput = Writable & {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
};

/** The width to assume where the terminal does not know it. */
export const DEFAULT_COLUMNS = 80;

/** The world around one run. */
export interface CliIo {
  readonly stdin: CliInput;
  readonly stdout: CliOutput;
  readonly stderr: CliOutput;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Calls `listener` with an exit code at every SIGINT (130), SIGTERM (143) or SIGHUP (129). Gives the way to stop that. */
  onSignal(listener: (exitCode: number) => void): () => void;
  /** Ends the process at once: what a second interrupt does. */
  exit(code: number): void;
}

const SIGNALS = [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
] as const;

/** The real world: this process. */
export function processIo(): CliIo {
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    cwd: process.cwd(),
    onSignal(listener) {
      const handlers = SIGNALS.map(([signal, code]) => {
        const handler = () => listener(code);
        process.on(signal, handler);
        return () => process.removeListener(signal, handler);
      });
      return () => {
        for (const remove of handlers) remove();
      };
    },
    exit: (code) => process.exit(code),
  };
}

/** Whether a person can be asked: input comes from a terminal, and what is asked can be seen. */
export function isInteractive({ stdin, stderr }: CliIo): boolean {
  return stdin.isTTY === true && stderr.isTTY === true;
}
