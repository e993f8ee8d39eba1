/** The typed MCP surface over the engine. The only place where promises begin. */

import {
  type CallOptions,
  type ClientLimits,
  type ClientOptions,
  checkClientOptions,
  checkHandlers,
  DEFAULT_LIMITS,
  DEFAULT_TIMEOUTS,
  definedOf,
  readReissue,
  readTimeouts,
} from "./client-options.ts";
import { systemClock } from "./clock.ts";
import { type Continuation, readContinuation } from "./continuation.ts";
import { type Declarations, declare, encodeHostMeta } from "./declarations.ts";
import { Engine } from "./engine.ts";
import { ProtocolViolationError, SuspendedError, UsageError } from "./errors.ts";
import { EventBus } from "./events.ts";
import type { InputHandlers } from "./inputs.ts";
import { type ListMethod, type ListOptions, readPages } from "./lists.ts";
import { answersFor } from "./manual.ts";
import type {
  CallToolResult,
  CompleteResult,
  DiscoverResult,
  GetPromptResult,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplate,
  Result,
  Tool,
} from "./mcp-types.ts";
import { Negotiation, readDiscovery } from "./negotiation.ts";
import {
  createOperation,
  type OperationRules,
  type OperationState,
  type RoundInputs,
  resumeOperation,
} from "./operation.ts";
import type { OperationSpec, SettledPhase, Timeouts } from "./pending.ts";
import { nameParam } from "./protocol.ts";
import type { ReissueRules } from "./reissue.ts";
import { type EncodedParams, encodeNamedParams, encodeParams } from "./request.ts";
import type { MirroredField } from "./transport.ts";
import { createValidator } from "./validate.ts";
import { isObject, type JsonObject, typeName } from "./wire.ts";

/** What `begin` and `resume` give. */
export type Outcome<R = Result> =
  | { readonly status: "complete"; readonly result: R }
  | {
      readonly status: "input_required";
      /** The input requests by key; absent when the server gave only state. */
      readonly inputRequests?: Readonly<
        Record<string, { readonly method: string; readonly params?: JsonObject }>
      >;
      /** Plain JSON for {@link Client.resume}. It holds secrets. */
      readonly continuation: Continuation;
    };

/** One pending operation, as a host may show it. */
export interface OperationView {
  readonly id: number;
  readonly method: string;
  readonly name?: string;
  /** awaiting, gathering, pausing or recovering. */
  readonly phase: string;
  readonly round: number;
  readonly attempt: number;
  /** Milliseconds since it started. */
  readonly ageMs: number;
  /** The keys of the input requests that are being answered. */
  readonly inputs: readonly string[];
}

/** How a client runs one operation; the pieces of it that differ from call to call. */
interface Run {
  readonly method: string;
  readonly params: EncodedParams;
  readonly name: string | undefined;
  readonly mirrored: readonly MirroredField[];
  readonly options: CallOptions;
  readonly manual: boolean;
  /** Going on from a continuation. */
  readonly initial?: OperationState;
  readonly isProbe?: boolean;
  readonly settled: OperationSpec["settled"];
}

const NO_OPTIONS: CallOptions = {};
const NO_MIRRORED: readonly MirroredField[] = [];
const NO_INPUTS: RoundInputs = { responses: undefined, requestState: undefined };

/**
 * Makes a client for one server. Nothing is sent until the first call.
 *
 * @throws {UsageError} when an option cannot work.
 * @example
 * const client = createClient({
 *   transport: httpTransport("https://example.com/mcp"),
 *   info: { name: "my-host", version: "1.0.0" },
 *   inputs: { elicitForm: async ({ message }) => ({ action: (await ask(message)) ? "accept" : "decline" }) },
 * });
 */
export function createClient(options: ClientOptions): Client {
  checkClientOptions(options);
  return new Client(options);
}

/** One server, seen from a host. Made by {@link createClient}. */
export class Client {
  /** The name of the server, as handlers and continuations see it. */
  readonly peer: string;
  readonly #options: ClientOptions;
  readonly #engine: Engine;
  readonly #negotiation: Negotiation;
  readonly #limits: ClientLimits;
  readonly #timeouts: Timeouts;
  readonly #reissue: ReissueRules;
  readonly #declarations: Declarations;
  readonly #hostMeta: string | (() => string);
  readonly #resultTypes: ReadonlySet<string> | undefined;
  readonly #events: EventBus;

  /** Use {@link createClient}. */
  constructor(options: ClientOptions) {
    this.#options = options;
    this.peer = options.peer ?? options.transport.peer;
    this.#limits = { ...DEFAULT_LIMITS, ...definedOf(options.limits) };
    this.#timeouts = { ...DEFAULT_TIMEOUTS, ...definedOf(options.timeouts) };
    this.#reissue = readReissue(options.reissue);
    this.#declarations = declare({ ...options.inputs }, options.info, options.capabilities ?? {});
    const { meta } = options;
    this.#hostMeta = typeof meta === "function" ? () => encodeHostMeta(meta()) : encodeHostMeta(meta);
    const resultTypes = options.capabilities?.resultTypes;
    this.#resultTypes = resultTypes === undefined ? undefined : new Set(resultTypes);
    this.#negotiation = new Negotiation(options.protocolVersions);
    if (options.discovery !== undefined) this.#adoptKnown(options.discovery);
    const probeMs = options.probeMs ?? 10_000;
    this.#events = new EventBus(options.onEvent);
    this.#engine = new Engine({
      transport: options.transport,
      clock: options.clock ?? systemClock,
      events: this.#events,
      negotiation: this.#negotiation,
      validator: options.validator ?? createValidator(),
      messageBytes: this.#limits.messageBytes,
      pendingOperations: this.#limits.pendingOperations,
      probes: options.discovery === undefined,
      probeMs,
      probeSpec: (settled) => this.#probeSpec(probeMs, settled),
      onDiscovery: (result) => this.#adopt(result),
      onLog: options.onLog,
      onNotification: (frame) => options.onNotification?.(frame),
    });
  }

  /**
   * Calls a tool and answers what its server asks on the way. `tools/call`.
   * {@link https://modelcontextprotocol.io/specification/2026-07-28/server/tools#calling-tools}
   */
  callTool(name: string, args?: object, options: CallOptions = NO_OPTIONS): Promise<CallToolResult> {
    return this.#callNamed("tools/call", name, args, options) as Promise<CallToolResult>;
  }

  /** Gets a prompt. `prompts/get`. {@link https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#getting-a-prompt} */
  getPrompt(name: string, args?: object, options: CallOptions = NO_OPTIONS): Promise<GetPromptResult> {
    return this.#callNamed("prompts/get", name, args, options) as Promise<GetPromptResult>;
  }

  /** Reads a resource. `resources/read`. {@link https://modelcontextprotocol.io/specification/2026-07-28/server/resources#reading-resources} */
  readResource(uri: string, options: CallOptions = NO_OPTIONS): Promise<ReadResourceResult> {
    return this.#attempt<ReadResourceResult>(() => {
      if (typeof uri !== "string")
        throw new UsageError(`uri must be a string, not ${typeName(uri)}`, { path: "uri" });
      return this.#run<ReadResourceResult>("resources/read", encodeParams({ uri }), uri, options);
    });
  }

  /** Asks for completions of an argument. `completion/complete`. {@link https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion} */
  complete(params: object, options: CallOptions = NO_OPTIONS): Promise<CompleteResult> {
    return this.request("completion/complete", params, options) as Promise<CompleteResult>;
  }

  /** Asks the server what it is and speaks. `server/discover`. {@link https://modelcontextprotocol.io/specification/2026-07-28/server/discover} */
  discover(options: CallOptions = NO_OPTIONS): Promise<DiscoverResult> {
    return this.request("server/discover", undefined, options) as Promise<DiscoverResult>;
  }

  /** Every tool, or one page with `{ cursor }`. `tools/list`. */
  listTools(options: ListOptions = {}): Promise<Tool[]> {
    return this.#list<Tool>("tools/list", "tools", options);
  }

  /** Every prompt, or one page with `{ cursor }`. `prompts/list`. */
  listPrompts(options: ListOptions = {}): Promise<Prompt[]> {
    return this.#list<Prompt>("prompts/list", "prompts", options);
  }

  /** Every resource, or one page with `{ cursor }`. `resources/list`. */
  listResources(options: ListOptions = {}): Promise<Resource[]> {
    return this.#list<Resource>("resources/list", "resources", options);
  }

  /** Every resource template, or one page with `{ cursor }`. `resources/templates/list`. */
  listResourceTemplates(options: ListOptions = {}): Promise<ResourceTemplate[]> {
    return this.#list<ResourceTemplate>("resources/templates/list", "resourceTemplates", options);
  }

  /**
   * The raw pages of a list, one request each, from `options.cursor` on. Stops at the end, at a repeated cursor and at
   * `maxPages` (LST-01). {@link https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination}
   */
  pages(method: ListMethod, options: ListOptions = {}): AsyncIterable<Result> {
    return readPages(
      method,
      options,
      (params, call) => this.request(method, params, call),
      (reason) => {
        if (!this.#events.watched) return;
        this.#events.publish({ type: "list.stopped", method, reason, atMs: performance.now() });
      },
    );
  }

  /**
   * Sends any request and answers what its server asks on the way. The result is given as it came.
   *
   * @throws {UsageError} when `params` is no object or holds what JSON cannot say.
   */
  request(method: string, params?: object, options: CallOptions = NO_OPTIONS): Promise<Result> {
    return this.#attempt<Result>(() => {
      const encoded = encodeParams(params);
      return this.#run<Result>(method, encoded, nameIn(method, encoded.text), options);
    });
  }

  /**
   * Manual mode: sends the request and gives the outcome. No handler runs; which exist still decides what is declared.
   * Answer an `input_required` outcome with {@link resume}, at any time and in any process (MRTR-20).
   */
  begin(method: string, params?: object, options: CallOptions = NO_OPTIONS): Promise<Outcome> {
    return this.#attempt<Outcome>(() => {
      const encoded = encodeParams(params);
      const name = nameIn(method, encoded.text);
      return this.#manual({ method, params: encoded, name, mirrored: NO_MIRRORED, options });
    });
  }

  /**
   * Goes on from a continuation: sends the retry with `inputResponses`, one result object for each key that was asked
   * and is not answered yet. A continuation of another peer, damaged or unknown, or keys that were not asked are refused
   * before anything is sent.
   *
   * @throws {UsageError} as said; {InputError} when an answer does not fit its question.
   */
  async resume(
    continuation: unknown,
    inputResponses: Readonly<Record<string, unknown>> = {},
    options: CallOptions = NO_OPTIONS,
  ): Promise<Outcome> {
    const read = readContinuation(continuation, this.peer);
    const { method, params, name, mirrored, rounds, requestState } = read.continuation;
    const responses = await answersFor(read, inputResponses, {
      validator: this.#options.validator ?? createValidator(),
      applyDefaults: options.applyDefaults ?? this.#options.applyDefaults ?? false,
    });
    return this.#manual({
      method,
      params: { text: params, meta: undefined, responses: undefined, requestState: undefined },
      name,
      mirrored: mirrored ?? NO_MIRRORED,
      options,
      initial: resumeOperation(rounds, { responses, requestState }, mirrored ?? NO_MIRRORED),
    });
  }

  /** What is pending, by logical operation. */
  get operations(): readonly OperationView[] {
    const now = (this.#options.clock ?? systemClock).now();
    const views: OperationView[] = [];
    for (const { id, method, state, spec, startedAt } of this.#engine.operations) {
      if (spec.isProbe) continue;
      const { phase, round, attempt } = state;
      const { name } = spec.rules;
      const inputs = phase.at === "gathering" ? (phase.question.requests ?? []).map(({ key }) => key) : [];
      const view = { id, method, phase: phase.at, round, attempt, ageMs: now - startedAt, inputs };
      views.push(name === undefined ? view : { ...view, name });
    }
    return views;
  }

  /** Ends what is pending with a ClosedError, closes the transport, and resolves within a bounded time. Idempotent. */
  close(): Promise<void> {
    return this.#engine.close();
  }

  /** Closes the client at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // --- how an operation is made ---------------------------------------------------------------------------------------

  #callNamed(method: string, name: string, args: object | undefined, options: CallOptions): Promise<Result> {
    return this.#attempt<Result>(() => {
      if (typeof name !== "string") {
        throw new UsageError(`the name must be a string, not ${typeName(name)}`, { path: "name" });
      }
      const text = encodeNamedParams(name, args);
      const params = { text, meta: undefined, responses: undefined, requestState: undefined };
      return this.#run<Result>(method, params, name, options);
    });
  }

  /** A UsageError of the call itself rejects the promise; a method that returns a promise never throws. */
  #attempt<T>(start: () => Promise<T>): Promise<T> {
    try {
      return start();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #run<R>(method: string, params: EncodedParams, name: string | undefined, options: CallOptions): Promise<R> {
    return promised<R>((resolve, reject) => {
      this.#start({
        method,
        params,
        name,
        mirrored: NO_MIRRORED,
        options,
        manual: false,
        settled: (phase) => {
          if (phase.at === "succeeded") resolve(phase.result as R);
          else reject(phase.at === "suspended" ? suspendedError(phase, method) : phase.error);
        },
      });
    });
  }

  #manual(run: Omit<Run, "manual" | "settled">): Promise<Outcome> {
    return promised<Outcome>((resolve, reject) => {
      this.#start({
        ...run,
        manual: true,
        settled: (phase) => {
          if (phase.at === "succeeded") resolve({ status: "complete", result: phase.result });
          else if (phase.at === "suspended") resolve(outcomeOf(phase));
          else reject(phase.error);
        },
      });
    });
  }

  #start(run: Run): void {
    this.#engine.start(this.#specOf(run));
  }

  #specOf(run: Run): OperationSpec {
    const { method, params, name, mirrored, options } = run;
    const defaults = this.#options;
    const declarations = this.#declared(options);
    const rules: OperationRules = {
      method,
      params: params.text,
      name,
      peer: this.peer,
      extraResultTypes: this.#resultTypes,
      undeclared: declarations.undeclared,
      maxRounds: options.maxRounds ?? defaults.maxRounds ?? 10,
      maxRepeats: options.maxRepeats ?? defaults.maxRepeats ?? 2,
      limits: this.#limits,
      reissue: options.reissue === undefined ? this.#reissue : readReissue(options.reissue, this.#reissue),
      repeatable: this.#isRepeatable(method, options),
      manual: run.manual,
      first:
        params.responses === undefined && params.requestState === undefined
          ? NO_INPUTS
          : { responses: params.responses, requestState: params.requestState },
    };
    return {
      rules,
      initial: run.initial ?? createOperation(rules, mirrored),
      declarations,
      timeouts: readTimeouts(options, this.#timeouts),
      applyDefaults: options.applyDefaults ?? defaults.applyDefaults ?? false,
      signal: options.signal,
      hostMeta: this.#metaOf(params.meta, options),
      logLevel: options.logLevel,
      context: options.context,
      onProgress: options.onProgress,
      onLog: options.onLog,
      refreshMirrored: undefined,
      isProbe: run.isProbe ?? false,
      settled: run.settled,
    };
  }

  #declared(options: CallOptions): Declarations {
    if (options.inputs === undefined) return this.#declarations;
    checkHandlers(options.inputs);
    const merged: InputHandlers = { ...this.#options.inputs, ...definedOf(options.inputs) };
    return declare(merged, this.#options.info, this.#options.capabilities ?? {});
  }

  #metaOf(own: JsonObject | undefined, options: CallOptions): string | (() => string) {
    const { meta } = options;
    if (meta === undefined && own === undefined) return this.#hostMeta;
    const base = this.#options.meta;
    if (typeof base !== "function" && typeof meta !== "function") return encodeHostMeta(base, own, meta);
    const call = (part: typeof base) => (typeof part === "function" ? part() : part);
    return () => encodeHostMeta(call(base), own, call(meta));
  }

  #isRepeatable(method: string, options: CallOptions): boolean {
    if (method !== "tools/call" || options.repeatable === true) return true;
    if (this.#options.trustAnnotations !== true) return false;
    const hints = options.tool?.annotations;
    return hints?.readOnlyHint === true || hints?.idempotentHint === true;
  }

  async #list<T>(method: ListMethod, member: string, options: ListOptions): Promise<T[]> {
    const items: T[] = [];
    for await (const page of this.pages(method, options)) {
      for (const item of page[member] as T[]) items.push(item);
      if (options.cursor !== undefined) break;
    }
    return items;
  }

  // --- discovery ------------------------------------------------------------------------------------------------------

  #probeSpec(probeMs: number, settled: OperationSpec["settled"]): OperationSpec {
    return this.#specOf({
      method: "server/discover",
      params: encodeParams(undefined),
      name: undefined,
      mirrored: NO_MIRRORED,
      options: { attemptMs: probeMs, reissue: "never", resetOnProgress: false },
      manual: false,
      isProbe: true,
      settled,
    });
  }

  #adopt(result: JsonObject) {
    const discovery = readDiscovery(result);
    if (discovery !== undefined) return this.#negotiation.adopt(discovery);
    return new ProtocolViolationError("the discovery lists no versions", "result.supportedVersions");
  }

  #adoptKnown(discovery: DiscoverResult): void {
    if (!isObject(discovery) || readDiscovery(discovery) === undefined) {
      throw new UsageError("discovery must be a result of server/discover, with supportedVersions", {
        path: "discovery",
      });
    }
    // A discovery without a common version may be out of date: the first answer will tell.
    this.#negotiation.adopt(discovery);
  }
}

/** A promise whose rejection is the caller's to handle, and never an unhandled one before the caller had the chance. */
function promised<R>(
  start: (resolve: (value: R) => void, reject: (error: unknown) => void) => void,
): Promise<R> {
  let resolve!: (value: R) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<R>((onResult, onError) => {
    resolve = onResult;
    reject = onError;
  });
  start(resolve, (error) => {
    // Where `close()` ends a call before its caller could attach a handler, Node would end the process (SAF-02).
    promise.catch(ignore);
    reject(error);
  });
  return promise;
}

function ignore(): void {}

/** The name that a binding mirrors, read from the encoded text: what is mirrored can't differ from what is sent. */
function nameIn(method: string, params: string): string | undefined {
  const key = nameParam(method);
  if (key === undefined) return undefined;
  const value = (JSON.parse(`{${params}}`) as JsonObject)[key];
  return typeof value === "string" ? value : undefined;
}

function outcomeOf({ continuation }: Extract<SettledPhase, { at: "suspended" }>): Outcome {
  const { inputRequests } = continuation;
  return { status: "input_required", ...(inputRequests !== undefined && { inputRequests }), continuation };
}

function suspendedError(phase: Extract<SettledPhase, { at: "suspended" }>, method: string): SuspendedError {
  const keys = phase.open.map((key) => JSON.stringify(key)).join(", ");
  return new SuspendedError(
    `${method} needs an input that was left to the host (${keys.slice(0, 300)}). Answer it with client.resume(error.continuation, { key: answer }).`,
    phase.open,
    phase.continuation,
  );
}
