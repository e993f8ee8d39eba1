/**
 * The floor: a loop by hand over undici `request`, raw pipes or raw ws. It sends the same bytes and headers as the engine,
 * parses every frame, and does nothing else: no limits, no cancel, no errors worth the name.
 *
 * The realistic floor also arms a timer and an abort for each call, as a host's own loop would have to.
 */

import { spawn } from "node:child_process";
import { frameOf, playCall } from "./calls.mjs";
import { memoryHandler } from "./memory-handler.mjs";

export async function open(scenario, target, isRealistic = false) {
  const link = await openLink(scenario, target);
  let lastId = 0;
  const nextId = () => ++lastId;
  const exchange = isRealistic ? guarded(link.exchange) : link.exchange;
  if (scenario.tool === "hang") {
    return { call: () => cancelled(scenario, nextId(), link), close: link.close };
  }
  return { call: () => playCall(scenario, nextId, exchange), close: link.close };
}

const TIMEOUT_MS = 60_000;

/** A timer and an abort for each request, taken down when it ends. */
function guarded(exchange) {
  return async (text, id, onNotification) => {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(new Error("timeout")), TIMEOUT_MS);
    try {
      return await exchange(text, id, onNotification, controller.signal);
    } finally {
      clearTimeout(timer);
    }
  };
}

/** Cancels a call that was sent, when its first notification is there. */
async function cancelled(scenario, id, { exchange, cancel }) {
  const controller = new AbortController();
  const onNotification = () => {
    cancel?.(id);
    controller.abort(new Error("cancelled"));
  };
  try {
    await exchange(frameOf(id, scenario), id, onNotification, controller.signal);
  } catch (error) {
    if (!controller.signal.aborted) throw error;
    return;
  }
  throw new Error("a cancelled call was answered");
}

function openLink(scenario, target) {
  switch (scenario.transport) {
    case "memory":
      return openMemory();
    case "http-json":
    case "http-sse":
      return openHttp(scenario, target.url);
    case "stdio":
      return openStdio(target.command);
    case "websocket":
      return openWebSocket(target.url);
  }
}

function openMemory() {
  const handler = memoryHandler();
  return {
    exchange: (text) =>
      new Promise((resolve) => {
        queueMicrotask(() => {
          const { id, params } = JSON.parse(text);
          resolve(JSON.parse(JSON.stringify({ jsonrpc: "2.0", id, result: handler({ params }) })));
        });
      }),
    close: async () => {},
  };
}

async function openHttp({ tool }, url) {
  const { Pool, request } = await import("undici");
  const { origin } = new URL(url);
  const dispatcher = new Pool(origin, { headersTimeout: 0, bodyTimeout: 0 });
  const headers = {
    Accept: "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": tool,
  };
  return {
    exchange: async (text, id, onNotification, signal) => {
      const answer = await request(url, { dispatcher, method: "POST", headers, body: text, signal });
      if (answer.headers["content-type"] === "application/json") return JSON.parse(await answer.body.text());
      const decoder = new TextDecoder();
      let rest = "";
      let response;
      for await (const chunk of answer.body) {
        rest += decoder.decode(chunk, { stream: true });
        let start = 0;
        for (let end = rest.indexOf("\n\n"); end !== -1; end = rest.indexOf("\n\n", start)) {
          const data = rest.indexOf("data: ", start);
          const frame = JSON.parse(rest.slice(data + 6, end));
          if (frame.id === id) response = frame;
          else onNotification(frame);
          start = end + 2;
        }
        rest = rest.slice(start);
      }
      return response;
    },
    close: () => dispatcher.destroy(),
  };
}

/** What is pending on a shared channel, and the routing of its frames. */
function openChannel(write) {
  const pending = new Map();
  return {
    receive(text) {
      const frame = JSON.parse(text);
      if (frame.id !== undefined) {
        pending.get(frame.id).resolve(frame);
        pending.delete(frame.id);
      } else {
        pending.get(frame.params.progressToken)?.onNotification(frame);
      }
    },
    exchange: (text, id, onNotification, signal) =>
      new Promise((resolve, reject) => {
        if (signal === undefined) {
          pending.set(id, { resolve, onNotification });
        } else {
          const aborted = () => {
            pending.delete(id);
            reject(signal.reason);
          };
          signal.addEventListener("abort", aborted, { once: true });
          const settle = (frame) => {
            signal.removeEventListener("abort", aborted);
            resolve(frame);
          };
          pending.set(id, { resolve: settle, onNotification });
        }
        write(text);
      }),
    cancel: (id) =>
      write(
        `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id},"reason":"enough"}}`,
      ),
  };
}

function openStdio({ command, args }) {
  // A process group of its own, as the transport gives it: on Linux that decides how the scheduler treats the server.
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"], detached: true });
  const channel = openChannel((text) => child.stdin.write(`${text}\n`));
  let chunks = [];
  child.stdout.on("data", (chunk) => {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      const piece = chunk.subarray(start, end);
      channel.receive(chunks.length === 0 ? piece.toString() : Buffer.concat([...chunks, piece]).toString());
      chunks = [];
      start = end + 1;
    }
    if (start < chunk.length) chunks.push(chunk.subarray(start));
  });
  return {
    ...channel,
    close: () =>
      new Promise((resolve) => {
        child.once("exit", resolve);
        child.stdin.end();
      }),
  };
}

async function openWebSocket(url) {
  const { WebSocket } = await import("ws");
  const socket = new WebSocket(url, "mcp", { perMessageDeflate: false, maxPayload: 256 * 1024 * 1024 });
  await new Promise((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", reject);
  });
  const channel = openChannel((text) => socket.send(text));
  socket.on("message", (data) => channel.receive(data.toString()));
  return {
    ...channel,
    close: () =>
      new Promise((resolve) => {
        socket.once("close", resolve);
        socket.close();
      }),
  };
}
