/** Runs the command line inside the test's process, with streams of its own in place of a terminal. */

import { PassThrough, Writable } from "node:stream";
import { main } from "../../src/cli/app.ts";
import type { CliInput, CliIo, CliOutput } from "../../src/cli/io.ts";

/** How one run ended. */
export interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** The exit codes of `io.exit`, which the tests do not obey. */
  readonly exits: readonly number[];
}

/** What a run may be given. */
export interface RunOptions {
  readonly env?: Record<string, string>;
  readonly cwd?: string;
  readonly stdin?: string;
  /** Make stdout a terminal of this width. */
  readonly columns?: number;
}

class Sink extends Writable {
  text = "";
  isTTY: boolean | undefined;
  columns: number | undefined;
  readonly #onText: () => void;

  constructor(onText: () => void = () => {}) {
    super({ decodeStrings: false });
    this.#onText = onText;
  }

  override _write(chunk: string | Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    this.#onText();
    done();
  }
}

/** Runs one command line to its end. */
export async function run(argv: readonly string[], options: RunOptions = {}): Promise<Run> {
  const { env = {}, cwd = process.cwd(), stdin = "", columns } = options;
  const input = new PassThrough();
  input.end(stdin);
  const stdout = new Sink();
  const stderr = new Sink();
  if (columns !== undefined) Object.assign(stdout, { isTTY: true, columns });
  const exits: number[] = [];
  const io: CliIo = {
    stdin: input,
    stdout,
    stderr,
    env,
    cwd,
    onSignal: () => () => {},
    exit: (code) => exits.push(code),
  };
  const code = await main(argv, io);
  return { code, stdout: stdout.text, stderr: stderr.text, exits };
}

/** The one document that --json promises: throws when there is more, or less. */
export function document({ stdout }: Run): Record<string, unknown> {
  if (!/^[^\n]+\n$/.test(stdout)) throw new Error(`stdout is not one line: ${JSON.stringify(stdout)}`);
  return JSON.parse(stdout) as Record<string, unknown>;
}

/** A run with a person in front of it. */
export interface Terminal {
  /** Resolves when the screen, since the last answer, shows `text`. */
  shows(text: string): Promise<void>;
  /** Types. */
  press(...keys: string[]): void;
  /** Everything that was shown, without colours and cursor movements. */
  readonly screen: string;
  /** Whether the terminal reads single keys. */
  readonly isRaw: boolean;
  readonly cursorIsHidden: boolean;
  /** Delivers a signal. */
  signal(exitCode: number): void;
  /** Takes the terminal away. */
  hangUp(): void;
  readonly exits: readonly number[];
  /** How it ended. */
  readonly ended: Promise<Run>;
}

/** The keys that are not letters. */
export const KEY = {
  enter: "\r",
  escape: "\u001b",
  ctrlC: "\u0003",
  up: "\u001b[A",
  down: "\u001b[B",
  left: "\u001b[D",
  right: "\u001b[C",
  backspace: "\u007f",
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is taken out
const ESCAPES = /\u001b\[[0-9;?]*[A-Za-z]/g;
const SHOWN_WITHIN_MS = 5000;

/** Starts a command line on a terminal. stdout is a terminal too unless `stdoutIsFile`. */
export function onTerminal(argv: readonly string[], { stdoutIsFile = false } = {}): Terminal {
  let mark = 0;
  const waiting = new Set<() => void>();
  const check = () => {
    for (const one of [...waiting]) one();
  };
  const input = Object.assign(new PassThrough(), {
    isTTY: true,
    isRaw: false,
    setRawMode(on: boolean) {
      input.isRaw = on;
    },
  });
  const stderr = new Sink(check);
  const stdout = new Sink();
  Object.assign(stderr, { isTTY: true, columns: 100 });
  if (!stdoutIsFile) Object.assign(stdout, { isTTY: true, columns: 100 });
  const exits: number[] = [];
  let onSignal: (exitCode: number) => void = () => {};
  const io: CliIo = {
    stdin: input as unknown as CliInput,
    stdout: stdout as CliOutput,
    stderr: stderr as CliOutput,
    env: { NO_COLOR: "1" },
    cwd: process.cwd(),
    onSignal(listener) {
      onSignal = listener;
      return () => {
        onSignal = () => {};
      };
    },
    exit: (code) => exits.push(code),
  };
  const plain = () => stderr.text.replace(ESCAPES, "");
  const ended = main(argv, io).then((code) => ({ code, stdout: stdout.text, stderr: stderr.text, exits }));
  return {
    shows(text) {
      return new Promise((resolve, reject) => {
        const look = () => {
          const at = plain().indexOf(text, mark);
          if (at === -1) return;
          waiting.delete(look);
          clearTimeout(timer);
          resolve();
        };
        const timer = setTimeout(() => {
          waiting.delete(look);
          reject(
            new Error(`"${text}" was not shown; after the last answer there was: ${plain().slice(mark)}`),
          );
        }, SHOWN_WITHIN_MS);
        waiting.add(look);
        look();
      });
    },
    press(...keys) {
      mark = plain().length;
      for (const key of keys) input.write(key);
    },
    get screen() {
      return plain();
    },
    get isRaw() {
      return input.isRaw;
    },
    get cursorIsHidden() {
      return stderr.text.lastIndexOf("\u001b[?25l") > stderr.text.lastIndexOf("\u001b[?25h");
    },
    signal: (exitCode) => onSignal(exitCode),
    hangUp: () => input.end(),
    exits,
    ended,
  };
}
