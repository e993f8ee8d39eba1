import { describe, expect, it, vi } from "vitest";
import type { InputError, SuspendedError } from "../../src/errors.ts";
import type { InputContext, InputHandlers } from "../../src/inputs.ts";
import { META } from "../../src/protocol.ts";
import {
  complete,
  elicitForm,
  elicitUrl,
  inputRequired,
  listRoots,
  sample,
} from "../../src/testing/replies.ts";
import { HTTP_AND_STDIO, memory } from "../support/bindings.ts";
import { settled } from "../support/clocks.ts";
import { retryParts } from "../support/frames.ts";
import { errorOf, expectAtRest, textOf } from "../support/outcomes.ts";

// Who may be asked what, by whom, and what may be answered.

const yes = () => ({ action: "accept" as const, content: { ok: true } });
const ask = (inputRequests: object) => inputRequired({ inputRequests, requestState: "s" });
const KINDS: { kind: keyof InputHandlers; entry: object; inputs: InputHandlers; declared: object }[] = [
  {
    kind: "elicitForm",
    entry: elicitForm("?"),
    inputs: { elicitForm: yes },
    declared: { elicitation: { form: {} } },
  },
  {
    kind: "elicitUrl",
    entry: elicitUrl("?", "https://example.com/"),
    inputs: { elicitUrl: () => ({ action: "decline" }) },
    declared: { elicitation: { url: {} } },
  },
  { kind: "sample", entry: sample("?"), inputs: { sample: () => reply() }, declared: { sampling: {} } },
  {
    kind: "listRoots",
    entry: listRoots(),
    inputs: { listRoots: () => ({ roots: [] }) },
    declared: { roots: {} },
  },
];
function reply() {
  return { role: "assistant" as const, content: { type: "text", text: "hi" }, model: "m" };
}

for (const { name, open } of HTTP_AND_STDIO) {
  describe(`capabilities over ${name}`, () => {
    it("MRTR-13 B016: are declared on every request, derived from the handlers", async () => {
      for (const { entry, inputs, declared } of KINDS) {
        const rig = await open([ask({ k: entry }), complete("done")], { inputs });
        await rig.client.callTool("t");
        const sent = rig.peer.requests.map(({ meta }) => meta[META.clientCapabilities]);
        expect(sent).toEqual([declared, declared]);
        await rig.close();
      }
    });

    it("MRTR-13 B005 B007: what was not declared fails the call at once with key and kind, and no retry", async () => {
      const handler = vi.fn(yes);
      const cases: [entry: object, inputs: InputHandlers, remedy: string][] = [
        [elicitForm("?"), {}, "inputs.elicitForm"],
        [elicitForm("?"), { elicitUrl: handler }, "inputs.elicitForm"],
        [elicitUrl("?", "https://example.com/"), { elicitForm: handler }, "inputs.elicitUrl"],
        [sample("?"), { elicitForm: handler }, "inputs.sample"],
        [listRoots(), { elicitForm: handler }, "inputs.listRoots"],
        [sample("?", { tools: [] }), { sample: handler as never }, "tools: true"],
        [sample("?", { toolChoice: { mode: "auto" } }), { sample: handler as never }, "tools: true"],
        [sample("?", { includeContext: "allServers" }), { sample: handler as never }, "context: true"],
      ];
      const rig = await open(cases.map(([entry]) => ask({ first: elicitForm("?"), "the key": entry })));
      for (const [index, [entry, inputs, remedy]] of cases.entries()) {
        const own = {
          elicitForm: handler,
          ...inputs,
          ...(index < 3 && !("elicitForm" in inputs) && { elicitForm: null }),
        };
        const error = await errorOf<InputError>(rig.client.callTool("t", {}, { inputs: own }));
        expect([error.code, error.message]).toEqual(["input", expect.stringContaining(remedy)]);
        if (own.elicitForm !== null) {
          expect([error.key, error.method]).toEqual(["the key", (entry as { method: string }).method]);
        }
      }
      expect(handler).not.toHaveBeenCalled();
      expect(rig.peer.requests).toHaveLength(cases.length);
      expectAtRest(rig);
    });
  });

  describe(`handlers over ${name}`, () => {
    it("MRTR-14 B011: run at the same time, each with its own context", async () => {
      let running = 0;
      let most = 0;
      const seen: InputContext[] = [];
      const rig = await open(
        [ask({ a: elicitForm("A?"), b: elicitForm("B?"), c: listRoots() }), complete("done")],
        {
          peer: "the server",
          inputs: {
            elicitForm: async (_params, context) => {
              seen.push(context);
              most = Math.max(most, ++running);
              await vi.waitFor(() => expect(most).toBe(2), { interval: 1 });
              return yes();
            },
            listRoots: () => ({ roots: [] }),
          },
        },
      );
      expect(textOf(await rig.client.callTool("t"))).toBe("done");
      expect(
        seen.map(({ key, round, method, name: tool, peer }) => [key, round, method, tool, peer]),
      ).toEqual([
        ["a", 1, "tools/call", "t", "the server"],
        ["b", 1, "tools/call", "t", "the server"],
      ]);
      expect(new Set(seen.map(({ operationId }) => operationId)).size).toBe(1);
    });

    it("MRTR-14 B028 B029: one that fails aborts its siblings, and no partial answer is sent", async () => {
      const fault = new TypeError("no window to ask in");
      let signal: AbortSignal | undefined;
      const rig = await open(ask({ bad: elicitForm("?"), slow: listRoots() }), {
        inputs: {
          elicitForm: async () => {
            await settled();
            throw fault;
          },
          listRoots: ({ signal: own }) => {
            signal = own;
            return new Promise(() => {});
          },
        },
      });
      const error = await errorOf<InputError>(rig.client.callTool("t"));
      expect(error).toMatchObject({ code: "input", key: "bad", method: "elicitation/create", cause: fault });
      expect(signal?.aborted).toBe(true);
      expect(rig.peer.requests).toHaveLength(1);
      expectAtRest(rig);
    });

    it("MRTR-17 B028 CAN-01: a cancel while one runs rejects at once, aborts its signal, and sends no more", async () => {
      const controller = new AbortController();
      let signal: AbortSignal | undefined;
      const rig = await open(ask({ k: elicitForm("?") }), {
        inputs: {
          elicitForm: (_params, context) => {
            signal = context.signal;
            queueMicrotask(() => controller.abort("changed my mind"));
            return new Promise(() => {});
          },
        },
      });
      const error = await errorOf(rig.client.callTool("t", {}, { signal: controller.signal }));
      expect([error.code, error.cause]).toEqual(["cancelled", "changed my mind"]);
      expect(signal?.aborted).toBe(true);
      expect(rig.peer.requests).toHaveLength(1);
      expect(rig.peer.notifications).toEqual([]);
      expectAtRest(rig);
    });

    const urls: [url: string, fits: boolean][] = [
      ["https://example.com/sign-in?flow=1", true],
      ["http://127.0.0.1:8080/x", true],
      ["http://localhost/x", true],
      ["http://[::1]/x", true],
      ["https://xn--80ak6aa92e.com/", true],
      ["http://remote.example/", false],
      ["javascript:alert(1)", false],
      ["data:text/html,<b>", false],
      ["file:///etc/passwd", false],
      ["https://user:pw@h.example/", false],
      [" not a url", false],
      ["", false],
    ];
    it("MRTR-16 B022: only a safe URL reaches the handler, with its origin and a warning flag", async () => {
      const seen: [url: string, origin: string | undefined, punycode: boolean | undefined][] = [];
      const rig = await open(
        urls.flatMap(([url, fits]) => [
          ask({ before: elicitForm("?"), visit: elicitUrl("Visit", url) }),
          ...(fits ? [complete("done")] : []),
        ]),
      );
      let forms = 0;
      const inputs: InputHandlers = {
        elicitForm: () => {
          forms++;
          return yes();
        },
        elicitUrl: ({ url }, { origin, punycode }) => {
          seen.push([url, origin, punycode]);
          return { action: "accept", content: { leaked: "x" } };
        },
      };
      for (const [url, fits] of urls) {
        const call = rig.client.callTool("t", {}, { inputs });
        if (fits) await call;
        else {
          const error = await errorOf<InputError>(call);
          expect([url, error.code, error.key, error.path]).toEqual([url, "input", "visit", "params.url"]);
          expect(error.message).not.toContain("pw@");
        }
      }
      expect(seen).toEqual([
        ["https://example.com/sign-in?flow=1", "https://example.com", false],
        ["http://127.0.0.1:8080/x", "http://127.0.0.1:8080", false],
        ["http://localhost/x", "http://localhost", false],
        ["http://[::1]/x", "http://[::1]", false],
        ["https://xn--80ak6aa92e.com/", "https://xn--80ak6aa92e.com", true],
      ]);
      // A round with a URL that must not be shown asks nobody anything.
      expect(forms).toBe(seen.length);
      const [, answered] = retryParts(rig.peer);
      expect(answered?.inputResponses).toMatchObject({ visit: { action: "accept" } });
      expect(JSON.stringify(rig.peer.received)).not.toContain("leaked");
    });
  });
}

describe("declarations", () => {
  it("MRTR-13: name every feature that there is a handler for; suspend counts, null takes away", async () => {
    const rig = await memory.open(complete("done"), {
      inputs: {
        elicitForm: "suspend",
        elicitUrl: yes,
        sample: { handle: reply, tools: true, context: true },
      },
      capabilities: { extensions: { "example.com/x": { a: 1 } }, experimental: { y: {} } },
    });
    await rig.client.callTool("t");
    await rig.client.callTool("t", {}, { inputs: { elicitUrl: null, sample: null, listRoots: "suspend" } });
    const extra = { extensions: { "example.com/x": { a: 1 } }, experimental: { y: {} } };
    expect(rig.peer.requests.map(({ meta }) => meta[META.clientCapabilities])).toEqual([
      { elicitation: { form: {}, url: {} }, sampling: { tools: {}, context: {} }, ...extra },
      { elicitation: { form: {} }, roots: {}, ...extra },
    ]);
  });

  it("MRTR-13: are frozen when the call starts", async () => {
    const sampling = { handle: reply, tools: false };
    const inputs: { elicitForm: (() => ReturnType<typeof yes>) | null; sample: typeof sampling } = {
      elicitForm: yes,
      sample: sampling,
    };
    const rig = await memory.open([ask({ k: elicitForm("?") }), ask({ m: sample("?", { tools: [] }) })], {});
    const call = rig.client.callTool("t", {}, { inputs });
    inputs.elicitForm = null;
    sampling.tools = true;
    const error = await errorOf<InputError>(call);
    expect([error.code, error.key]).toEqual(["input", "m"]);
    expect(rig.peer.requests).toHaveLength(2);
  });

  it("MRTR-20 B023: a kind left to the host suspends the call, with the other answers in the continuation", async () => {
    const rig = await memory.open([ask({ form: elicitForm("?"), places: listRoots() }), complete("done")], {
      inputs: { elicitForm: "suspend", listRoots: () => ({ roots: [] }) },
    });
    const error = await errorOf<SuspendedError>(rig.client.callTool("t"));
    expect([error.code, error.keys]).toEqual(["suspended", ["form"]]);
    const outcome = await rig.client.resume(error.continuation, { form: yes() });
    expect(outcome.status).toBe("complete");
    expect(retryParts(rig.peer)[1]).toEqual({
      inputResponses: { form: yes(), places: { roots: [] } },
      requestState: "s",
    });
  });
});
