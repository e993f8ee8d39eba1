/**
 * Round trips as a table: what the peer does, what the host answers, and how the call must end. The table knows nothing of
 * bindings; `mrtr.test.ts` runs every row over all five.
 */

import type { CallOptions } from "../../src/client-options.ts";
import type { ErrorCode } from "../../src/errors.ts";
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
import type { JsonObject } from "../../src/wire.ts";
import type { Rig } from "../support/bindings.ts";

/** One row. */
export interface Scenario {
  readonly title: string;
  /** What the peer does with the first request, the second, and so on. */
  readonly script: readonly Step[];
  readonly inputs?: InputHandlers;
  readonly options?: CallOptions;
  /** Called when the call is under way; `abort` aborts its signal. */
  readonly meanwhile?: (rig: Rig, abort: () => void) => Promise<void>;
  /** The text of the result, or the code of the error. */
  readonly ends: { readonly text: string } | { readonly code: ErrorCode };
  /** What each request carried besides the original params. */
  readonly sent: readonly JsonObject[];
  /** How many handlers were run. */
  readonly asked: number;
}

export const ACCEPT = { action: "accept", content: { ok: true } } as const;
export const DECLINE = { action: "decline" } as const;

const form = (message = "OK?") => elicitForm(message);
const ask = (requestState?: string, inputRequests: JsonObject = { ok: form() }) =>
  inputRequired({ inputRequests, ...(requestState !== undefined && { requestState }) });
const done = complete("done");
const accept: InputHandlers = { elicitForm: () => ACCEPT };
const hang: InputHandlers = { elicitForm: () => new Promise(() => {}) };
const silence: Step = () => {};
const crash: Step = (_request, exchange) => exchange.crash();
/** Begins an answer, so that its end is the end of a stream on every binding. */
const drop: Step = (_request, exchange) => {
  exchange.notify("notifications/message", { level: "info", data: "about to end" });
  exchange.drop();
};
const ok = { inputResponses: { ok: ACCEPT } };
const okWith = (requestState: string) => ({ ...ok, requestState });

/** Aborts when the peer has got so many requests. */
const abortAfter = (requests: number) => async (rig: Rig, abort: () => void) => {
  await rig.peer.waitFor(requests);
  abort();
};

const ROUNDS: readonly Scenario[] = [
  { title: "no round at all", script: [done], ends: { text: "done" }, sent: [{}], asked: 0 },
  {
    title: "a single round",
    script: [ask(), done],
    inputs: accept,
    ends: { text: "done" },
    sent: [{}, ok],
    asked: 1,
  },
  {
    title: "several rounds, with and without state",
    script: [ask("1"), ask(), ask("3"), done],
    inputs: accept,
    ends: { text: "done" },
    sent: [{}, okWith("1"), ok, okWith("3")],
    asked: 3,
  },
  {
    title: "state only, twice",
    script: [inputRequired({ requestState: "a" }), inputRequired({ requestState: "" }), done],
    ends: { text: "done" },
    sent: [{}, { requestState: "a" }, { requestState: "" }],
    asked: 0,
  },
  {
    title: "an empty inputRequests",
    script: [inputRequired({ inputRequests: {}, requestState: "s" }), done],
    ends: { text: "done" },
    sent: [{}, { inputResponses: {}, requestState: "s" }],
    asked: 0,
  },
  {
    title: "many inputs of every kind in one round",
    script: [
      ask("s", {
        form: form(),
        url: elicitUrl("Visit", "https://example.com/"),
        model: sample("Hi"),
        places: listRoots(),
        "": form("again"),
      }),
      done,
    ],
    inputs: {
      elicitForm: () => ACCEPT,
      elicitUrl: () => DECLINE,
      sample: () => ({ role: "assistant", content: { type: "text", text: "hi" }, model: "m" }),
      listRoots: () => ({ roots: [] }),
    },
    ends: { text: "done" },
    sent: [
      {},
      {
        inputResponses: {
          form: ACCEPT,
          url: DECLINE,
          model: { role: "assistant", content: { type: "text", text: "hi" }, model: "m" },
          places: { roots: [] },
          "": ACCEPT,
        },
        requestState: "s",
      },
    ],
    asked: 5,
  },
  {
    title: "a decline",
    script: [ask(), complete("not done")],
    inputs: { elicitForm: () => DECLINE },
    ends: { text: "not done" },
    sent: [{}, { inputResponses: { ok: DECLINE } }],
    asked: 1,
  },
  {
    title: "a handler that fails",
    script: [ask(), done],
    inputs: {
      elicitForm: () => {
        throw new Error("no window");
      },
    },
    ends: { code: "input" },
    sent: [{}],
    asked: 1,
  },
  {
    title: "a second question that no one may be asked",
    script: [ask("1"), ask("2", { places: listRoots() })],
    inputs: accept,
    ends: { code: "input" },
    sent: [{}, okWith("1")],
    asked: 1,
  },
  {
    title: "an error of the server in the second round",
    script: [ask(), (_request, exchange) => exchange.error(-32603, "broken")],
    inputs: accept,
    ends: { code: "rpc" },
    sent: [{}, ok],
    asked: 1,
  },
  {
    title: "questions without end",
    script: [ask("s")],
    inputs: accept,
    options: { maxRounds: 2 },
    ends: { code: "round-limit" },
    sent: [{}, okWith("s"), okWith("s")],
    asked: 2,
  },
];

const ABORTS: readonly Scenario[] = [
  {
    title: "an abort before anything is written",
    script: [done],
    meanwhile: async (_rig, abort) => abort(),
    ends: { code: "cancelled" },
    sent: [],
    asked: 0,
  },
  {
    title: "an abort while the first answer is awaited",
    script: [silence],
    meanwhile: abortAfter(1),
    ends: { code: "cancelled" },
    sent: [{}],
    asked: 0,
  },
  {
    title: "an abort while a handler runs",
    script: [ask(), done],
    inputs: hang,
    meanwhile: async (rig, abort) => {
      while (rig.client.operations[0]?.phase !== "gathering") await new Promise((next) => setImmediate(next));
      abort();
    },
    ends: { code: "cancelled" },
    sent: [{}],
    asked: 1,
  },
  {
    title: "an abort in the pause after state only",
    script: [inputRequired({ requestState: "s" }), silence],
    meanwhile: async (rig, abort) => {
      while (rig.client.operations[0]?.phase !== "pausing") await new Promise((next) => setImmediate(next));
      abort();
    },
    ends: { code: "cancelled" },
    sent: [{}],
    asked: 0,
  },
  {
    title: "an abort while the second answer is awaited",
    script: [ask(), silence],
    inputs: accept,
    meanwhile: abortAfter(2),
    ends: { code: "cancelled" },
    sent: [{}, ok],
    asked: 1,
  },
];

const LOSSES: readonly Scenario[] = [
  {
    title: "a crash at the first request",
    script: [crash, done],
    ends: { text: "done" },
    sent: [{}, {}],
    asked: 0,
  },
  {
    title: "an orderly end at the first request",
    script: [drop, done],
    ends: { text: "done" },
    sent: [{}, {}],
    asked: 0,
  },
  {
    title: "a crash at the retry",
    script: [ask("1"), crash, ask("2"), done],
    inputs: accept,
    ends: { text: "done" },
    sent: [{}, okWith("1"), {}, okWith("2")],
    asked: 2,
  },
  {
    title: "a crash in the third round, then in the first",
    script: [ask("1"), ask("2"), crash, crash, ask("3"), done],
    inputs: accept,
    ends: { text: "done" },
    sent: [{}, okWith("1"), okWith("2"), {}, {}, okWith("3")],
    asked: 3,
  },
  {
    title: "a crash after state only",
    script: [inputRequired({ requestState: "1" }), crash, done],
    ends: { text: "done" },
    sent: [{}, { requestState: "1" }, {}],
    asked: 0,
  },
  {
    title: "more crashes than the budget",
    script: [crash],
    options: { reissue: { max: 1, backoffMs: 0 } },
    ends: { code: "connection-lost" },
    sent: [{}, {}],
    asked: 0,
  },
  {
    title: "a crash at the retry, and the policy never",
    script: [ask(), crash],
    inputs: accept,
    options: { reissue: "never" },
    ends: { code: "connection-lost" },
    sent: [{}, ok],
    asked: 1,
  },
];

/** Every row. */
export const SCENARIOS: readonly Scenario[] = [...ROUNDS, ...ABORTS, ...LOSSES];
