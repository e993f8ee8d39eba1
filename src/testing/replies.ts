/** The results and input requests that scripts answer with most, in one line each. */

import type { JsonObject } from "../wire.ts";

/**
 * A result that asks for input. Members that are not given are absent.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#inputrequiredresult}
 *
 * @example inputRequired({ inputRequests: { sure: elicitForm("Deploy?", schema) }, requestState: "s1" })
 */
export function inputRequired(ask: { inputRequests?: unknown; requestState?: unknown }): JsonObject {
  return { resultType: "input_required", ...ask };
}

/** A complete tool result: its text, or its content blocks; `more` is laid over it. */
export function complete(content: string | readonly unknown[], more: JsonObject = {}): JsonObject {
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return { resultType: "complete", content: blocks, ...more };
}

/** An input request that asks the user to fill in a form. The schema's default is one required boolean, `ok`. */
export function elicitForm(message: string, requestedSchema: JsonObject = CONFIRM): JsonObject {
  return { method: "elicitation/create", params: { mode: "form", message, requestedSchema } };
}

/** An input request that asks the user to open a URL. */
export function elicitUrl(message: string, url: string): JsonObject {
  return { method: "elicitation/create", params: { mode: "url", message, url } };
}

/** An input request that asks the host's model for a message. `more` is laid over the params. */
export function sample(text: string, more: JsonObject = {}): JsonObject {
  const messages = [{ role: "user", content: { type: "text", text } }];
  return { method: "sampling/createMessage", params: { messages, maxTokens: 100, ...more } };
}

/** An input request that asks for the host's roots. */
export function listRoots(): JsonObject {
  return { method: "roots/list" };
}

const CONFIRM: JsonObject = {
  type: "object",
  properties: { ok: { type: "boolean", title: "OK" } },
  required: ["ok"],
};
