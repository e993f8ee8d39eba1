import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import type { RallyError } from "../../src/errors.ts";
import type { InputHandlers } from "../../src/inputs.ts";
import type { Step } from "../../src/testing/peer-types.ts";
import {
  complete,
  elicitForm,
  elicitUrl,
  inputRequired,
  listRoots,
  sample,
} from "../../src/testing/replies.ts";
import { createScriptedPeer } from "../../src/testing/scripted-peer.ts";
import { httpTransport } from "../../transports/http.ts";
import { BINDINGS, type Rig, type RigOptions, rigOver } from "../support/bindings.ts";
import { errorOf } from "../support/outcomes.ts";

// Every kind of error, and every event on the way to it, is searched for what must not be in it.

const TOKEN = "token-PpPpPpPp";
const API_KEY = "apikey-QqQqQqQq";
const STATE = "state-RrRrRrRr";
const CONTENT = "content-SsSsSsSs";
/** A piece of each: half a secret is too much, too. */
const MARKS = ["PpPp", "QqQq", "RrRr", "SsSs"];

/** All that is shown of an error or an event without asking for a member by name. */
function shown(value: unknown): string {
  const own = value instanceof Error ? `${value.message}\n${value.stack}\n${String(value)}` : "";
  return [own, JSON.stringify(value), inspect(value, { depth: 12, maxStringLength: null })].join("\n");
}

function expectNoSecret(values: readonly unknown[]): void {
  for (const value of values) {
    const text = shown(value);
    for (const mark of MARKS) {
      expect(text.includes(mark), `${mark} in ${text.slice(0, 500)}`).toBe(false);
    }
  }
}

const form = elicitForm("Who?", {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 3 },
    kind: { type: "string", enum: ["a"] },
    when: { type: "string", format: "date" },
    code: { type: "string", pattern: "^[0-9]+$" },
    some: { type: "array", items: { type: "string", enum: ["a"] } },
  },
});
const ask = (entry: unknown) => inputRequired({ inputRequests: { k: entry }, requestState: STATE });
const accept = (content: unknown): InputHandlers => ({
  elicitForm: () => ({ action: "accept", content }) as never,
});
const raw =
  (text: (id: unknown) => string): Step =>
  ({ id }, exchange) =>
    exchange.raw(text(id));

interface Case {
  readonly title: string;
  readonly code: string;
  readonly script: Step | readonly Step[];
  readonly options?: RigOptions;
}

const CASES: readonly Case[] = [
  ...[
    { name: CONTENT },
    { kind: CONTENT },
    { when: CONTENT },
    { code: CONTENT },
    { some: [CONTENT] },
    { name: { x: CONTENT } },
  ].map((content) => ({
    title: `an answer whose ${Object.keys(content)[0]} does not fit`,
    code: "input",
    script: ask(form),
    options: { inputs: accept(content) },
  })),
  {
    title: "an action that is none",
    code: "input",
    script: ask(form),
    options: { inputs: { elicitForm: () => ({ action: CONTENT }) as never } },
  },
  {
    title: "sampling that does not fit",
    code: "input",
    script: ask(sample("?")),
    options: { inputs: { sample: () => ({ role: CONTENT }) as never } },
  },
  {
    title: "roots that do not fit",
    code: "input",
    script: ask(listRoots()),
    options: { inputs: { listRoots: () => ({ roots: [{ uri: `https://${CONTENT}` }] }) } },
  },
  {
    title: "a URL that must not be shown",
    code: "input",
    script: ask(elicitUrl("?", `https://u:${CONTENT}@h.example/${CONTENT}`)),
    options: { inputs: { elicitUrl: () => ({ action: "accept" }) } },
  },
  { title: "an undeclared kind", code: "input", script: ask(listRoots()) },
  {
    title: "the limit of rounds",
    code: "round-limit",
    script: ask(elicitForm("?")),
    options: { inputs: accept({ ok: true }), maxRounds: 1 },
  },
  {
    title: "a kind left to the host",
    code: "suspended",
    script: ask(elicitForm("?")),
    options: { inputs: { elicitForm: "suspend" } },
  },
  {
    title: "a question repeated",
    code: "input-repeated",
    script: ask(elicitForm("?")),
    options: { inputs: { elicitForm: () => ({ action: "decline" }) } },
  },
  {
    title: "a malformed question",
    code: "protocol-violation",
    script: inputRequired({ inputRequests: 7, requestState: STATE }),
  },
  {
    title: "an unknown resultType",
    code: "protocol-violation",
    script: complete("x", { resultType: "x", requestState: STATE }),
  },
  {
    title: "a state that is too long",
    code: "limit",
    script: ask(form),
    options: { inputs: accept({}), limits: { requestStateBytes: 3 } },
  },
  {
    title: "a broken frame",
    code: "frame",
    script: raw((id) => `{"jsonrpc":"1.0","id":${id},"result":{"requestState":"${STATE}"}}`),
  },
  {
    title: "an error of the server after a question",
    code: "rpc",
    script: [ask(elicitForm("?")), (_request, exchange) => exchange.error(-32603, "no")],
    options: { inputs: accept({ ok: true }) },
  },
  {
    title: "a loss after a question",
    code: "connection-lost",
    script: [ask(elicitForm("?")), (_request, exchange) => exchange.crash()],
    options: { inputs: accept({ ok: true }), reissue: "never" },
  },
  {
    title: "a timeout after a question",
    code: "timeout",
    script: [ask(elicitForm("?")), () => {}],
    options: { inputs: accept({ ok: true }), timeouts: { attemptMs: 2000 } },
  },
];

const OF_THE_BINDING: ReadonlySet<string> = new Set(["frame", "rpc", "connection-lost", "timeout"]);

for (const { name, open } of BINDINGS) {
  const full = name === "memory" || name === "HTTP JSON";
  it(`SAF-01 over ${name}: no state and no input content is in any error or event`, async () => {
    // What the engine alone says is the same on every binding.
    const cases = full ? CASES : CASES.filter(({ code }) => OF_THE_BINDING.has(code));
    for (const { title, code, script, options = {} } of cases) {
      const rig = await open(script, options);
      const error = await errorOf(rig.client.callTool("t", { argument: CONTENT }));
      expect([title, error.code]).toEqual([title, code]);
      await rig.close();
      expectNoSecret([error, ...rig.events]);
    }
  });
}

it("SAF-01: late answers, requests of the peer and noise show no more than what they are", async () => {
  for (const { open, name } of BINDINGS) {
    const frame = (id: unknown, more: object) => JSON.stringify({ jsonrpc: "2.0", id, ...more });
    const rig = await open(({ id }, exchange) => {
      exchange.notify("notifications/progress", {
        progressToken: STATE.slice(0, 3),
        progress: 1,
        message: CONTENT,
      });
      exchange.frame(frame(4711, { result: ask(form) }));
      exchange.frame(frame("x", { method: "ping", params: { requestState: STATE } }));
      exchange.frame(`{"jsonrpc":"2.0","id":"y","result":{"requestState":"${STATE}"} ${CONTENT}`);
      exchange.frame(frame(id, { result: complete("done") }));
      exchange.frame(frame(id, { result: ask(form) }));
    });
    await rig.client.callTool("t").catch(() => {});
    await rig.client.callTool("t").catch(() => {});
    await rig.close();
    if (name !== "HTTP JSON") expect(rig.events.some(({ type }) => type === "wire.anomaly")).toBe(true);
    expectNoSecret(rig.events);
  }
});

describe("over HTTP", () => {
  async function openSecret(script: Step | readonly Step[], options: RigOptions = {}): Promise<Rig> {
    const peer = createScriptedPeer(script);
    const { url } = await peer.http();
    const transport = httpTransport(`${url}?key=${API_KEY}`, {
      token: TOKEN,
      headers: { "x-api-key": API_KEY },
    });
    return rigOver(peer, transport, options);
  }
  const echo: Step = ({ headers }, exchange) =>
    exchange.http({ status: 500, body: `you sent ${JSON.stringify(headers)} key=${API_KEY}` });
  const failures: [title: string, code: string, script: Step, options?: RigOptions][] = [
    ["a body that echoes the headers", "http-status", echo],
    [
      "a 401",
      "http-status",
      (_request, exchange) => exchange.http({ status: 401, headers: { "set-cookie": TOKEN } }),
    ],
    [
      "a redirect elsewhere",
      "http-status",
      (_request, exchange) =>
        exchange.http({ status: 307, headers: { location: `http://elsewhere.example/?key=${API_KEY}` } }),
    ],
    [
      "HTML",
      "frame",
      (_request, exchange) =>
        exchange.http({ headers: { "content-type": "text/html" }, body: `<p>${API_KEY} ${STATE}` }),
    ],
    [
      "broken JSON around a state",
      "frame",
      (_request, exchange) =>
        exchange.http({
          headers: { "content-type": "application/json" },
          body: `{"requestState": ${STATE}}`,
        }),
    ],
    ["a reset", "connection-lost", (_request, exchange) => exchange.crash(), { reissue: "never" }],
    ["a 404", "legacy-peer", (_request, exchange) => exchange.http({ status: 404, body: "no" })],
    ["silence", "timeout", () => {}, { timeouts: { attemptMs: 2000 } }],
  ];
  it("SAF-01 B176: no token, no header value and no query is in any error or event", async () => {
    const errors: RallyError[] = [];
    for (const [title, code, script, options] of failures) {
      const rig = await openSecret(script, options);
      const error = await errorOf(rig.client.callTool("t"));
      expect([title, error.code]).toEqual([title, code]);
      errors.push(error);
      await rig.close();
      expect(rig.peer.requests[0]?.headers?.authorization).toBe(`Bearer ${TOKEN}`);
      expectNoSecret([error, ...rig.events, rig.client.peer]);
    }
    const gone = createScriptedPeer({});
    const { url } = await gone.http();
    await gone.close();
    const transport = httpTransport(`${url}?key=${API_KEY}`, { token: TOKEN });
    const rig = rigOver(gone, transport, { reissue: { max: 0 } });
    errors.push(await errorOf(rig.client.callTool("t")));
    expect(errors.at(-1)?.code).toBe("connect");
    expectNoSecret([errors.at(-1), ...rig.events]);
  });

  it("SAF-01: a URL with credentials is refused without repeating them", async () => {
    expect(() => httpTransport(`https://user:${TOKEN}@h.example/`)).toThrow(
      expect.objectContaining({ code: "usage", message: expect.not.stringContaining(TOKEN) }),
    );
  });
});
