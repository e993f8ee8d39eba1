/**
 * Bearer tokens of the host. The engine decides when a challenge is answered; this asks the host for the token.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization}
 */

import { UsageError } from "../src/errors.ts";
import type { AuthChallenge, ExchangeRequest } from "../src/transport.ts";
import { type CallInfo, isSafeToken, notSendable } from "./http-headers.ts";

/** What a token function is told. */
export interface TokenCall extends CallInfo {
  /** The 401 or 403 that refused the attempt before this one. */
  readonly challenge?: AuthChallenge;
}

/** A bearer token, or where to get one. The function is called once for every attempt. */
export type TokenOption = string | ((call: TokenCall) => string | Promise<string>);

interface Flight {
  readonly challenge: string;
  readonly context: unknown;
  readonly token: Promise<string>;
}

/** Gives the token of each attempt, checked, so that nothing else than a token can get into the header. */
export class TokenSource {
  readonly #token: TokenOption;
  /** Challenges being answered now. Few at a time, so a list does. */
  #flights: Flight[] = [];

  /** @throws UsageError when a fixed token is not one */
  constructor(token: TokenOption) {
    if (typeof token !== "function" && !isSafeToken(token)) {
      throw new UsageError(
        "httpTransport: token must be a function or a non-empty string of visible ASCII characters, without spaces or line breaks.",
        { path: "options.token" },
      );
    }
    this.#token = token;
  }

  /** Whether the host can do something about a challenge. */
  get canAnswer(): boolean {
    return typeof this.#token === "function";
  }

  /**
   * The token of one attempt. Attempts that were refused by the same challenge, of calls with the same context, share
   * one call of the host's function; calls with different contexts may belong to different users and never do.
   *
   * @throws ConnectError (not sent), at once or as a rejection, when the function fails or gives no token
   */
  get(request: ExchangeRequest): string | Promise<string> {
    if (typeof this.#token === "string") return this.#token;
    const { challenge, context } = request;
    if (challenge === undefined) return ask(this.#token, { context });
    const key = JSON.stringify(challenge);
    const running = this.#flights.find((one) => one.challenge === key && Object.is(one.context, context));
    if (running !== undefined) return running.token;
    const token = ask(this.#token, { context, challenge });
    if (typeof token === "string") return token;
    const flight: Flight = { challenge: key, context, token };
    this.#flights.push(flight);
    const land = () => {
      this.#flights = this.#flights.filter((one) => one !== flight);
    };
    token.then(land, land);
    return token;
  }
}

function ask(
  token: (call: TokenCall) => string | Promise<string>,
  call: TokenCall,
): string | Promise<string> {
  let answer: unknown;
  try {
    answer = token(call);
  } catch (cause) {
    throw failed(cause);
  }
  if (typeof answer === "string") return checked(answer);
  // Anything that can be awaited is, so that a rejection always has its handler.
  return Promise.resolve(answer).then(checked, (cause: unknown) => {
    throw failed(cause);
  });
}

function checked(token: unknown): string {
  if (isSafeToken(token)) return token;
  throw notSendable(
    `the token function of the host must give a non-empty string of visible ASCII characters; it gave ${
      typeof token === "string" ? "a string that a header cannot carry" : `a value of type ${typeof token}`
    }`,
  );
}

function failed(cause: unknown): Error {
  return notSendable("the token function of the host failed", cause);
}
