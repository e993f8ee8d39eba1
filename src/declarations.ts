/**
 * What a request declares about the client: the capabilities are derived from the handlers that exist, so the two can't
 * differ (MRTR-13), and what a server asks for beyond them is told here.
 */

import { UsageError } from "./errors.ts";
import type { InputRequest } from "./input-required.ts";
import type { InputHandlers, SampleOptions } from "./inputs.ts";
import { META } from "./protocol.ts";
import { showKey } from "./show.ts";
import { isObject, type JsonObject, typeName } from "./wire.ts";

/** The name and version that a host gives of itself, sent with every request. */
export interface Implementation {
  readonly name: string;
  readonly version: string;
  readonly title?: string;
  readonly description?: string;
  readonly websiteUrl?: string;
  readonly icons?: readonly unknown[];
}

/** Capabilities that can't be derived from handlers. */
export interface ExtraCapabilities {
  /** Extension identifiers to their settings. */
  readonly extensions?: Readonly<Record<string, JsonObject>>;
  readonly experimental?: Readonly<Record<string, JsonObject>>;
  /** Values of `resultType` that the declared extensions add; such a result is handed over as it came (MRTR-02). */
  readonly resultTypes?: readonly string[];
}

/** The frozen declarations of one operation, ready to be spliced into its frames. */
export interface Declarations {
  readonly handlers: InputHandlers;
  /** Whether a server may ask anything. */
  readonly hasHandlers: boolean;
  readonly capabilities: JsonObject;
  /** The beginning of `_meta` as text, up to the protocol version's value: see {@link metaText}. */
  readonly metaTail: string;
  /** Says what is undeclared about an input request; undefined when it may be asked. */
  readonly undeclared: (request: InputRequest) => string | undefined;
}

/** Derives the declarations from the handlers. */
export function declare(
  handlers: InputHandlers,
  info: Implementation,
  extra: ExtraCapabilities,
): Declarations {
  const { sample } = handlers;
  // A copy: what is declared and what is answered must not part when the host changes its object meanwhile.
  const frozen =
    typeof sample === "object" && sample !== null ? { ...handlers, sample: { ...sample } } : handlers;
  const capabilities = deriveCapabilities(frozen, extra);
  return {
    handlers: frozen,
    hasHandlers: Object.values(frozen).some(Boolean),
    capabilities,
    metaTail: `"${META.clientInfo}":${JSON.stringify(info)},"${META.clientCapabilities}":${JSON.stringify(capabilities)}`,
    undeclared: (request) => describeUndeclared(request, frozen),
  };
}

function deriveCapabilities(handlers: InputHandlers, extra: ExtraCapabilities): JsonObject {
  const capabilities: JsonObject = {};
  if (handlers.elicitForm || handlers.elicitUrl) {
    capabilities.elicitation = {
      ...(handlers.elicitForm && { form: {} }),
      ...(handlers.elicitUrl && { url: {} }),
    };
  }
  if (handlers.sample) {
    const { tools, context } = sampleFeatures(handlers.sample);
    capabilities.sampling = { ...(tools && { tools: {} }), ...(context && { context: {} }) };
  }
  if (handlers.listRoots) capabilities.roots = {};
  if (extra.extensions !== undefined) capabilities.extensions = extra.extensions;
  if (extra.experimental !== undefined) capabilities.experimental = extra.experimental;
  return capabilities;
}

function sampleFeatures(sample: NonNullable<InputHandlers["sample"]>): { tools: boolean; context: boolean } {
  const options: Partial<SampleOptions> = typeof sample === "object" ? sample : {};
  return { tools: options.tools === true, context: options.context === true };
}

/** The names that a host gives, in the order of api.md. */
const HANDLER_NAMES = {
  elicitForm: "elicitation in form mode",
  elicitUrl: "elicitation in URL mode",
  sample: "sampling",
  listRoots: "roots",
} as const;

function describeUndeclared(request: InputRequest, handlers: InputHandlers): string | undefined {
  const { kind, key, params } = request;
  const handler = handlers[kind];
  if (!handler) return undeclaredText(key, HANDLER_NAMES[kind], `add inputs.${kind}`);
  if (kind !== "sample") return undefined;
  const { tools, context } = sampleFeatures(handlers.sample!);
  if (!tools && (params.tools !== undefined || params.toolChoice !== undefined)) {
    return undeclaredText(key, "sampling with tools", "set inputs.sample to { handle, tools: true }");
  }
  if (!context && params.includeContext !== undefined && params.includeContext !== "none") {
    return undeclaredText(key, "sampling with context", "set inputs.sample to { handle, context: true }");
  }
  return undefined;
}

function undeclaredText(key: string, what: string, remedy: string): string {
  return `The server asked for ${what} under the key ${showKey(key)}, which the request did not declare. Nothing more was sent; ${remedy} to declare and answer it.`;
}

/** What an attempt adds to `_meta`. */
export interface AttemptMeta {
  readonly protocolVersion: string;
  /** The host's own metadata, already as text: see {@link encodeHostMeta}. */
  readonly host: string;
  readonly logLevel: string | undefined;
  /** Set when the host asked for progress: the wire id. */
  readonly progressToken: number | undefined;
}

/** Joins `_meta`. Reserved keys come from the engine alone (REQ-01). */
export function metaText(declarations: Declarations, meta: AttemptMeta): string {
  let text = `{"${META.protocolVersion}":${JSON.stringify(meta.protocolVersion)},${declarations.metaTail}`;
  if (meta.logLevel !== undefined) text += `,"${META.logLevel}":${JSON.stringify(meta.logLevel)}`;
  if (meta.progressToken !== undefined) text += `,"progressToken":${meta.progressToken}`;
  return meta.host === "" ? `${text}}` : `${text},${meta.host}}`;
}

const RESERVED_META: ReadonlySet<string> = new Set([
  META.protocolVersion,
  META.clientInfo,
  META.clientCapabilities,
  META.logLevel,
  META.progressToken,
]);

/** Encodes the host's own `_meta` members as inner text, without the keys that are the engine's. */
export function encodeHostMeta(...parts: readonly unknown[]): string {
  const merged: JsonObject = {};
  for (const part of parts) {
    if (part === undefined || part === null) continue;
    if (!isObject(part)) {
      throw new UsageError(`meta must be an object, not ${typeName(part)}`, { path: "meta" });
    }
    if (typeof part.then === "function") {
      // Its rejection would otherwise be nobody's (SAF-02).
      Promise.resolve(part).catch(() => {});
      throw new UsageError("meta must be an object, not a promise: the function must give it at once", {
        path: "meta",
      });
    }
    for (const key of Object.keys(part)) {
      if (!RESERVED_META.has(key) && part[key] !== undefined) {
        Object.defineProperty(merged, key, {
          value: part[key],
          enumerable: true,
          configurable: true,
          writable: true,
        });
      }
    }
  }
  try {
    return JSON.stringify(merged).slice(1, -1);
  } catch (cause) {
    throw new UsageError(`meta cannot be encoded as JSON: ${(cause as Error).message}`, {
      path: "meta",
      cause,
    });
  }
}
