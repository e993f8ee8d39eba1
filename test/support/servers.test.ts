import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import {
  legacyStdio,
  officialStdio,
  type ServerCommand,
  startLegacyHttp,
  startOfficialHttp,
  startOfficialWebSocket,
} from "./servers.ts";

// The official server is what the engine is measured against, so what it says is looked at without the engine.

const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1.0.0" },
  "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
};

interface Asked {
  resultType?: string;
  inputRequests?: Record<string, { method: string; params?: { mode?: string } }>;
  requestState?: string;
  content?: { text: string }[];
}

type Ask = (method: string, params: object) => Promise<Asked>;

function frame(id: number, method: string, params: object): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta: META } });
}

/** Matches answers to requests on a channel. */
function channelAsk(send: (text: string) => void): { ask: Ask; receive(text: string): void } {
  const waiting = new Map<number, (result: Asked) => void>();
  let lastId = 0;
  return {
    ask: (method, params) =>
      new Promise((resolve) => {
        waiting.set(++lastId, resolve);
        send(frame(lastId, method, params));
      }),
    receive(text) {
      const { id, result, error } = JSON.parse(text);
      if (id !== undefined) waiting.get(id)?.(result ?? { error });
    },
  };
}

async function overHttp(): Promise<{ ask: Ask; close(): Promise<unknown> }> {
  const server = await startOfficialHttp();
  async function ask(method: string, params: { name?: string; uri?: string }): Promise<Asked> {
    const response = await fetch(server.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        "mcp-name": params.name ?? params.uri ?? "",
      },
      body: frame(1, method, params),
    });
    return ((await response.json()) as { result: Asked }).result;
  }
  return { ask, close: server.close };
}

async function overStdio(): Promise<{ ask: Ask; close(): Promise<unknown> }> {
  const { command, args } = officialStdio();
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const channel = channelAsk((text) => void child.stdin.write(`${text}\n`));
  createInterface({ input: child.stdout }).on("line", channel.receive);
  return {
    ask: channel.ask,
    async close() {
      const exit = once(child, "exit");
      child.stdin.end();
      expect(await exit).toEqual([0, null]);
    },
  };
}

async function overWebSocket(): Promise<{ ask: Ask; close(): Promise<unknown> }> {
  const server = await startOfficialWebSocket();
  const socket = new WebSocket(server.url, "mcp");
  await once(socket, "open");
  const channel = channelAsk((text) => socket.send(text));
  socket.on("message", (data) => channel.receive(String(data)));
  return {
    ask: channel.ask,
    async close() {
      socket.close();
      await once(socket, "close");
      await server.close();
    },
  };
}

const ASKS = [
  { method: "tools/call", params: { name: "deploy" }, asks: { confirm: "form" } },
  { method: "tools/call", params: { name: "onboard" }, asks: { name: "form" }, state: true },
  { method: "tools/call", params: { name: "forever" }, asks: { again: "form" }, state: true },
  { method: "tools/call", params: { name: "link" }, asks: { visit: "url" } },
  { method: "tools/call", params: { name: "sample" }, asks: { poem: "sampling/createMessage" } },
  { method: "tools/call", params: { name: "roots" }, asks: { roots: "roots/list" } },
  { method: "prompts/get", params: { name: "review" }, asks: { language: "form" } },
  { method: "resources/read", params: { uri: "note://locked" }, asks: { pin: "form" } },
];

describe.each([
  { binding: "HTTP", open: overHttp },
  { binding: "stdio", open: overStdio },
  { binding: "WebSocket", open: overWebSocket },
])("the official server over $binding", ({ open }) => {
  it("asks what the tests rely on, and is satisfied by the answer", async () => {
    const { ask, close } = await open();
    for (const { method, params, asks, state = false } of ASKS) {
      const question = await ask(method, { ...params, arguments: {} });
      expect(question.resultType).toBe("input_required");
      const kinds = Object.entries(question.inputRequests ?? {}).map(([key, request]) => [
        key,
        request.params?.mode ?? request.method,
      ]);
      expect(Object.fromEntries(kinds)).toEqual(asks);
      expect(typeof question.requestState).toBe(state ? "string" : "undefined");
    }
    const inputResponses = { confirm: { action: "accept", content: { ok: true } } };
    const done = await ask("tools/call", { name: "deploy", arguments: {}, inputResponses });
    expect(done).toMatchObject({ resultType: "complete", content: [{ text: "deployed" }] });
    const waiting = await ask("tools/call", { name: "wait", arguments: {} });
    expect(waiting).toMatchObject({ resultType: "input_required", requestState: expect.any(String) });
    expect(waiting.inputRequests).toBeUndefined();
    await close();
  });
});

describe("the legacy server", () => {
  it("does not know server/discover over HTTP", async () => {
    const server = await startLegacyHttp();
    const response = await fetch(server.url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
      body: frame(1, "server/discover", {}),
    });
    expect([response.status, await response.json()]).toEqual([
      400,
      expect.objectContaining({ error: expect.objectContaining({ code: -32000 }) }),
    ]);
    await server.close();
    expect(() => process.kill(server.pid, 0)).toThrow();
  });

  it("does not know server/discover over stdio", async () => {
    const { command, args }: ServerCommand = legacyStdio();
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "ignore"] });
    const exit = once(child, "exit");
    child.stdin.write(`${frame(1, "server/discover", {})}\n`);
    const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
    expect(JSON.parse(line)).toMatchObject({ id: 1, error: { code: -32601 } });
    child.kill();
    await exit;
  });
});
