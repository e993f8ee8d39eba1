/** One prompt of the library on a terminal, with its ways to end sorted out. */

import { type CANCEL_SYMBOL, isCancel } from "@clack/prompts";
import type { CliInput, CliOutput } from "./io.ts";

/** Where prompts are shown and answered. */
export interface PromptIo {
  readonly input: CliInput;
  readonly output: CliOutput;
  /** Aborts when the answer is no longer wanted. */
  readonly signal: AbortSignal;
  /** Called after a prompt that was left: interrupts if that was by Ctrl-C. */
  left(): void;
}

/** What a prompt gives when the user leaves it with Escape. */
export const LEFT = Symbol("left");
export type Left = typeof LEFT;

type Common = Pick<PromptIo, "input" | "output" | "signal">;

/** Shows one prompt. Rejects with the reason of the signal when it aborts, also when Ctrl-C made it abort. */
export async function onPrompt<T>(
  io: PromptIo,
  show: (common: Common) => Promise<T | typeof CANCEL_SYMBOL>,
): Promise<T | Left> {
  const { input, output } = io;
  io.signal.throwIfAborted();
  // The library never takes its listeners off a signal, so every prompt gets one of its own.
  const own = new AbortController();
  const onAbort = () => own.abort(io.signal.reason);
  io.signal.addEventListener("abort", onAbort, { once: true });
  try {
    const value = await show({ input, output, signal: own.signal });
    if (!isCancel(value)) {
      io.signal.throwIfAborted();
      return value;
    }
  } finally {
    io.signal.removeEventListener("abort", onAbort);
  }
  io.left();
  io.signal.throwIfAborted();
  return LEFT;
}
