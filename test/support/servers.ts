/** Starts the servers of others that tests run against: each a real process, each gone when its `close` resolves. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** A server process that listens. */
export interface StartedServer {
  readonly url: string;
  readonly pid: number;
  /** Ends the process and waits until it is gone. */
  close(): Promise<void>;
}

/** A command for a stdio transport. */
export interface ServerCommand {
  readonly command: string;
  readonly args: string[];
}

/** How the official server shapes its HTTP answers: "auto" streams when there are notifications to carry. */
export type ResponseMode = "auto" | "json" | "sse";

const START_TIMEOUT_MS = 10_000;
const STOP_TIMEOUT_MS = 2_000;

/** The official server over Streamable HTTP. */
export function startOfficialHttp(responseMode: ResponseMode = "auto"): Promise<StartedServer> {
  return startServer([scriptPath("official-http.mjs")], { RESPONSE_MODE: responseMode });
}

/** The official server over WebSocket. */
export function startOfficialWebSocket(): Promise<StartedServer> {
  return startServer([scriptPath("official-websocket.mjs")]);
}

/** The command of the official server over stdio. */
export function officialStdio(): ServerCommand {
  return { command: process.execPath, args: [scriptPath("official-stdio.mjs")] };
}

/** A server that speaks only the revisions that begin with `initialize`, over HTTP. */
export function startLegacyHttp(): Promise<StartedServer> {
  const preload = new URL("../servers/legacy-loopback.mjs", import.meta.url).href;
  return startServer(["--import", preload, legacyScript(), "streamableHttp"]);
}

/** The command of a server that speaks only the revisions that begin with `initialize`, over stdio. */
export function legacyStdio(): ServerCommand {
  return { command: process.execPath, args: [legacyScript(), "stdio"] };
}

function scriptPath(name: string): string {
  return fileURLToPath(new URL(`../servers/${name}`, import.meta.url));
}

function legacyScript(): string {
  return fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js"));
}

async function startServer(args: string[], env: Record<string, string> = {}): Promise<StartedServer> {
  const child = spawn(process.execPath, args, {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  const errors: string[] = [];
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors.push(text);
    if (errors.length > 50) errors.shift();
  });
  try {
    const url = await firstUrl(child);
    return { url, pid: child.pid as number, close: () => stop(child) };
  } catch (cause) {
    child.kill("SIGKILL");
    throw new Error(`${args.join(" ")} did not start: ${errors.join("").slice(-2000)}`, { cause });
  }
}

/** Reads lines of stdout until one is `{"url": …}`; goes on draining the rest. */
function firstUrl(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`no URL within ${START_TIMEOUT_MS} ms`)),
      START_TIMEOUT_MS,
    );
    child.once("error", reject);
    child.once("exit", (code, signal) => reject(new Error(`it exited with ${code ?? signal}`)));
    createInterface({ input: child.stdout! }).on("line", (line) => {
      if (!line.startsWith('{"url":')) return;
      clearTimeout(timer);
      resolve((JSON.parse(line) as { url: string }).url);
    });
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.stdin!.end();
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
  await exit;
  clearTimeout(timer);
}
