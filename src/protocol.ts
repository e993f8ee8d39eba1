/**
 * The constants of revision 2026-07-28: names, keys and codes, and the few tables that say what a method may do.
 * Nothing here decides anything; the modules that decide read these.
 */

/** The revision that this engine speaks by default. */
export const PROTOCOL_VERSION = "2026-07-28";

/** Keys of `_meta` that the engine writes or reads. {@link https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta} */
export const META = {
  protocolVersion: "io.modelcontextprotocol/protocolVersion",
  clientInfo: "io.modelcontextprotocol/clientInfo",
  clientCapabilities: "io.modelcontextprotocol/clientCapabilities",
  logLevel: "io.modelcontextprotocol/logLevel",
  subscriptionId: "io.modelcontextprotocol/subscriptionId",
  serverInfo: "io.modelcontextprotocol/serverInfo",
  progressToken: "progressToken",
} as const;

/** JSON-RPC and MCP error codes with a meaning to the engine. {@link https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes} */
export const CODE = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  headerMismatch: -32020,
  missingRequiredClientCapability: -32021,
  unsupportedProtocolVersion: -32022,
} as const;

/** Methods whose result may be `input_required`. {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#supported-requests} */
const INPUT_METHODS: ReadonlySet<string> = new Set(["tools/call", "resources/read", "prompts/get"]);

/** Whether a server may answer `method` with `input_required` (MRTR-01). */
export function mayNeedInput(method: string): boolean {
  return INPUT_METHODS.has(method);
}

/** Which param a binding mirrors as the name of a request, per method: `Mcp-Name` over HTTP (HDR-01). */
const NAME_PARAM: ReadonlyMap<string, string> = new Map([
  ["tools/call", "name"],
  ["prompts/get", "name"],
  ["resources/read", "uri"],
]);

/** The param of `method` that a binding mirrors as its name, if the method has one. */
export function nameParam(method: string): string | undefined {
  return NAME_PARAM.get(method);
}

/** Whether `code` is one that only a server of a modern revision sends. */
export function isModernCode(code: number): boolean {
  return (
    code === CODE.headerMismatch ||
    code === CODE.missingRequiredClientCapability ||
    code === CODE.unsupportedProtocolVersion
  );
}

/** Whether `code` lies in the range whose meaning older implementations chose for themselves. */
export function isLegacyCode(code: number): boolean {
  return code <= -32000 && code >= -32019;
}

/** Severity levels of `notifications/message`, least severe first. */
export type LogLevel = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";
