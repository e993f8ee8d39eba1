import { describe, it } from "vitest";
import { transportContract } from "../../src/testing/contract.ts";
import { webSocketTransport } from "../../transports/websocket.ts";

transportContract("WebSocket", async (peer) => webSocketTransport((await peer.websocket()).url), {
  runner: { describe, it },
});
