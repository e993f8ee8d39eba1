/** Makes the spec of an operation from what the host set on the client and on the call. */

import {
  type CallOptions,
  type ClientLimits,
  type ClientOptions,
  checkHandlers,
  DEFAULT_LIMITS,
  DEFAULT_TIMEOUTS,
  definedOf,
  readReissue,
  readTimeouts,
} from "./client-options.ts";
import { type Declarations, declare, encodeHostMeta } from "./declarations.ts";
import type { InputHandlers } from "./inputs.ts";
import type { OperationRules, OperationState, RoundInputs } from "./operation-state.ts";
import type { OperationSpec, Timeouts } from "./pending.ts";
import type { ReissueRules } from "./reissue.ts";
import { type EncodedParams, encodeParams } from "./request.ts";
import type { ToolCall } from "./tool-calls.ts";
import type { MirroredField } from "./transport.ts";
import type { JsonObject } from "./wire.ts";

/** How a client runs one operation; the pieces of it that differ from call to call. */
export interface Run {
  readonly method: string;
  readonly params: EncodedParams;
  readonly name: string | undefined;
  readonly mirrored: readonly MirroredField[];
  readonly options: CallOptions;
  readonly manual: boolean;
  /** What goes with a call of a tool. */
  readonly tool?: ToolCall | undefined;
  /** Going on from a continuation. */
  readonly resumed?: OperationState;
  readonly isProbe?: boolean;
  readonly settled: OperationSpec["settled"];
}

const NO_INPUTS: RoundInputs = { responses: undefined, requestState: undefined };

/** Fields that no tool asks to be mirrored. */
export const NO_MIRRORED: readonly MirroredField[] = [];

/** One per client. */
export class Planner {
  readonly limits: ClientLimits;
  readonly timeouts: Timeouts;
  readonly hostMeta: string | (() => string);
  readonly #peer: string;
  readonly #options: ClientOptions;
  readonly #reissue: ReissueRules;
  readonly #declarations: Declarations;
  readonly #resultTypes: ReadonlySet<string> | undefined;

  constructor(options: ClientOptions, peer: string) {
    this.#options = options;
    this.#peer = peer;
    this.limits = { ...DEFAULT_LIMITS, ...definedOf(options.limits) };
    this.timeouts = { ...DEFAULT_TIMEOUTS, ...definedOf(options.timeouts) };
    this.#reissue = readReissue(options.reissue);
    this.#declarations = declare({ ...options.inputs }, options.info, options.capabilities ?? {});
    const { meta } = options;
    this.hostMeta = typeof meta === "function" ? () => encodeHostMeta(meta()) : encodeHostMeta(meta);
    const resultTypes = options.capabilities?.resultTypes;
    this.#resultTypes = resultTypes === undefined ? undefined : new Set(resultTypes);
  }

  /** The spec of one operation. */
  plan(run: Run): OperationSpec {
    const { method, params, name, mirrored, options } = run;
    const defaults = this.#options;
    const declarations = this.declared(options);
    const rules: OperationRules = {
      method,
      params: params.text,
      name,
      peer: this.#peer,
      extraResultTypes: this.#resultTypes,
      undeclared: declarations.undeclared,
      maxRounds: options.maxRounds ?? defaults.maxRounds ?? 10,
      maxRepeats: options.maxRepeats ?? defaults.maxRepeats ?? 2,
      limits: this.limits,
      reissue: options.reissue === undefined ? this.#reissue : readReissue(options.reissue, this.#reissue),
      repeatable: this.#isRepeatable(method, options, run.tool),
      manual: run.manual,
      first:
        params.responses === undefined && params.requestState === undefined
          ? NO_INPUTS
          : { responses: params.responses, requestState: params.requestState },
    };
    return {
      rules,
      resumed: run.resumed,
      mirrored,
      declarations,
      timeouts: readTimeouts(options, this.timeouts),
      applyDefaults: options.applyDefaults ?? defaults.applyDefaults ?? false,
      signal: options.signal,
      hostMeta: this.metaOf(params.meta, options),
      logLevel: options.logLevel,
      context: options.context,
      onProgress: options.onProgress,
      onLog: options.onLog,
      mirror: run.tool,
      isProbe: run.isProbe ?? false,
      settled: run.settled,
    };
  }

  /** What a call declares: its own handlers merged over the client's. */
  declared(options: CallOptions): Declarations {
    if (options.inputs === undefined) return this.#declarations;
    checkHandlers(options.inputs);
    const merged: InputHandlers = { ...this.#options.inputs, ...definedOf(options.inputs) };
    return declare(merged, this.#options.info, this.#options.capabilities ?? {});
  }

  /** The host's metadata for a call: text when it is fixed, a function when it is made anew for each attempt. */
  metaOf(own: JsonObject | undefined, options: CallOptions): string | (() => string) {
    const { meta } = options;
    if (meta === undefined && own === undefined) return this.hostMeta;
    const base = this.#options.meta;
    if (typeof base !== "function" && typeof meta !== "function") return encodeHostMeta(base, own, meta);
    const call = (part: typeof base) => (typeof part === "function" ? part() : part);
    return () => encodeHostMeta(call(base), own, call(meta));
  }

  #isRepeatable(method: string, options: CallOptions, tool: ToolCall | undefined): boolean {
    if (method !== "tools/call" || options.repeatable === true) return true;
    return this.#options.trustAnnotations === true && (tool?.claimsRepeatable ?? false);
  }

  /** The spec of a link's probe: no call of the host, so its one bound is its own. */
  planProbe(probeMs: number, settled: OperationSpec["settled"]): OperationSpec {
    return this.plan({
      method: "server/discover",
      params: encodeParams(undefined),
      name: undefined,
      mirrored: NO_MIRRORED,
      options: {
        attemptMs: probeMs,
        attemptMaxMs: probeMs,
        operationMs: Number.POSITIVE_INFINITY,
        reissue: "never",
        resetOnProgress: false,
      },
      manual: false,
      isProbe: true,
      settled,
    });
  }
}
