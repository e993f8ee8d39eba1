import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import type { InputError, UsageError } from "../../src/errors.ts";
import type { Outcome } from "../../src/outcome.ts";
import { META } from "../../src/protocol.ts";
import { complete, elicitForm, inputRequired, listRoots } from "../../src/testing/replies.ts";
import { createScriptedPeer } from "../../src/testing/scripted-peer.ts";
import { httpTransport } from "../../transports/http.ts";
import { HTTP_AND_STDIO, memory, rigOver } from "../support/bindings.ts";
import { paramsText, retryParts } from "../support/frames.ts";
import { errorOf, textOf } from "../support/outcomes.ts";
import { officialStdio, startOfficialHttp } from "../support/servers.ts";

// Manual mode: a call that is put aside as plain JSON and gone on with elsewhere.

type Asked = Extract<Outcome, { status: "input_required" }>;

const ACCEPT = { action: "accept", content: { ok: true } };
const declared = { elicitForm: "suspend", listRoots: "suspend" } as const;
const question = inputRequired({
  inputRequests: { form: elicitForm("?"), places: listRoots() },
  requestState: "opaque",
});

async function beginAsked(client: {
  begin(method: string, params?: object): Promise<Outcome>;
}): Promise<Asked> {
  const outcome = await client.begin("tools/call", { name: "t", arguments: { b: 1, a: [2] } });
  expect(outcome.status).toBe("input_required");
  return outcome as Asked;
}

for (const { name, open } of HTTP_AND_STDIO) {
  describe(`manual mode over ${name}`, () => {
    it("MRTR-20 B023: begin gives the question, resume sends the retry, and no handler runs", async () => {
      const rig = await open([question, inputRequired({ requestState: "later" }), complete("done")], {
        inputs: { elicitForm: () => ({ action: "cancel" }), listRoots: "suspend" },
      });
      const asked = await beginAsked(rig.client);
      expect(asked.inputRequests).toEqual({ form: elicitForm("?"), places: { ...listRoots(), params: {} } });
      const stored = JSON.parse(JSON.stringify(asked.continuation));
      expect(stored).toEqual(asked.continuation);
      const second = await rig.client.resume(stored, { places: { roots: [] }, form: ACCEPT });
      expect(second).toMatchObject({ status: "input_required" });
      expect((second as Asked).inputRequests).toBeUndefined();
      const last = await rig.client.resume((second as Asked).continuation);
      expect(last).toMatchObject({ status: "complete", result: complete("done") });
      expect(retryParts(rig.peer)).toEqual([
        {},
        { inputResponses: { form: ACCEPT, places: { roots: [] } }, requestState: "opaque" },
        { requestState: "later" },
      ]);
      expect(new Set(rig.peer.requests.map(paramsText))).toEqual(
        new Set(['"name":"t","arguments":{"b":1,"a":[2]}']),
      );
      expect(new Set(rig.peer.requests.map(({ id }) => id)).size).toBe(3);
    });

    it("MRTR-20: a continuation is refused before anything is sent when it does not fit", async () => {
      const rig = await open(question, { inputs: declared, peer: "right" });
      const { continuation } = await beginAsked(rig.client);
      const answers = { form: ACCEPT, places: { roots: [] } };
      const refusals: [title: string, value: unknown, answers: object, path: string][] = [
        ["another peer", { ...continuation, peer: "wrong" }, answers, "continuation.peer"],
        ["an unknown version", { ...continuation, version: 2 }, answers, "continuation.version"],
        ["no object", "x", answers, "continuation"],
        ["no method", { ...continuation, method: undefined }, answers, "continuation.method"],
        ["params that are no JSON", { ...continuation, params: '"a":' }, answers, "continuation.params"],
        [
          "params with a reserved key",
          { ...continuation, params: '"_meta":{}' },
          answers,
          "continuation.params",
        ],
        [
          "params that would end the frame",
          { ...continuation, params: '"a":1},"x":{' },
          answers,
          "continuation.params",
        ],
        ["rounds that are no number", { ...continuation, rounds: "1" }, answers, "continuation.rounds"],
        [
          "a state that is no string",
          { ...continuation, requestState: 1 },
          answers,
          "continuation.requestState",
        ],
        [
          "an input request that is none",
          { ...continuation, inputRequests: { form: { method: "x" } } },
          answers,
          'continuation.inputRequests["form"].method',
        ],
        [
          "answers that were not asked",
          { ...continuation, answers: { x: {} } },
          answers,
          "continuation.answers",
        ],
        [
          "mirrored fields that are none",
          { ...continuation, mirrored: [1] },
          answers,
          "continuation.mirrored",
        ],
        ["a key that was not asked", continuation, { ...answers, other: {} }, 'inputResponses["other"]'],
        ["a key without an answer", continuation, { form: ACCEPT }, 'inputResponses["places"]'],
      ];
      for (const [title, value, given, path] of refusals) {
        const error = await errorOf<UsageError>(rig.client.resume(value, given as never));
        expect([title, error.code, error.path]).toEqual([title, "usage", path]);
      }
      const misfit = await errorOf<InputError>(
        rig.client.resume(continuation, { ...answers, form: { action: "ok" } }),
      );
      expect([misfit.code, misfit.key, misfit.path]).toEqual(["input", "form", "action"]);
      expect(rig.peer.requests).toHaveLength(1);
    });
  });
}

describe("a continuation", () => {
  it("MRTR-20 SAF-01: holds the round, and no options, deadlines, capabilities or meta", async () => {
    const rig = await memory.open(question, { inputs: declared, meta: { traceparent: "00-secret" } });
    const { continuation } = await beginAsked(rig.client);
    expect(Object.keys(continuation).sort()).toEqual(
      ["version", "peer", "method", "params", "name", "rounds", "requestState", "inputRequests"].sort(),
    );
    expect(JSON.stringify(continuation)).not.toMatch(/traceparent|clientCapabilities|clientInfo/);
    expect(JSON.stringify(continuation).length).toBeLessThan(1000);
  });

  it("MRTR-20: is bound to the peer's name, not to what the server says of itself", async () => {
    const script = ({ params }: { params: object }, exchange: { result(value: unknown): void }) => {
      const serverInfo = { [META.serverInfo]: { name: `v${Math.random()}`, version: "1" } };
      exchange.result({ ...("requestState" in params ? complete("done") : question), _meta: serverInfo });
    };
    const first = await memory.open(script, { inputs: declared, peer: "the server" });
    const { continuation } = await beginAsked(first.client);
    expect(continuation.peer).toBe("the server");
    const second = await memory.open(script, { inputs: declared, peer: "the server" });
    const outcome = await second.client.resume(continuation, { form: ACCEPT, places: { roots: [] } });
    expect(outcome.status).toBe("complete");
    const other = await memory.open(script, { inputs: declared });
    expect((await errorOf(other.client.resume(continuation, {}))).code).toBe("usage");
    expect(other.peer.received).toEqual([]);
  });

  it("MRTR-20 MRTR-11: counts the rounds used, over any number of resumes", async () => {
    const rig = await memory.open(inputRequired({ requestState: "s" }), { maxRounds: 3 });
    let outcome = await rig.client.begin("tools/call", { name: "t" });
    for (const rounds of [1, 2, 3]) {
      expect((outcome as Asked).continuation.rounds).toBe(rounds);
      if (rounds < 3) outcome = await rig.client.resume((outcome as Asked).continuation);
    }
    const error = await errorOf(rig.client.resume((outcome as Asked).continuation));
    expect(error).toMatchObject({ code: "round-limit", rounds: 3 });
    expect(rig.peer.requests).toHaveLength(4);
  });

  it("MRTR-20: is suspended in one process and gone on with in another, over another transport", async () => {
    const host = fileURLToPath(new URL("../fixtures/suspending-host.ts", import.meta.url));
    const { command, args } = officialStdio();
    const params = JSON.stringify({ name: "onboard", arguments: {} });
    const [{ stdout }, server] = await Promise.all([
      promisify(execFile)(process.execPath, [
        "--import",
        "tsx",
        host,
        command,
        args[0]!,
        "tools/call",
        params,
      ]),
      startOfficialHttp(),
    ]);
    try {
      const continuation = JSON.parse(stdout);
      expect(continuation).toMatchObject({ peer: "official", method: "tools/call", rounds: 1 });
      const rig = rigOver(createScriptedPeer({}), httpTransport(server.url), {
        peer: "official",
        inputs: { elicitForm: "suspend" },
      });
      const name = { action: "accept", content: { name: "Ada" } };
      const second = (await rig.client.resume(continuation, { name })) as Asked;
      expect(Object.keys(second.inputRequests ?? {})).toEqual(["plan"]);
      const plan = { action: "accept", content: { plan: "team" } };
      const last = await rig.client.resume(second.continuation, { plan });
      expect(last.status === "complete" && textOf(last.result as never)).toBe("Ada is on the team plan");
      await rig.close();
    } finally {
      await server.close();
    }
  }, 30_000);

  it("MRTR-20: a client that is closed resumes nothing", async () => {
    const rig = await memory.open(question, { inputs: declared });
    const { continuation } = await beginAsked(rig.client);
    await rig.client.close();
    const error = await errorOf(rig.client.resume(continuation, { form: ACCEPT, places: { roots: [] } }));
    expect(error.code).toBe("closed");
  });
});
