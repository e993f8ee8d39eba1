/**
 * Reads a target: what a URL, a command, or an entry of the `mcpServers` JSON that hosts keep stands for. Nothing is opened
 * here, and no transport is loaded, so that a program can look at a target before it pays for one.
 */

import { UsageError } from "../src/errors.ts";
import { isObject, type JsonObject, typeName } from "../src/wire.ts";
import type { HttpHeaders } from "./http-headers.ts";
import type { TokenOption } from "./http-token.ts";

/** A server to start, as an `mcpServers` entry writes it. */
export interface CommandTarget {
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  readonly cwd?: string | undefined;
  /** "stdio", where it is given. */
  readonly type?: string | undefined;
}

/** A server to connect to, as an `mcpServers` entry writes it. */
export interface UrlTarget {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** "http" (also "streamable-http"), or "ws" (also "websocket"); the URL's scheme must agree. */
  readonly type?: string | undefined;
}

/** Whatever {@link resolveTarget} takes. Members of an entry that are not known are passed over. */
export type Target = string | URL | CommandTarget | UrlTarget;

/** A target that was read. */
export type ResolvedTarget =
  | {
      readonly kind: "http" | "websocket";
      readonly url: string;
      readonly headers?: HttpHeaders;
      readonly token?: TokenOption;
    }
  | {
      readonly kind: "stdio";
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string | undefined>> | undefined;
      readonly cwd: string | undefined;
    };

/** Where `${VAR}` gets its value. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** Options of {@link resolveTarget}. */
export interface ResolveOptions {
  /**
   * The values of `${VAR}` in the strings of an entry. Default: the environment of this process. `false` leaves all text
   * as it is, for a command line that a shell has expanded already.
   */
  readonly variables?: Variables | false | undefined;
  /** Header fields besides, or in place of, those of the entry. For URLs alone. */
  readonly headers?: HttpHeaders | undefined;
  /** A bearer token, or where to get one. For URLs alone. */
  readonly token?: TokenOption | undefined;
}

const KINDS: ReadonlyMap<string, ResolvedTarget["kind"]> = new Map([
  ["stdio", "stdio"],
  ["http", "http"],
  ["streamable-http", "http"],
  ["streamableHttp", "http"],
  ["streamable_http", "http"],
  ["ws", "websocket"],
  ["websocket", "websocket"],
]);

const SCHEMES: ReadonlyMap<string, "http" | "websocket"> = new Map([
  ["http:", "http"],
  ["https:", "http"],
  ["ws:", "websocket"],
  ["wss:", "websocket"],
]);

/**
 * Reads a target. A string or a URL is taken as it is; in an entry, `${VAR}` and `${VAR:-default}` are expanded in
 * `command`, `args`, `env`, `cwd`, `url` and the values of `headers`.
 *
 * @throws {UsageError} when it is no target, its scheme is not http, https, ws or wss, or a variable is not set. The error
 * names the variable and where it stands; no value is ever part of it (SAF-01).
 */
export function resolveTarget(target: Target, options: ResolveOptions = {}): ResolvedTarget {
  const resolved = readTarget(target, options);
  const { headers, token } = options;
  if (resolved.kind === "stdio") {
    refuseForCommand("headers", headers);
    refuseForCommand("token", token);
    return resolved;
  }
  const merged = mergeHeaders(resolved.headers, headers);
  return {
    ...resolved,
    ...(merged !== undefined && { headers: merged }),
    ...(token !== undefined && { token }),
  };
}

/** The options that a URL's transport takes from its target. */
export function webOptions({ headers, token }: Extract<ResolvedTarget, { url: string }>): {
  headers?: HttpHeaders;
  token?: TokenOption;
} {
  return { ...(headers !== undefined && { headers }), ...(token !== undefined && { token }) };
}

function refuseForCommand(path: string, value: unknown): void {
  if (value === undefined) return;
  throw new UsageError(`${path} cannot be sent to a command; give its secrets in env instead`, { path });
}

/** Joins two sets of header fields; a name of `over` replaces the same name in any case. */
function mergeHeaders(base: HttpHeaders | undefined, over: HttpHeaders | undefined): HttpHeaders | undefined {
  if (base === undefined || over === undefined) return over ?? base;
  const replaced = new Set(Object.keys(over).map((name) => name.toLowerCase()));
  const kept = Object.entries(base).filter(([name]) => !replaced.has(name.toLowerCase()));
  return Object.fromEntries([...kept, ...Object.entries(over)]);
}

function readTarget(target: Target, { variables = process.env }: ResolveOptions): ResolvedTarget {
  if (typeof target === "string") return ofUrl(target, undefined, "the target");
  if (target instanceof URL) return ofUrl(target.href, undefined, "the target");
  if (!isObject(target)) {
    throw new UsageError(
      `a target must be a URL, { command, args, env } or { url, headers }, not ${typeName(target)}`,
      { path: "target" },
    );
  }
  return readEntry(target, variables === false ? (text) => text : expander(variables));
}

type Expand = (text: string, path: string) => string;

function readEntry(entry: JsonObject, expand: Expand): ResolvedTarget {
  const kind = readKind(entry);
  if (kind === "stdio") {
    return {
      kind,
      command: expand(readString(entry.command, "command"), "command"),
      args: readArgs(entry.args, expand),
      env: readStrings(entry.env, "env", expand),
      cwd: entry.cwd === undefined ? undefined : expand(readString(entry.cwd, "cwd"), "cwd"),
    };
  }
  const url = expand(readString(entry.url, "url"), "url");
  const headers = readStrings(entry.headers, "headers", expand);
  const resolved = ofUrl(url, headers, "url");
  if (kind !== undefined && kind !== resolved.kind) {
    throw new UsageError(
      `the entry's type "${clip(String(entry.type))}" and the scheme of its url disagree; correct one of them`,
      { path: "type" },
    );
  }
  return resolved;
}

/** Undefined when the URL's scheme decides. */
function readKind(entry: JsonObject): ResolvedTarget["kind"] | undefined {
  const { type, command, url } = entry;
  if (type !== undefined) {
    if (typeof type !== "string") throw wrong("type", "a string", type);
    if (type === "sse") {
      throw new UsageError(
        'the entry\'s type "sse" is the transport of the oldest revisions, which this client does not speak; if the server also offers Streamable HTTP, set type to "http" and url to that endpoint',
        { path: "type" },
      );
    }
    const kind = KINDS.get(type);
    if (kind === undefined) {
      throw new UsageError(
        `the entry's type "${clip(type)}" is unknown; it must be "stdio", "http" or "ws"`,
        {
          path: "type",
        },
      );
    }
    return kind;
  }
  if (command !== undefined && url !== undefined) {
    throw new UsageError('the entry has both "command" and "url"; keep one, or say which with "type"', {
      path: "command",
    });
  }
  if (command === undefined && url === undefined) {
    throw new UsageError('the entry has neither "command" nor "url"; it needs one of them', {
      path: "command",
    });
  }
  return command === undefined ? undefined : "stdio";
}

function ofUrl(
  text: string,
  headers: Readonly<Record<string, string>> | undefined,
  what: string,
): ResolvedTarget {
  // A URL may hold a secret in its query or its user part, so none of it but the scheme is repeated.
  const scheme = /^([a-z][a-z0-9+.-]*:)/i.exec(text)?.[1]?.toLowerCase();
  if (scheme === undefined || !URL.canParse(text)) {
    throw new UsageError(
      `${what} is not a URL; give one such as https://example.com/mcp or wss://example.com/mcp`,
      {
        path: "url",
      },
    );
  }
  const kind = SCHEMES.get(scheme);
  if (kind === undefined) {
    throw new UsageError(
      `the scheme "${clip(scheme.slice(0, -1))}" of ${what} is not supported; use http, https, ws or wss, or give a command`,
      { path: "url" },
    );
  }
  return { kind, url: text, ...(headers !== undefined && { headers }) };
}

function readString(value: unknown, path: string): string {
  if (typeof value !== "string") throw wrong(path, "a string", value);
  if (value === "") throw new UsageError(`${path} is empty`, { path });
  return value;
}

function readArgs(value: unknown, expand: Expand): readonly string[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw wrong("args", "an array of strings", value);
  return value.map((argument, index) => {
    const path = `args[${index}]`;
    if (typeof argument !== "string") throw wrong(path, "a string", argument);
    return expand(argument, path);
  });
}

function readStrings(
  value: unknown,
  path: string,
  expand: Expand,
): Readonly<Record<string, string>> | undefined {
  if (value === undefined) return undefined;
  if (!isObject(value)) throw wrong(path, "an object of strings", value);
  const read: [string, string][] = [];
  for (const [name, text] of Object.entries(value)) {
    if (text === undefined) continue;
    const where = `${path}[${JSON.stringify(clip(name))}]`;
    if (typeof text !== "string") throw wrong(where, "a string", text);
    read.push([name, expand(text, where)]);
  }
  return Object.fromEntries(read);
}

function wrong(path: string, wanted: string, value: unknown): UsageError {
  return new UsageError(
    `${path} must be ${wanted}, not ${value === undefined ? "missing" : typeName(value)}`,
    {
      path,
    },
  );
}

const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?:(:-)([^}]*)|:[^}]*)?\}/g;

/**
 * Makes a function that expands `${VAR}` and `${VAR:-default}`; as in a shell, the default also stands in for an empty
 * value. What is put in is not expanded again. Anything else with a dollar sign is left alone.
 */
export function expander(variables: Variables): (text: string, path: string) => string {
  return (text, path) =>
    text.replace(REFERENCE, (whole, name: string, defaulted: string | undefined, otherwise = "") => {
      const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
      if (defaulted !== undefined) return value === undefined || value === "" ? otherwise : value;
      if (whole !== `\${${name}}`) {
        throw new UsageError(
          `${path} has a reference that begins with \${${name}: and is not understood; only \${VAR} and \${VAR:-default} are`,
          { path },
        );
      }
      if (value === undefined) {
        throw new UsageError(
          `the environment variable ${name}, which ${path} refers to, is not set; set it, or give a default as \${${name}:-default}`,
          { path },
        );
      }
      return value;
    });
}

function clip(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
