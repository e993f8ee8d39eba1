import { describe, it } from "vitest";
import { transportContract } from "../../src/testing/contract.ts";
import { memoryTransport } from "../../transports/memory.ts";

const runner = { describe, it };

// A handler function has no wire, so what needs one is played by the scripted peer's own transport below.
transportContract("memory", (peer) => memoryTransport(peer.handler()), {
  runner,
  without: ["frames", "loss", "pieces"],
});

transportContract("scripted peer in memory", (peer) => peer.memory(), { runner });
