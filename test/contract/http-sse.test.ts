import { describe, it } from "vitest";
import { transportContract } from "../../src/testing/contract.ts";
import { httpTransport } from "../../transports/http.ts";

transportContract(
  "HTTP answering SSE",
  async (peer) => httpTransport((await peer.http({ answer: "sse" })).url),
  { runner: { describe, it } },
);
