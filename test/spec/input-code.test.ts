import { beforeEach, describe, expect, it, vi } from "vitest";
import type { createClient } from "../../src/index.ts";
import { complete, elicitForm, inputRequired } from "../../src/testing/replies.ts";
import { memoryTransport } from "../../transports/memory.ts";

// The code that answers input requests is loaded with the first call that may be asked. Here each test begins without it.

let create: typeof createClient;

beforeEach(async () => {
  vi.resetModules();
  create = (await import("../../src/index.ts")).createClient;
});

const info = { name: "host", version: "1.0.0" };
const server = () =>
  memoryTransport(({ params }) =>
    params.inputResponses === undefined
      ? inputRequired({ inputRequests: { k: elicitForm("?") }, requestState: "s" })
      : complete(JSON.stringify(params.inputResponses)),
  );

describe("a first call that is asked before the code to answer is there", () => {
  it("MRTR-14: waits for it, and is answered like any other", async () => {
    const elicitForm = vi.fn(() => ({ action: "accept" as const, content: { ok: true } }));
    const client = create({ transport: server(), info, inputs: { elicitForm } });
    const results = await Promise.all([client.callTool("t"), client.callTool("t")]);
    for (const { content } of results) {
      expect(content[0]).toMatchObject({ text: '{"k":{"action":"accept","content":{"ok":true}}}' });
    }
    expect(elicitForm).toHaveBeenCalledTimes(2);
    await client.close();
  });

  it.each(["signal", "close"] as const)(
    "MRTR-17 CAN-03: asks nobody when the call has been ended meanwhile by %s",
    async (how) => {
      const elicitForm = vi.fn(() => ({ action: "decline" as const }));
      const controller = new AbortController();
      const client = create({
        transport: server(),
        info,
        inputs: { elicitForm },
        onEvent: ({ type }) => {
          if (type !== "input.requested") return;
          if (how === "signal") controller.abort();
          else void client.close();
        },
      });
      const call = client.callTool("t", {}, { signal: controller.signal });
      await expect(call).rejects.toMatchObject({ code: how === "signal" ? "cancelled" : "closed" });
      const { loadInputCode } = await import("../../src/input-code.ts");
      await loadInputCode();
      expect(elicitForm).not.toHaveBeenCalled();
      await client.close();
    },
  );

  it("MRTR-20: a continuation is resumed by a client that has made no call", async () => {
    const first = create({ transport: server(), info, inputs: { elicitForm: "suspend" } });
    const asked = await first.begin("tools/call", { name: "t" });
    expect(asked.status).toBe("input_required");
    const client = create({ transport: server(), info, inputs: { elicitForm: "suspend" } });
    const { continuation } = asked as { continuation: unknown };
    const answered = await client.resume(continuation, { k: { action: "decline" } });
    expect(answered).toMatchObject({ status: "complete" });
    await Promise.all([first.close(), client.close()]);
  });
});
