/** How a call ended, for tests that look at errors. */

import { expect } from "vitest";
import { RallyError } from "../../src/errors.ts";
import type { Rig } from "./bindings.ts";

/** The error of a promise that must reject with one of ours. */
export async function errorOf<E extends RallyError = RallyError>(promise: Promise<unknown>): Promise<E> {
  let result: unknown;
  try {
    result = await promise;
  } catch (error) {
    if (!RallyError.is(error)) throw error;
    return error as E;
  }
  throw new Error(`it should have failed, and gave ${JSON.stringify(result)?.slice(0, 200)}`);
}

/** The text of a tool result. */
export function textOf(result: { content: readonly { [key: string]: unknown }[] }): unknown {
  return result.content[0]?.text;
}

/** What must hold after any call has ended: nothing is pending, and no wire id was used twice. */
export function expectAtRest({ client, peer }: Rig): void {
  expect(client.operations).toEqual([]);
  const ids = peer.requests.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
}

/** Resolves when `condition` holds, looked at once each turn of the event loop; rejects after `timeoutMs`. */
export async function until(condition: () => boolean, what: string, timeoutMs = 3000): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`waited ${timeoutMs} ms for ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
