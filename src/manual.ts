/** Manual mode: joins the host's answers to a continuation into the `inputResponses` of its retry (MRTR-20). */

import { checkAnswer } from "./answers.ts";
import type { ReadContinuation } from "./continuation.ts";
import { UsageError } from "./errors.ts";
import { encodeResponses } from "./inputs.ts";
import type { SchemaValidator } from "./validate.ts";
import type { JsonObject } from "./wire.ts";

/**
 * The text of `inputResponses`: exactly the keys of the open round, from the answers that the continuation carries and
 * those given now. Undefined when the round was state only. A key that was not asked, or one without an answer, is a UsageError.
 */
export async function answersFor(
  { continuation, requests }: ReadContinuation,
  given: Readonly<Record<string, unknown>>,
  checks: { readonly validator: SchemaValidator; readonly applyDefaults: boolean },
): Promise<string | undefined> {
  const carried = continuation.answers ?? {};
  for (const key of Object.keys(given)) {
    if (!requests?.some((request) => request.key === key)) {
      throw new UsageError(
        `inputResponses has the key ${JSON.stringify(key)}, which the server did not ask; it asked ${listKeys(requests)}. Nothing was sent.`,
        { path: `inputResponses[${JSON.stringify(key)}]` },
      );
    }
  }
  if (requests === undefined) return undefined;
  const answers = new Map<string, JsonObject>();
  for (const request of requests) {
    const { key } = request;
    if (Object.hasOwn(given, key)) answers.set(key, await checkAnswer(request, given[key], checks));
    else if (Object.hasOwn(carried, key)) answers.set(key, carried[key]!);
    else {
      throw new UsageError(
        `inputResponses has no answer for the key ${JSON.stringify(key)}; every key that the server asked needs one. Nothing was sent.`,
        { path: `inputResponses[${JSON.stringify(key)}]` },
      );
    }
  }
  return encodeResponses(answers);
}

function listKeys(requests: ReadContinuation["requests"]): string {
  if (requests === undefined || requests.length === 0) return "nothing";
  return requests.map(({ key }) => JSON.stringify(key)).join(", ");
}
