/**
 * Reads `WWW-Authenticate`. Nothing here acts on a challenge: a URL it names is text for the host, never fetched.
 * {@link https://www.rfc-editor.org/rfc/rfc9110#field.www-authenticate}
 */

import type { AuthChallenge } from "../src/transport.ts";

/** Longer fields are not read: a challenge is a few hundred bytes. */
const LONGEST_FIELD = 8192;
const MOST_PARAMS = 32;

const SCHEME = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/y;
const PARAM =
  /([!#$%&'*+\-.^_`|~0-9A-Za-z]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\[\s\S])*)"|([!#$%&'*+\-.^_`|~0-9A-Za-z]+))/y;
const TOKEN68 = /[A-Za-z0-9\-._~+/]+=*(?=[ \t]*(?:,|$))/y;
const SPACE = /[ \t]+/y;
const COMMAS = /(?:[ \t]*,[ \t]*)+/y;

/**
 * The challenge of a 401 or 403. Of several the first Bearer one counts, or else the first. A field that is missing gives
 * an empty scheme; so does one that breaks the grammar, from the broken place on. Of a parameter named twice the first counts.
 *
 * @param field one `WWW-Authenticate` value, or several
 */
export function readChallenge(status: number, field: string | readonly string[] | undefined): AuthChallenge {
  const text = typeof field === "string" ? field : (field?.join(", ") ?? "");
  const challenges = text.length > LONGEST_FIELD ? [] : readChallenges(text);
  const chosen = challenges.find(({ scheme }) => scheme === "bearer") ?? challenges[0];
  return { status, scheme: chosen?.scheme ?? "", params: chosen?.params ?? {} };
}

/** Whether the challenge says that the token is good but does not allow enough (RFC 6750, section 3.1). */
export function isInsufficientScope(challenge: AuthChallenge): boolean {
  return challenge.status === 403 && challenge.params.error === "insufficient_scope";
}

interface Challenge {
  readonly scheme: string;
  readonly params: Record<string, string>;
}

function readChallenges(text: string): Challenge[] {
  const challenges: Challenge[] = [];
  let at = skip(COMMAS, text, skip(SPACE, text, 0));
  while (at < text.length) {
    const scheme = matchAt(SCHEME, text, at)?.[0];
    if (scheme === undefined) break;
    at += scheme.length;
    const challenge: Challenge = { scheme: scheme.toLowerCase(), params: {} };
    const afterSpace = skip(SPACE, text, at);
    const end = afterSpace === at ? at : readParams(text, afterSpace, challenge.params);
    if (end === undefined) break;
    challenges.push(challenge);
    const next = skip(COMMAS, text, end);
    if (next === end && skip(SPACE, text, end) < text.length) break;
    at = next === end ? text.length : next;
  }
  return challenges;
}

/** Reads the parameters of one challenge and gives where they end; undefined when they break the grammar. */
function readParams(text: string, start: number, params: Record<string, string>): number | undefined {
  const token68 = matchAt(TOKEN68, text, start);
  if (token68 !== undefined && matchAt(PARAM, text, start) === undefined) return start + token68[0].length;
  let at = start;
  let end = start;
  for (let count = 0; at < text.length; count++) {
    const found = matchAt(PARAM, text, at);
    if (found === undefined) break;
    if (count === MOST_PARAMS) return undefined;
    const name = found[1]!.toLowerCase();
    if (!Object.hasOwn(params, name) && name !== "__proto__") {
      params[name] = found[2]?.replace(/\\([\s\S])/g, "$1") ?? found[3]!;
    }
    end = at + found[0].length;
    at = skip(COMMAS, text, end);
    if (at === end) break;
  }
  return end === start && start < text.length && !text.startsWith(",", start) ? undefined : end;
}

function skip(pattern: RegExp, text: string, at: number): number {
  return at + (matchAt(pattern, text, at)?.[0].length ?? 0);
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text) ?? undefined;
}
