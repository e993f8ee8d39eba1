/** What a host may set, on the client and on a call, and how the two become the rules of one operation. */

import type { CacheMode } from "./cache.ts";
import type { Clock } from "./clock.ts";
import type { ExtraCapabilities, Implementation } from "./declarations.ts";
import { UsageError } from "./errors.ts";
import type { RallyEvent } from "./events.ts";
import type { QuestionLimits } from "./input-required.ts";
import type { InputHandlers } from "./inputs.ts";
import type { DiscoverResult, Tool } from "./mcp-types.ts";
import type { CacheStore } from "./memory-cache.ts";
import type { UncheckedOutput } from "./output.ts";
import type { LogEntry, Progress, Timeouts } from "./pending.ts";
import type { LogLevel } from "./protocol.ts";
import { DEFAULT_REISSUE, type ReissueRules } from "./reissue.ts";
import type { StandardSchema } from "./standard-schema.ts";
import type { NotificationFrame, Transport } from "./transport.ts";
import type { SchemaValidator } from "./validate.ts";
import { isObject, type JsonObject, typeName } from "./wire.ts";

/** Bounds against a server that sends too much (LIM-01). */
export interface ClientLimits extends QuestionLimits {
  /** The largest message in bytes after decoding. Default 16 MiB. */
  readonly messageBytes: number;
  /** The most operations pending at once. Default 65 536. */
  readonly pendingOperations: number;
}

/** Re-issue as a host writes it: the policy alone, or some of the rules. */
export type ReissueOption = ReissueRules["policy"] | Partial<ReissueRules>;

/** Options of {@link createClient}. */
export interface ClientOptions {
  /** How to reach the server. One client owns its transport and closes it. */
  readonly transport: Transport;
  /** The host's name and version, sent with every request. */
  readonly info: Implementation;
  /** The name of the server, shown to handlers and bound into continuations. Default: the transport's `peer`. */
  readonly peer?: string | undefined;
  /** The input handlers; which exist decides what every request declares (MRTR-13). */
  readonly inputs?: InputHandlers | undefined;
  /** Capabilities that can't be derived from handlers. */
  readonly capabilities?: ExtraCapabilities | undefined;
  /** The most `input_required` answers honoured in one operation. Default 10. */
  readonly maxRounds?: number | undefined;
  /** How often a server may ask the identical question again after a decline or cancel. Default 2. */
  readonly maxRepeats?: number | undefined;
  readonly timeouts?: Partial<Timeouts> | undefined;
  /** What happens to an attempt that was lost. Default `{ policy: "always", max: 2, backoffMs: 250 }`. */
  readonly reissue?: ReissueOption | undefined;
  readonly limits?: Partial<ClientLimits> | undefined;
  /** Fill the schema's defaults into accepted form content after the handler. Default false. */
  readonly applyDefaults?: boolean | undefined;
  /** A `server/discover` result known from before: no probe is made on a shared channel. */
  readonly discovery?: DiscoverResult | undefined;
  /** The protocol versions to speak, the preferred first. Default: 2026-07-28 alone. */
  readonly protocolVersions?: readonly string[] | undefined;
  /** Checks values against schemas in place of the built-in one (ajv, loaded when first needed). */
  readonly validator?: SchemaValidator | undefined;
  /** Believe `readOnlyHint` and `idempotentHint` where the policy is "safe". Default false. */
  readonly trustAnnotations?: boolean | undefined;
  /**
   * Keeps results for as long as their server says (`ttlMs`, `cacheScope`): true for a store of the client's own, false for
   * none, or a store. Cached results are frozen. Default true (CCH-01).
   */
  readonly cache?: boolean | CacheStore | undefined;
  /**
   * Whose results are whose, where the transport can't tell (a token function, for instance): a text for each
   * authorization, such as the user's id; undefined for "do not cache what is private". Default: what the transport says.
   */
  readonly cachePartition?: string | ((context: unknown) => string | undefined);
  /**
   * What happens to a call whose tool has an `outputSchema` that cannot be used: "fail" fails it, "allow" gives its output
   * unchecked, with an `output.unchecked` event. Default "fail" (SCH-01).
   */
  readonly uncheckedOutput?: UncheckedOutput | undefined;
  /** Metadata of the host for every request: an object, or a function called for every attempt. */
  readonly meta?: JsonObject | (() => JsonObject) | undefined;
  readonly onEvent?: ((event: RallyEvent) => void) | undefined;
  /** Log entries of the server that belong to no call with an `onLog`. */
  readonly onLog?: ((entry: LogEntry) => void) | undefined;
  /** Notifications other than progress and log entries. */
  readonly onNotification?: ((frame: NotificationFrame) => void) | undefined;
  /** How long a server may take to answer the probe of a link, in milliseconds. Default 10 000. */
  readonly probeMs?: number | undefined;
  /** The clock; replaceable in tests. */
  readonly clock?: Clock | undefined;
}

/** Options of every call. */
export interface CallOptions {
  /** Cancels the call: it rejects at once with a CancelledError whose cause is the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  readonly attemptMs?: number | undefined;
  readonly attemptMaxMs?: number | undefined;
  readonly operationMs?: number | undefined;
  readonly inputMs?: number | undefined;
  /** Progress starts `attemptMs` anew. Implies that a progress token is sent. */
  readonly resetOnProgress?: boolean | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  readonly onLog?: ((entry: LogEntry) => void) | undefined;
  /** The least severe log level the server should send for this call. */
  readonly logLevel?: LogLevel | undefined;
  /** Merged over the client's `meta`. */
  readonly meta?: JsonObject | (() => JsonObject) | undefined;
  /** The host's own value, handed to the transport's header and token functions. */
  readonly context?: unknown;
  /** Merged key by key over the client's; null removes one. Frozen when the call starts. */
  readonly inputs?: InputHandlers | undefined;
  readonly maxRounds?: number | undefined;
  readonly maxRepeats?: number | undefined;
  readonly reissue?: ReissueOption | undefined;
  /** This tool call may run twice without harm: it may be issued again under the policy "safe". */
  readonly repeatable?: boolean | undefined;
  /** The tool's definition, where no list was fetched. */
  readonly tool?: Tool | undefined;
  readonly applyDefaults?: boolean | undefined;
  /** What this call makes of the cache. Default "use"; a call with a `meta` function of its own always bypasses it. */
  readonly cache?: CacheMode | undefined;
  readonly uncheckedOutput?: UncheckedOutput | undefined;
}

/** Options of `callTool`. `T` is the type of the structured content. */
export interface ToolCallOptions<T = unknown> extends CallOptions {
  /**
   * Checks the structured content and gives it its type: any Standard Schema (Zod, Valibot, ArkType, …). What it makes of
   * the value is what the result holds. It is not asked when the tool failed (`isError`).
   */
  readonly output?: StandardSchema<T> | undefined;
}

/** The defaults of {@link Timeouts}. */
export const DEFAULT_TIMEOUTS: Timeouts = {
  attemptMs: 60_000,
  attemptMaxMs: 600_000,
  operationMs: undefined,
  inputMs: undefined,
  resetOnProgress: false,
};

/** The defaults of {@link ClientLimits}. */
export const DEFAULT_LIMITS: ClientLimits = {
  messageBytes: 16 * 1024 * 1024,
  inputRequests: 64,
  requestStateBytes: 1024 * 1024,
  pendingOperations: 65_536,
};

/** Reads `reissue` over what holds already. */
export function readReissue(
  option: ReissueOption | undefined,
  base: ReissueRules = DEFAULT_REISSUE,
): ReissueRules {
  if (option === undefined) return base;
  const rules = typeof option === "string" ? { ...base, policy: option } : { ...base, ...definedOf(option) };
  checkOneOf(rules.policy, ["always", "safe", "never"], "reissue.policy");
  checkNumber(rules.max, "reissue.max");
  checkNumber(rules.backoffMs, "reissue.backoffMs");
  return rules;
}

/** Reads the time bounds of a call over the client's. */
export function readTimeouts(options: CallOptions, base: Timeouts): Timeouts {
  const { attemptMs, attemptMaxMs, operationMs, inputMs, resetOnProgress } = options;
  if (
    attemptMs === undefined &&
    attemptMaxMs === undefined &&
    operationMs === undefined &&
    inputMs === undefined &&
    resetOnProgress === undefined
  ) {
    return base;
  }
  const timeouts = {
    attemptMs: attemptMs ?? base.attemptMs,
    attemptMaxMs: attemptMaxMs ?? base.attemptMaxMs,
    operationMs: operationMs ?? base.operationMs,
    inputMs: inputMs ?? base.inputMs,
    resetOnProgress: resetOnProgress ?? base.resetOnProgress,
  };
  checkTimeouts(timeouts, "");
  return timeouts;
}

/** Checks what a host gave to createClient, and fails before anything is opened. */
export function checkClientOptions(options: ClientOptions): void {
  if (!isObject(options)) throw new UsageError(`createClient takes an object, not ${typeName(options)}`);
  const { transport, info } = options;
  if (!isObject(transport) || typeof transport.exchange !== "function") {
    throw new UsageError("transport must be a Transport, such as httpTransport(url)", { path: "transport" });
  }
  if (!isObject(info) || typeof info.name !== "string" || typeof info.version !== "string") {
    throw new UsageError('info must be { name, version }, such as { name: "my-host", version: "1.0.0" }', {
      path: "info",
    });
  }
  const versions = options.protocolVersions;
  if (versions !== undefined && (!Array.isArray(versions) || versions.length === 0)) {
    throw new UsageError("protocolVersions must name at least one version", { path: "protocolVersions" });
  }
  for (const key of ["maxRounds", "maxRepeats", "probeMs"] as const) checkNumber(options[key], key);
  for (const [key, value] of Object.entries(options.limits ?? {})) checkNumber(value, `limits.${key}`);
  if (options.timeouts !== undefined) checkTimeouts(options.timeouts, "timeouts.");
  checkHandlers(options.inputs);
  checkCache(options);
  checkUncheckedOutput(options.uncheckedOutput);
}

function checkCache({ cache, cachePartition }: ClientOptions): void {
  if (cache !== undefined && typeof cache !== "boolean") {
    for (const method of ["get", "set", "delete", "keys"] as const) {
      if (isObject(cache) && typeof cache[method] === "function") continue;
      throw new UsageError("cache must be true, false, or a store with get, set, delete and keys", {
        path: "cache",
      });
    }
  }
  if (
    cachePartition !== undefined &&
    typeof cachePartition !== "string" &&
    typeof cachePartition !== "function"
  ) {
    throw new UsageError(`cachePartition must be a string or a function, not ${typeName(cachePartition)}`, {
      path: "cachePartition",
    });
  }
}

/** Checks the client's or a call's `uncheckedOutput`. */
export function checkUncheckedOutput(value: unknown): void {
  checkOneOf(value, ["fail", "allow"], "uncheckedOutput");
}

/** Checks an option that is one of a few words; undefined is one that is not given. */
export function checkOneOf(value: unknown, words: readonly string[], path: string): void {
  if (value === undefined || words.includes(value as string)) return;
  const quoted = words.map((word) => `"${word}"`);
  const list = `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`;
  const given = typeof value === "string" ? JSON.stringify(value.slice(0, 40)) : typeName(value);
  throw new UsageError(`${path} must be ${list}, not ${given}`, { path });
}

function checkTimeouts(timeouts: Partial<Timeouts>, prefix: string): void {
  for (const key of ["attemptMs", "attemptMaxMs", "operationMs", "inputMs"] as const) {
    checkNumber(timeouts[key], `${prefix}${key}`);
  }
}

/** A count or a time: a number that is not negative. Infinity means no bound. */
function checkNumber(value: unknown, path: string): void {
  if (value === undefined) return;
  if (typeof value !== "number" || Number.isNaN(value) || value < 0) {
    throw new UsageError(`${path} must be a number that is not negative, not ${String(value)}`, { path });
  }
}

/** Checks that each handler is a function, "suspend", or absent. */
export function checkHandlers(inputs: InputHandlers | undefined): void {
  for (const key of ["elicitForm", "elicitUrl", "sample", "listRoots"] as const) {
    const entry = inputs?.[key];
    const handler = key === "sample" && isObject(entry) ? entry.handle : entry;
    if (handler === undefined || handler === null || handler === "suspend" || typeof handler === "function")
      continue;
    throw new UsageError(`inputs.${key} must be a function or "suspend", not ${typeName(handler)}`, {
      path: `inputs.${key}`,
    });
  }
}

/** The members that are not undefined: an option that is given as undefined is one that is not given. */
export function definedOf<T extends object>(options: T | undefined): Partial<T> {
  return Object.fromEntries(
    Object.entries(options ?? {}).filter(([, value]) => value !== undefined),
  ) as Partial<T>;
}
