import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocketServer } from "ws";

// A ratio to the floor means something only if the floor asks the same of its server: the same bytes, the same headers. What
// the engine, the binding alone and the floor send is recorded here and compared, call by call.

interface Contender {
  call(): Promise<void>;
  close(): Promise<void>;
}

interface Sent {
  /** What goes before the body, each line lowercased up to its colon; in order of the names. */
  readonly head: readonly string[];
  readonly text: string;
}

type Send = (text: string, isLast?: boolean) => void;

const bench = (file: string) => new URL(`../../bench/${file}`, import.meta.url);
const { answer } = (await import(bench("servers/answers.mjs").href)) as {
  answer: (frame: unknown, send: Send) => boolean;
};
const CONTENDERS = ["engine", "binding", "floor"] as const;

const sent: Sent[] = [];
let folder: string;
let server: Server;
let sockets: WebSocketServer;
let origin: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rally-floors-"));
  server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const fields: string[] = [];
    const raw = request.rawHeaders;
    for (let at = 0; at < raw.length; at += 2) fields.push(`${raw[at]!.toLowerCase()}: ${raw[at + 1]}`);
    sent.push({ head: [`${request.method} ${request.url}`, ...fields.sort()], text });
    const isStream = request.url === "/sse";
    const type = isStream ? "text/event-stream" : "application/json";
    response.writeHead(200, { "content-type": type });
    answer(JSON.parse(text), (frame, isLast) => {
      response.write(isStream ? `event: message\ndata: ${frame}\n\n` : frame);
      if (isLast) response.end();
    });
  });
  sockets = new WebSocketServer({ server, handleProtocols: (offered) => [...offered][0]! });
  sockets.on("connection", (socket) => {
    socket.on("message", (data) => {
      sent.push({ head: [], text: data.toString() });
      answer(JSON.parse(data.toString()), (text) => socket.send(text));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  sockets.close();
  await new Promise((resolve) => server.close(resolve));
  await rm(folder, { recursive: true });
});

/** What one contender sends for two calls: the second is what a scenario repeats. */
async function record(contender: string, scenario: { transport: string; tool: string }): Promise<Sent[]> {
  sent.length = 0;
  const log = join(folder, `${contender}-${scenario.tool}.txt`);
  const { open } = (await import(bench(`contenders/${contender}.mjs`).href)) as {
    open: (scenario: object, target: object) => Promise<Contender>;
  };
  const path = scenario.transport === "http-sse" ? "sse" : "json";
  const url = scenario.transport === "websocket" ? `ws://${origin}/` : `http://${origin}/${path}`;
  const args = [fileURLToPath(new URL("recorded-stdio.mjs", import.meta.url)), log];
  const opened = await open(scenario, { url, command: { command: process.execPath, args } });
  await opened.call();
  await opened.call();
  await opened.close();
  if (scenario.transport !== "stdio") return [...sent];
  const lines = (await readFile(log, "utf8")).split("\n").filter((line) => line !== "");
  return lines.map((text) => ({ head: [], text }));
}

/** The requests of the last call, without what differs from call to call. */
function lastCall(all: readonly Sent[], exchanges: number): object[] {
  return all.slice(-exchanges).map(({ head, text }) => {
    const { id, ...frame } = JSON.parse(text) as {
      id?: number;
      params: { _meta?: object; requestId?: number };
    };
    const of = (value: unknown) => (value === id ? "the id" : value);
    const meta = Object.fromEntries(
      Object.entries(frame.params._meta ?? {}).map(([key, value]) => [key, of(value)]),
    );
    // A cancelled call is named by its id, and says why in words of its own.
    const params = id === undefined ? {} : { ...frame.params, _meta: meta };
    const length =
      id === undefined ? undefined : text.length - String(id).length * (text.split(`:${id}`).length - 1);
    return { head, ...frame, params, length };
  });
}

describe("the floor sends what the engine sends", () => {
  it.each([
    ["http-json", "echo", 1],
    ["http-json", "confirm", 2],
    ["http-json", "five", 6],
    ["http-sse", "echo", 1],
    ["http-sse", "progress", 1],
    ["http-sse", "hang", 1],
    ["stdio", "echo", 1],
    ["stdio", "hang", 2],
    ["websocket", "echo", 1],
  ])("over %s, %s", async (transport, tool, exchanges) => {
    const calls: Record<string, object[]> = {};
    for (const contender of CONTENDERS) {
      calls[contender] = lastCall(await record(contender, { transport, tool }), exchanges);
    }
    expect(calls.engine).toHaveLength(exchanges);
    expect(calls.floor).toEqual(calls.engine);
    expect(calls.binding).toEqual(calls.engine);
  });
});
