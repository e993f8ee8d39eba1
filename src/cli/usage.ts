/** The error of a command line that cannot work. */

import { UsageError } from "../errors.ts";

/** Says what is wrong with the command line; `details` go into the JSON form of the error. */
export class CommandLineError extends UsageError {
  readonly details: Readonly<Record<string, unknown>>;
  /** More lines for the terminal, below the message. */
  readonly excerpt: string | undefined;

  constructor(
    message: string,
    options: {
      path?: string;
      details?: Readonly<Record<string, unknown>>;
      excerpt?: string | undefined;
      cause?: unknown;
    } = {},
  ) {
    super(message, options);
    this.details = options.details ?? {};
    this.excerpt = options.excerpt;
  }
}
