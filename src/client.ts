/** The typed MCP surface over the engine. The only place where promises begin. */

import { Caller, nameIn } from "./caller.ts";
import {
  type CallOptions,
  type ClientOptions,
  checkClientOptions,
  type ToolCallOptions,
} from "./client-options.ts";
import { type Clock, systemClock } from "./clock.ts";
import { readContinuation } from "./continuation.ts";
import { Engine } from "./engine.ts";
import { UsageError } from "./errors.ts";
import { EventBus } from "./events.ts";
import { loadInputCode } from "./input-code.ts";
import type { ListMethod, ListOptions } from "./lists.ts";
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
import { resumeOperation } from "./operation-state.ts";
import { ignore, type Outcome } from "./outcome.ts";
import { applyStandardSchema } from "./output.ts";
import { NO_MIRRORED, Planner } from "./planner.ts";
import { encodeNamedParams, encodeParams } from "./request.ts";
import { isStandardSchema } from "./standard-schema.ts";
import type { Subscription } from "./subscription.ts";
import type { SubscriptionFilter } from "./subscription-filter.ts";
import { type SubscribeOptions, Subscriptions } from "./subscriptions.ts";
import type { NotificationFrame } from "./transport.ts";
import { createValidator, type SchemaValidator } from "./validate.ts";
import { isObject, typeName } from "./wire.ts";

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

const NO_OPTIONS: CallOptions = {};

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
  readonly #clock: Clock;
  readonly #planner: Planner;
  readonly #validator: SchemaValidator;
  readonly #caller: Caller;
  readonly #engine: Engine;
  readonly #subscriptions: Subscriptions;

  /** Use {@link createClient}. */
  constructor(options: ClientOptions) {
    const { transport, discovery, probeMs = 10_000 } = options;
    const clock = options.clock ?? systemClock;
    const events = new EventBus(options.onEvent);
    const negotiation = new Negotiation(options.protocolVersions);
    if (discovery !== undefined) adoptKnown(discovery, negotiation);
    const shared = transport.shared === true;
    const probes = discovery === undefined;
    this.#options = options;
    this.#clock = clock;
    this.peer = options.peer ?? transport.peer;
    this.#planner = new Planner(options, this.peer);
    this.#validator = options.validator ?? createValidator();
    const { peer } = this;
    const parts = {
      options,
      peer,
      clock,
      events,
      planner: this.#planner,
      negotiation,
      validator: this.#validator,
    };
    this.#caller = new Caller(parts);
    this.#engine = new Engine({
      transport,
      clock,
      events,
      negotiation,
      validator: this.#validator,
      messageBytes: this.#planner.limits.messageBytes,
      pendingOperations: this.#planner.limits.pendingOperations,
      probes,
      probeMs,
      probeSpec: (settled) => this.#planner.planProbe(probeMs, settled),
      onDiscovery: (result) => this.#caller.adopt(result),
      onLog: options.onLog,
      onNotification: (frame) => this.#notified(frame),
    });
    this.#caller.attach(this.#engine);
    if (shared) {
      // Behind a new link may be a server of another version.
      this.#engine.watchLink((state) => {
        if (state === "down") this.#missed();
      });
    }
    this.#subscriptions = new Subscriptions({
      engine: this.#engine,
      shared,
      probes,
      clock,
      events,
      negotiation,
      extensible: options.capabilities?.extensions !== undefined,
      notified: (frame) => this.#notified(frame),
      missed: () => this.#missed(),
    });
  }

  /**
   * Calls a tool and answers what its server asks on the way. `tools/call`.
   * {@link https://modelcontextprotocol.io/specification/2026-07-28/server/tools#calling-tools}
   *
   * The output is checked against the tool's `outputSchema`, when a list or `options.tool` told of it, and then against
   * `options.output`, which also gives it its type. A {@link SchemaError} of either carries the result.
   */
  callTool<T = unknown>(
    name: string,
    args?: object,
    options: ToolCallOptions<T> = NO_OPTIONS,
  ): Promise<CallToolResult<T>> {
    const { output } = options;
    if (output === undefined) {
      return this.#callNamed("tools/call", name, args, options) as Promise<CallToolResult<T>>;
    }
    const checked = this.#attempt<CallToolResult<T>>(() => {
      if (!isStandardSchema(output)) {
        throw new UsageError(
          `output must be a Standard Schema, not ${typeName(output)}; give a JSON Schema as \`tool: { name, inputSchema, outputSchema }\``,
          { path: "output" },
        );
      }
      const called = this.#callNamed("tools/call", name, args, options) as Promise<CallToolResult>;
      return called.then((result) => applyStandardSchema(output, name, result));
    });
    checked.catch(ignore);
    return checked;
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
      return this.#caller.run<ReadResourceResult>("resources/read", encodeParams({ uri }), uri, options);
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
    return this.#caller.list<Tool>("tools/list", "tools", options);
  }

  /** Every prompt, or one page with `{ cursor }`. `prompts/list`. */
  listPrompts(options: ListOptions = {}): Promise<Prompt[]> {
    return this.#caller.list<Prompt>("prompts/list", "prompts", options);
  }

  /** Every resource, or one page with `{ cursor }`. `resources/list`. */
  listResources(options: ListOptions = {}): Promise<Resource[]> {
    return this.#caller.list<Resource>("resources/list", "resources", options);
  }

  /** Every resource template, or one page with `{ cursor }`. `resources/templates/list`. */
  listResourceTemplates(options: ListOptions = {}): Promise<ResourceTemplate[]> {
    return this.#caller.list<ResourceTemplate>("resources/templates/list", "resourceTemplates", options);
  }

  /**
   * The raw pages of a list, one request each, from `options.cursor` on. Stops at the end, at a repeated cursor and at
   * `maxPages` (LST-01). {@link https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination}
   */
  pages(method: ListMethod, options: ListOptions = {}): AsyncIterable<Result> {
    return this.#caller.pages(method, options);
  }

  /**
   * Sends any request and answers what its server asks on the way. The result is given as it came.
   *
   * @throws {UsageError} when `params` is no object or holds what JSON cannot say.
   */
  request(method: string, params?: object, options: CallOptions = NO_OPTIONS): Promise<Result> {
    return this.#attempt<Result>(() => {
      const encoded = encodeParams(params);
      return this.#caller.run<Result>(method, encoded, nameIn(method, encoded.text), options);
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
      const tool = this.#caller.toolCall(method, name, encoded.text, options);
      const mirrored = tool?.mirrored ?? NO_MIRRORED;
      return this.#caller.manual({ method, params: encoded, name, mirrored, tool, options });
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
    const { answersFor } = await loadInputCode();
    const responses = await answersFor(read, inputResponses, {
      validator: this.#validator,
      applyDefaults: options.applyDefaults ?? this.#options.applyDefaults ?? false,
    });
    return this.#caller.manual({
      method,
      params: { text: params, meta: undefined, responses: undefined, requestState: undefined },
      name,
      mirrored: mirrored ?? NO_MIRRORED,
      tool: this.#caller.toolCall(method, name, params, options, mirrored ?? NO_MIRRORED),
      options,
      resumed: resumeOperation(rounds, { responses, requestState }, mirrored ?? NO_MIRRORED),
    });
  }

  /**
   * Listens for changes: `subscriptions/listen`. Iterate over what it gives; leaving the loop closes it. A lost stream is
   * listened to again under the same handle, and a `gap` item says that changes may have been missed (SUB-01).
   * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions}
   *
   * @throws {UsageError} when the filter or an option cannot work; nothing is sent then.
   * @example
   * for await (const item of client.subscribe({ toolsListChanged: true })) {
   *   if (item.type === "gap" || item.method === "notifications/tools/list_changed") tools = await client.listTools();
   * }
   */
  subscribe(filter: SubscriptionFilter, options: SubscribeOptions = {}): Subscription {
    return this.#subscriptions.open(filter, options, () => ({
      declarations: this.#planner.declared(options),
      hostMeta: this.#planner.metaOf(undefined, options),
    }));
  }

  /** What is pending, by logical operation. */
  get operations(): readonly OperationView[] {
    const now = this.#clock.now();
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
    this.#subscriptions.close();
    return this.#engine.close();
  }

  /** Closes the client at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Every notification that is neither progress nor a log entry passes here, whichever way it came. */
  #notified(frame: NotificationFrame): unknown {
    this.#caller.cache?.notified(frame);
    return this.#options.onNotification?.(frame);
  }

  /** Changes may have gone unnoticed: what is cached is no longer to be trusted. */
  #missed(): void {
    this.#caller.cache?.evictAll();
  }

  #callNamed(method: string, name: string, args: object | undefined, options: CallOptions): Promise<Result> {
    return this.#attempt<Result>(() => {
      if (typeof name !== "string") {
        throw new UsageError(`the name must be a string, not ${typeName(name)}`, { path: "name" });
      }
      const text = encodeNamedParams(name, args);
      const params = { text, meta: undefined, responses: undefined, requestState: undefined };
      return this.#caller.run<Result>(method, params, name, options);
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
}

function adoptKnown(discovery: DiscoverResult, negotiation: Negotiation): void {
  const known = isObject(discovery) ? readDiscovery(discovery) : undefined;
  if (known === undefined) {
    throw new UsageError("discovery must be a result of server/discover, with supportedVersions", {
      path: "discovery",
    });
  }
  // A discovery without a common version may be out of date: the first answer will tell.
  negotiation.adopt(known);
}
