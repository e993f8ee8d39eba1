/**
 * The operation that the fault tests disturb, three rounds long, and the rules that it must keep whatever happens to the
 * wire. One peer serves many operations at a time: each call carries a marker, and the peer keeps its record by marker.
 */

import { createClient } from "../../src/client.ts";
import type { ClientOptions } from "../../src/client-options.ts";
import type { RallyError } from "../../src/errors.ts";
import type { RallyEvent } from "../../src/events.ts";
import type { PeerExchange, Script } from "../../src/testing/peer-types.ts";
import { complete, elicitForm, inputRequired } from "../../src/testing/replies.ts";
import type { Transport } from "../../src/transport.ts";
import { createValidator } from "../../src/validate.ts";

/** What the handler says to each question. */
const ANSWERS: Readonly<Record<string, string>> = { first: "amber", second: "birch" };

const ONE_TEXT = { type: "object", properties: { value: { type: "string" } }, required: ["value"] };

/** Compiles the questions' schema once for all clients. */
const validator = createValidator();

/** A peer's script for three rounds, and what it saw. */
export interface ThreeRounds {
  readonly script: Script;
  /** The wire ids of the requests that the peer ran for one marker, in order. */
  ran(marker: string): readonly number[];
  /** What the peer found wrong with any request. */
  readonly faults: readonly string[];
}

/** How a result leaves the peer, when that is not the binding's own way. */
export type Reply = (exchange: PeerExchange, id: unknown, result: object) => void;

/** See {@link ThreeRounds}. */
export function threeRounds(reply: Reply = (exchange, _id, result) => exchange.result(result)): ThreeRounds {
  const ids = new Map<string, number[]>();
  const faults: string[] = [];
  return {
    faults,
    ran: (marker) => ids.get(marker) ?? [],
    script({ id, params }, exchange) {
      const { marker } = params.arguments as { marker: string };
      const known = ids.get(marker);
      if (known === undefined) ids.set(marker, [id as number]);
      else known.push(id as number);
      const { requestState, inputResponses } = params;
      const given = JSON.stringify(inputResponses);
      const answer = (key: string) =>
        JSON.stringify({ [key]: { action: "accept", content: { value: ANSWERS[key] } } });
      const ask = (key: string, state: string) =>
        reply(
          exchange,
          id,
          inputRequired({
            inputRequests: { [key]: elicitForm("Which?", ONE_TEXT) },
            requestState: `${marker} ${state}`,
          }),
        );
      if (requestState === undefined && given === undefined) ask("first", "one");
      else if (requestState === `${marker} one` && given === answer("first")) ask("second", "two");
      else if (requestState === `${marker} two` && given === answer("second")) {
        reply(exchange, id, complete(`${marker} is done`));
      } else {
        faults.push(`${marker}: a request came with the state ${requestState} and the inputs ${given}`);
        exchange.result(complete("these inputs belong to no round", { isError: true }));
      }
    },
  };
}

/** What one operation did, seen from its host. */
export interface Observed {
  readonly marker: string;
  /** The text of the result. */
  readonly text?: string;
  readonly error?: RallyError;
  readonly events: readonly RallyEvent[];
  /** The keys that the handler was asked, in order. */
  readonly asked: readonly string[];
  readonly pendingAfterwards: number;
}

/** Longer than any operation here can take, so that a hang is told instead of waited for. */
const HANG_MS = 20_000;

/** What a test does around the operation. */
export interface RunHooks {
  /** Called before the handler answers. */
  readonly onAsked?: (key: string) => void;
  /** Have the link up before the operation begins, so that its time bounds are about nothing else. */
  readonly warm?: boolean;
}

/** Makes a client, runs one operation of three rounds, and closes the client. */
export async function runThreeRounds(
  transport: Transport,
  marker: string,
  options: Partial<ClientOptions>,
  { onAsked, warm = false }: RunHooks = {},
): Promise<Observed> {
  const events: RallyEvent[] = [];
  const asked: string[] = [];
  const client = createClient({
    transport,
    validator,
    info: { name: "fault-test", version: "1.0.0" },
    inputs: {
      elicitForm(_params, { key }) {
        asked.push(key);
        onAsked?.(key);
        return { action: "accept", content: { value: ANSWERS[key]! } };
      },
    },
    ...options,
    onEvent(event) {
      events.push(event);
      options.onEvent?.(event);
    },
  });
  if (warm) await client.discover({ attemptMs: HANG_MS });
  let end: { text: string } | { error: RallyError };
  let timer: ReturnType<typeof setTimeout> | undefined;
  const hang = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not end within ${HANG_MS} ms`)), HANG_MS);
  });
  try {
    const result = await Promise.race([client.callTool("three-rounds", { marker }), hang]);
    end = { text: String((result.content[0] as { text?: unknown } | undefined)?.text) };
  } catch (error) {
    end = { error: error as RallyError };
  }
  clearTimeout(timer);
  const pendingAfterwards = client.operations.length;
  await client.close();
  return { marker, ...end, events, asked, pendingAfterwards };
}

/** What every operation must satisfy. Gives what it did not; call it when nothing is on its way to the peer any more. */
export function faultsOf(observed: Observed, ran: readonly number[], policy: "always" | "never"): string[] {
  const { marker, text, error, pendingAfterwards } = observed;
  const faults = traceFaults(observed, ran, policy);
  if (error === undefined) {
    if (text !== `${marker} is done`) faults.push(`the result is wrong: ${text}`);
  } else if (policy === "always" || !("delivery" in error)) {
    faults.push(`it failed: ${error.name}: ${error.message}`);
  } else if (error.delivery === "not-sent" && ran.includes(error.operation?.wireId ?? 0)) {
    faults.push("the error says not-sent, and the peer ran the request");
  }
  if (pendingAfterwards !== 0) faults.push(`${pendingAfterwards} operation(s) are still pending`);
  if (new Set(ran).size !== ran.length) faults.push(`the peer saw a wire id twice: ${ran.join(" ")}`);
  return faults;
}

/** Follows the attempts: where each round must go on from the end of the attempt before it (MRTR-18). */
function traceFaults({ events, asked }: Observed, ran: readonly number[], policy: string): string[] {
  const faults: string[] = [];
  const ids = new Set<number>();
  const questions: string[] = [];
  let round = 1;
  let lost = false;
  for (const event of events) {
    if (event.type === "attempt.sent") {
      if (ids.has(event.wireId)) faults.push(`wire id ${event.wireId} was used twice`);
      ids.add(event.wireId);
      if (event.method !== "tools/call") continue;
      if (event.round !== round)
        faults.push(`wire id ${event.wireId} is of round ${event.round}, not ${round}`);
      if (lost && policy === "never") faults.push("what may have run was issued again under never");
    } else if (event.type === "attempt.ended" && event.method === "tools/call") {
      lost = event.outcome === "failure" && event.delivery === "unknown";
      if (event.outcome === "input_required") {
        questions.push(event.round === 1 ? "first" : "second");
        round = event.round + 1;
      } else if (lost || event.outcome === "timeout") round = 1;
      if (event.delivery === "not-sent" && ran.includes(event.wireId)) {
        faults.push(`wire id ${event.wireId} counts as not-sent, and the peer ran it`);
      }
    }
  }
  if (asked.join() !== questions.join())
    faults.push(`the handler was asked ${asked.join()}; the peer asked ${questions.join()}`);
  return faults;
}
