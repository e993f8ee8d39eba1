import { describe, it } from "vitest";
import { transportContract } from "../../src/testing/contract.ts";
import { stdioTransport } from "../../transports/stdio.ts";

transportContract(
  "stdio",
  async (peer) => {
    const { command, args } = await peer.stdio();
    return stdioTransport({ command, args });
  },
  { runner: { describe, it } },
);
