import { describe, it } from "vitest";
import { transportContract } from "../../src/testing/contract.ts";
import { httpTransport } from "../../transports/http.ts";

transportContract(
  "HTTP answering JSON",
  async (peer) => httpTransport((await peer.http({ answer: "json" })).url),
  { runner: { describe, it } },
);
