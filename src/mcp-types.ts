/**
 * The shapes of what MCP servers give, as far as a host reads them. Unknown members are kept: every type is open.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/schema}
 */

import type { JsonObject } from "./wire.ts";

/** What every result may hold. */
export interface Result {
  readonly resultType?: string;
  readonly _meta?: JsonObject;
  readonly [key: string]: unknown;
}

/** One piece of content: text, image, audio, a resource link or an embedded resource. */
export interface ContentBlock {
  readonly type: string;
  readonly text?: string;
  readonly [key: string]: unknown;
}

/** The result of `tools/call`. `T` is the type of the structured content, where the host gave one. */
export interface CallToolResult<T = unknown> extends Result {
  readonly content: readonly ContentBlock[];
  /** Any JSON value, also false, 0 and null. */
  readonly structuredContent?: T;
  /** The tool itself failed; the content says how. */
  readonly isError?: boolean;
}

/** The contents of one resource: `text` or base64 `blob`. */
export interface ResourceContents {
  readonly uri: string;
  readonly mimeType?: string;
  readonly text?: string;
  readonly blob?: string;
  readonly [key: string]: unknown;
}

/** The result of `resources/read`. */
export interface ReadResourceResult extends Result {
  readonly contents: readonly ResourceContents[];
}

/** One message of a prompt. */
export interface PromptMessage {
  readonly role: "user" | "assistant";
  readonly content: ContentBlock;
}

/** The result of `prompts/get`. */
export interface GetPromptResult extends Result {
  readonly description?: string;
  readonly messages: readonly PromptMessage[];
}

/** The result of `completion/complete`. */
export interface CompleteResult extends Result {
  readonly completion: {
    readonly values: readonly string[];
    readonly total?: number;
    readonly hasMore?: boolean;
  };
}

/** A tool, as `tools/list` describes it. */
export interface Tool {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema?: JsonObject;
  readonly annotations?: {
    readonly title?: string;
    readonly readOnlyHint?: boolean;
    readonly destructiveHint?: boolean;
    readonly idempotentHint?: boolean;
    readonly openWorldHint?: boolean;
  };
  readonly [key: string]: unknown;
}

/** A prompt, as `prompts/list` describes it. */
export interface Prompt {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly arguments?: readonly {
    readonly name: string;
    readonly title?: string;
    readonly description?: string;
    readonly required?: boolean;
  }[];
  readonly [key: string]: unknown;
}

/** A resource, as `resources/list` describes it. */
export interface Resource {
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly size?: number;
  readonly [key: string]: unknown;
}

/** A resource template, as `resources/templates/list` describes it. */
export interface ResourceTemplate {
  readonly uriTemplate: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly [key: string]: unknown;
}

/** The result of `server/discover`. */
export interface DiscoverResult extends Result {
  readonly supportedVersions: readonly string[];
  readonly capabilities: JsonObject;
  readonly instructions?: string;
}
