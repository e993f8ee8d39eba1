/** Lanes through cutting proxies to one scripted peer, for each binding. */

import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { unixSocketTransport } from "../../docs/examples/unix-socket-transport.ts";
import { createScriptedPeer } from "../../src/testing/scripted-peer.ts";
import { httpTransport } from "../../transports/http.ts";
import { stdioTransport } from "../../transports/stdio.ts";
import { webSocketTransport } from "../../transports/websocket.ts";
import { serveLines } from "../support/line-peer.ts";
import { startCuttingProxy } from "./cutting-proxy.ts";
import type { CutRig, Lane } from "./cutting-table.ts";
import { type Reply, threeRounds } from "./three-rounds.ts";

/** The ways to a peer that are cut. */
export type CutBinding =
  | "HTTP answering JSON"
  | "HTTP/1.0 answering JSON"
  | "HTTP answering SSE"
  | "lines"
  | "stdio"
  | "WebSocket";

const LANES = 8;
/** A server program that leads to a port: see there. */
export const BRIDGE = fileURLToPath(new URL("bridge.mjs", import.meta.url));

/** Starts the peer and its lanes. */
export async function startRig(binding: CutBinding): Promise<CutRig> {
  const rounds = threeRounds(binding === "HTTP/1.0 answering JSON" ? answerAndClose : undefined);
  const peer = createScriptedPeer(rounds.script);
  const closers: (() => Promise<void>)[] = [];
  const { port, connect } = await bind();
  const lanes: Lane[] = [];
  for (let n = 0; n < LANES; n++) {
    const path =
      binding === "lines" ? join(tmpdir(), `mcp-rally-cut-${process.pid}-${lanesMade++}.sock`) : undefined;
    const proxy = await startCuttingProxy({ host: "127.0.0.1", port }, path);
    lanes.push({ proxy, connect: () => connect(proxy.address) });
    closers.unshift(() => proxy.close());
  }
  return {
    peer: rounds,
    lanes,
    async close() {
      for (const close of closers) await close();
      await peer.close();
    },
  };

  async function bind() {
    switch (binding) {
      case "HTTP answering JSON":
      case "HTTP/1.0 answering JSON":
      case "HTTP answering SSE": {
        const { url } = await peer.http({ answer: binding === "HTTP answering SSE" ? "sse" : "json" });
        return {
          port: portOf(url),
          connect: (at: unknown) => httpTransport(`http://127.0.0.1:${at}/mcp`),
        };
      }
      case "WebSocket": {
        const { url } = await peer.websocket();
        return {
          port: portOf(url),
          connect: (at: unknown) => webSocketTransport(`ws://127.0.0.1:${at}/mcp`),
        };
      }
      case "lines":
      case "stdio": {
        const { address, close } = await serveLines(peer);
        closers.push(close);
        return {
          port: address as number,
          connect: (at: unknown) =>
            binding === "lines"
              ? unixSocketTransport(String(at))
              : stdioTransport({ command: process.execPath, args: [BRIDGE, String(at)] }),
        };
      }
    }
  }
}

let lanesMade = 0;

/** An answer without a length: it ends where its connection does, and only its JSON tells whether it is whole. */
const answerAndClose: Reply = (exchange, id, result) => {
  const body = JSON.stringify({ jsonrpc: "2.0", id, result });
  exchange.socket?.end(`HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n${body}`);
};

function portOf(url: string): number {
  return Number(new URL(url).port);
}
