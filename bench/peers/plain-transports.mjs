/**
 * Transports for peers that have none of their own for a wire: frames as text over ws, or over a function in this
 * process. They do what a transport has to do and no more.
 */

import { WebSocket } from "ws";
import { answer } from "../servers/answers.mjs";

export class PlainWebSocketTransport {
  #socket;
  #url;

  constructor(url) {
    this.#url = url;
  }

  async start() {
    const socket = new WebSocket(this.#url, "mcp", {
      perMessageDeflate: false,
      maxPayload: 256 * 1024 * 1024,
    });
    this.#socket = socket;
    socket.on("message", (data) => this.onmessage?.(JSON.parse(data.toString())));
    socket.on("close", () => this.onclose?.());
    await new Promise((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", reject);
    });
  }

  async send(message) {
    this.#socket.send(JSON.stringify(message));
  }

  async close() {
    this.#socket.close();
  }
}

export class PlainMemoryTransport {
  async start() {}

  async send(message) {
    const text = JSON.stringify(message);
    queueMicrotask(() => answer(JSON.parse(text), (reply) => this.onmessage?.(JSON.parse(reply))));
  }

  async close() {
    this.onclose?.();
  }
}
