/**
 * What the bench servers answer, whatever the transport. They speak revision 2026-07-28, and to clients that send
 * `initialize` the older ones, so that every contender meets the same server. They do as little as they can: what they
 * cost is not measured, but it must not hold a client up.
 */

export const VERSION = "2026-07-28";
const META = "io.modelcontextprotocol/";
const SERVER = { name: "bench-server", version: "1.0.0" };
const CAPABILITIES = { tools: {} };
const PROGRESS_REPORTS = 100;
const ROUNDS = 5;

const CONFIRM_SCHEMA = {
  type: "object",
  properties: {
    confirm: { type: "boolean", title: "Go on?" },
    reason: { type: "string", maxLength: 200 },
    level: { type: "string", enum: ["low", "high"] },
  },
  required: ["confirm"],
};

const TOOLS = ["echo", "confirm", "confirm-new", "five", "progress", "hang", "big"].map((name) => ({
  name,
  description: `The bench's ${name}.`,
  inputSchema: { type: "object" },
}));

/** Text of about `megabytes` MB as documents have it: lines, quotes, and now and then a character beyond ASCII. */
function bigText(megabytes, isAscii) {
  const dash = isAscii ? "-" : "—";
  const line = `The quick brown fox "jumps" over the lazy dog ${dash} 0123456789 and back again.\n`;
  const size = megabytes * 1024 * 1024;
  // Line breaks and quotes take two bytes each in JSON.
  return line.repeat(Math.ceil(size / (Buffer.byteLength(line) + 3)));
}

const bigResults = new Map();

function bigResult(megabytes, isAscii, isModern) {
  const key = `${megabytes} ${isAscii} ${isModern}`;
  let text = bigResults.get(key);
  if (text === undefined) {
    const result = { content: [{ type: "text", text: bigText(megabytes, isAscii) }] };
    text = JSON.stringify(isModern ? { resultType: "complete", ...result } : result);
    bigResults.set(key, text);
  }
  return text;
}

let fresh = 0;

/** A form that no client has seen before. */
function newSchema() {
  const field = `answer${++fresh}`;
  return {
    ...CONFIRM_SCHEMA,
    properties: { ...CONFIRM_SCHEMA.properties, [field]: { type: "string", maxLength: 20 + (fresh % 50) } },
  };
}

const response = (id, result) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`;

const text = (isModern, value) =>
  JSON.stringify({
    ...(isModern && { resultType: "complete" }),
    content: [{ type: "text", text: value }],
  });

function ask(requestState, requestedSchema) {
  return JSON.stringify({
    resultType: "input_required",
    inputRequests: {
      confirm: {
        method: "elicitation/create",
        params: { mode: "form", message: "Shall I go on?", requestedSchema },
      },
    },
    requestState,
  });
}

function progressed(progressToken, progress) {
  return JSON.stringify({
    jsonrpc: "2.0",
    method: "notifications/progress",
    params: { progressToken, progress, total: PROGRESS_REPORTS, message: "working" },
  });
}

/** Answers of the peer's requests to older clients, by the id of the request that they hold up. */
const asked = new Map();
let lastPeerId = 0;

/**
 * Answers one frame. `send(text, isLast)` is called for each frame of the answer, the last one marked; for a tool that
 * hangs no last one comes. Gives false when the frame wants no answer.
 */
export function answer(frame, send) {
  const { id, method, params = {} } = frame;
  if (method === undefined) {
    asked.get(id)?.(frame);
    asked.delete(id);
    return false;
  }
  if (id === undefined) return false;
  const meta = params._meta ?? {};
  const isModern = meta[`${META}protocolVersion`] !== undefined;
  switch (method) {
    case "server/discover":
      send(
        response(
          id,
          JSON.stringify({
            resultType: "complete",
            supportedVersions: [VERSION],
            capabilities: CAPABILITIES,
            serverInfo: SERVER,
            ttlMs: 3_600_000,
            cacheScope: "public",
          }),
        ),
        true,
      );
      return true;
    case "initialize":
      send(
        response(
          id,
          JSON.stringify({
            protocolVersion: params.protocolVersion,
            capabilities: CAPABILITIES,
            serverInfo: SERVER,
          }),
        ),
        true,
      );
      return true;
    case "tools/list":
      send(
        response(
          id,
          JSON.stringify({
            ...(isModern && { resultType: "complete", ttlMs: 3_600_000, cacheScope: "public" }),
            tools: TOOLS,
          }),
        ),
        true,
      );
      return true;
    case "tools/call":
      call(id, params, meta.progressToken, isModern, send);
      return true;
    default:
      send(
        JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } }),
        true,
      );
      return true;
  }
}

function call(id, params, progressToken, isModern, send) {
  const { name, arguments: args, inputResponses, requestState } = params;
  switch (name) {
    case "echo":
      return send(response(id, text(isModern, args.text)), true);
    case "confirm":
    case "confirm-new": {
      const schema = name === "confirm" ? CONFIRM_SCHEMA : newSchema();
      if (!isModern) return askOlder(id, schema, send);
      if (inputResponses === undefined) return send(response(id, ask("state-1", schema)), true);
      return send(response(id, text(true, inputResponses.confirm.action)), true);
    }
    case "five": {
      const round = requestState === undefined ? 0 : Number(requestState);
      if (round < ROUNDS) return send(response(id, ask(String(round + 1), CONFIRM_SCHEMA)), true);
      return send(response(id, text(true, "done")), true);
    }
    case "progress":
      for (let step = 1; step <= PROGRESS_REPORTS; step++) send(progressed(progressToken, step), false);
      return send(response(id, text(isModern, "done")), true);
    case "hang":
      return send(progressed(progressToken, 1), false);
    case "big":
      return send(response(id, bigResult(args.megabytes, args.ascii, isModern)), true);
    default:
      return send(
        JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32602, message: "Unknown tool" } }),
        true,
      );
  }
}

/** The older revisions ask with a request of the server's own, while the call stays open. */
function askOlder(id, requestedSchema, send) {
  const peerId = `ask-${++lastPeerId}`;
  asked.set(peerId, (frame) => send(response(id, text(false, frame.result?.action ?? "none")), true));
  send(
    JSON.stringify({
      jsonrpc: "2.0",
      id: peerId,
      method: "elicitation/create",
      params: { message: "Shall I go on?", requestedSchema },
    }),
    false,
  );
}
