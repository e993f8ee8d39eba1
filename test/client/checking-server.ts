/** A script that does what the specification asks of a server whose tools have `x-mcp-header` annotations. */

import { CODE } from "../../src/protocol.ts";
import type { PeerExchange, PeerRequest, Script } from "../../src/testing/peer-types.ts";
import { complete } from "../../src/testing/replies.ts";
import type { JsonObject } from "../../src/wire.ts";

/** A tool whose string param `region` is mirrored under `header`. */
export function regionTool(name: string, header: string, more: JsonObject = {}): JsonObject {
  const inputSchema = { type: "object", properties: { region: { type: "string", "x-mcp-header": header } } };
  return { name, inputSchema, ...more };
}

/** The value of an `Mcp-Param-*` header as the server reads it; undefined when it did not come. */
export function mirroredValue({ headers }: PeerRequest, name: string): string | undefined {
  const value = headers?.[`mcp-param-${name.toLowerCase()}`];
  if (typeof value !== "string" || !value.startsWith("=?base64?") || !value.endsWith("?=")) {
    return value as string | undefined;
  }
  return Buffer.from(value.slice(9, -2), "base64").toString("utf8");
}

/** What the checking server offers; a test may change it while the server runs. */
export interface Offer {
  /** The pages of `tools/list`. */
  pages: (readonly JsonObject[])[];
  /** Members of every page. */
  more?: JsonObject;
  /** Answers a call that passed the check. Default: a complete result. */
  answer?: (request: PeerRequest, exchange: PeerExchange) => void;
}

/** Answers `tools/list` page by page, and `tools/call` with 400 and -32020 when `region` is not mirrored as it should be. */
export function checkingServer(offer: Offer): Script {
  return (request, exchange) => {
    if (request.method === "tools/list") {
      const page = Number(request.params.cursor ?? "0");
      const next = page + 1 < offer.pages.length ? { nextCursor: String(page + 1) } : {};
      return exchange.result({ resultType: "complete", tools: offer.pages[page], ...next, ...offer.more });
    }
    const tool = offer.pages.flat().find(({ name }) => name === request.params.name);
    const header = headerOf(tool);
    const { region } = (request.params.arguments ?? {}) as { region?: string };
    if (header !== undefined && region !== undefined && mirroredValue(request, header) !== region) {
      const data = { header: `Mcp-Param-${header}` };
      return exchange.error(CODE.headerMismatch, "Header mismatch", data, { status: 400 });
    }
    if (offer.answer === undefined) exchange.result(complete(`called ${request.params.name}`));
    else offer.answer(request, exchange);
  };
}

function headerOf(tool: JsonObject | undefined): string | undefined {
  const schema = tool?.inputSchema as { properties?: Record<string, JsonObject> } | undefined;
  return schema?.properties?.region?.["x-mcp-header"] as string | undefined;
}
