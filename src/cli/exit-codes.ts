/** The exit codes: a contract with scripts. */
export const EXIT = {
  done: 0,
  /** The tool ran and said isError. */
  toolError: 1,
  /** The command line cannot work; nothing was sent because of it. */
  usage: 2,
  /** The server asked for an input that was not given. */
  inputNeeded: 3,
  /** The protocol or the peer failed. */
  failed: 4,
  interrupted: 130,
} as const;
