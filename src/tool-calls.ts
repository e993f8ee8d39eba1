/** What is special about `tools/call`: mirrored params on the way out, a check of the output on the way back. */

import { type CallOptions, checkUncheckedOutput } from "./client-options.ts";
import type { Clock } from "./clock.ts";
import type { EventBus } from "./events.ts";
import { HeaderRefresh } from "./header-refresh.ts";
import type { ListOptions } from "./lists.ts";
import type { Result } from "./mcp-types.ts";
import { mirrorParams } from "./mirroring.ts";
import { checkOutput, type UncheckedOutput } from "./output.ts";
import type { PendingOperation } from "./pending.ts";
import { type KnownTool, ToolBook } from "./tools.ts";
import type { MirroredField } from "./transport.ts";
import type { SchemaValidator } from "./validate.ts";
import type { JsonObject } from "./wire.ts";

/** What the tool calls of a client need. */
export interface ToolCallsOptions {
  readonly clock: Clock;
  readonly events: EventBus;
  readonly validator: SchemaValidator;
  /** The client's defaults, which a call may overrule. */
  readonly uncheckedOutput: UncheckedOutput;
  readonly operationMs: number | undefined;
  /** Reads pages of `tools/list`. */
  readonly pages: (options: ListOptions) => AsyncIterable<Result>;
}

/** The tool calls of one client, and what they know of its tools. */
export class ToolCalls {
  readonly book: ToolBook;
  readonly refresh: HeaderRefresh;
  readonly options: ToolCallsOptions;

  constructor(options: ToolCallsOptions) {
    const { events, clock } = options;
    this.options = options;
    this.book = new ToolBook((tool, reason) => {
      if (events.watched) events.publish({ type: "tool.rejected", tool, reason, atMs: clock.now() });
    });
    this.refresh = new HeaderRefresh(this.book);
  }

  /**
   * Prepares one call.
   *
   * @param mirrored The fields of a continuation; by default they are read from the params.
   * @throws {UsageError} when an option cannot be used, or an integer cannot be mirrored.
   */
  prepare(name: string, params: string, options: CallOptions, mirrored?: readonly MirroredField[]): ToolCall {
    checkUncheckedOutput(options.uncheckedOutput);
    const tool = this.book.find(name, options.tool);
    const fields = mirrored ?? mirrorParams(tool?.rules ?? [], params);
    return new ToolCall(this, name, params, options, tool, fields);
  }
}

/** One call of a tool. */
export class ToolCall {
  /** The fields of the first attempt. */
  readonly mirrored: readonly MirroredField[];
  readonly #calls: ToolCalls;
  readonly #name: string;
  readonly #params: string;
  readonly #options: CallOptions;
  /** The edition of the book that the call goes by. */
  #edition: number;
  readonly #endsAt: number;
  #tool: KnownTool | undefined;

  /** Use {@link ToolCalls.prepare}. */
  constructor(
    calls: ToolCalls,
    name: string,
    params: string,
    options: CallOptions,
    tool: KnownTool | undefined,
    mirrored: readonly MirroredField[],
  ) {
    this.#calls = calls;
    this.#name = name;
    this.#params = params;
    this.#options = options;
    this.#tool = tool;
    this.mirrored = mirrored;
    this.#edition = calls.book.edition;
    const operationMs = options.operationMs ?? calls.options.operationMs;
    this.#endsAt =
      operationMs === undefined ? Number.POSITIVE_INFINITY : calls.options.clock.now() + operationMs;
  }

  /** Whether the server says that a second run does no harm. */
  get claimsRepeatable(): boolean {
    return this.#tool?.claimsRepeatable ?? false;
  }

  /** After -32020: the fields anew; undefined when the list has no better ones to offer. */
  async refreshMirrored(): Promise<readonly MirroredField[] | undefined> {
    const options = this.#options;
    const refreshed = await this.#calls.refresh.run({
      name: this.#name,
      params: this.#params,
      context: options.context,
      edition: this.#edition,
      pages: () => this.#calls.options.pages(this.#listOptions()),
      isOver: () => options.signal?.aborted === true || this.#leftMs() <= 0,
    });
    if (refreshed === undefined) return undefined;
    // A later round that is refused has to be told what is newer than this.
    this.#edition = this.#calls.book.edition;
    this.#tool = refreshed.tool;
    return refreshed.mirrored;
  }

  #leftMs(): number {
    return this.#endsAt - this.#calls.options.clock.now();
  }

  /** The refresh is part of the call: its signal, its time and its context hold. */
  #listOptions(): ListOptions {
    const { signal, context, meta, inputs, attemptMs, attemptMaxMs, reissue } = this.#options;
    const leftMs = this.#leftMs();
    const operationMs = leftMs === Number.POSITIVE_INFINITY ? undefined : Math.max(0, leftMs);
    return { signal, context, meta, inputs, attemptMs, attemptMaxMs, reissue, operationMs, cache: "refresh" };
  }

  /** Hands the result over once its output is checked; at once when there is nothing to check. */
  finish<R>(
    result: JsonObject,
    operation: PendingOperation,
    resolve: (result: R) => void,
    reject: (error: unknown) => void,
  ): void {
    const schema = this.#tool?.outputSchema;
    if (schema === undefined) return resolve(result as R);
    const { validator, uncheckedOutput, events, clock } = this.#calls.options;
    const options = this.#options;
    const verdict = checkOutput(validator, {
      tool: this.#name,
      schema,
      result,
      unchecked: options.uncheckedOutput ?? uncheckedOutput,
      onUnchecked: (tool, reason) => {
        if (events.watched) events.publish({ type: "output.unchecked", tool, reason, atMs: clock.now() });
      },
    });
    const settle = (error: Awaited<typeof verdict>): void => {
      if (error === undefined) return resolve(result as R);
      error.operation ??= operation.info(undefined);
      reject(error);
    };
    if (verdict instanceof Promise) verdict.then(settle, reject);
    else settle(verdict);
  }
}
