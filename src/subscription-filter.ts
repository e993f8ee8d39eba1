/**
 * What a subscription asks for, and what of it a server acknowledged.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#notification-filter}
 */

import { UsageError } from "./errors.ts";
import { isObject, type JsonObject, typeName } from "./wire.ts";

/** The notifications that a subscription asks for. At least one must be asked for. */
export interface SubscriptionFilter {
  /** `notifications/tools/list_changed`. */
  readonly toolsListChanged?: boolean | undefined;
  /** `notifications/prompts/list_changed`. */
  readonly promptsListChanged?: boolean | undefined;
  /** `notifications/resources/list_changed`. */
  readonly resourcesListChanged?: boolean | undefined;
  /** `notifications/resources/updated` for these URIs. */
  readonly resourceSubscriptions?: readonly string[] | undefined;
}

/** What a server made of a filter. */
export interface Acknowledgment {
  /** The part of the filter that it honours. */
  readonly filter: SubscriptionFilter;
  /** What it left out: names of the filter's members, and URIs. */
  readonly refused: readonly string[];
}

const FLAGS = ["toolsListChanged", "promptsListChanged", "resourcesListChanged"] as const;
const URIS = "resourceSubscriptions";

/** Which member of a filter asks for a notification. */
const ASKED_BY: ReadonlyMap<string, keyof SubscriptionFilter> = new Map([
  ["notifications/tools/list_changed", "toolsListChanged"],
  ["notifications/prompts/list_changed", "promptsListChanged"],
  ["notifications/resources/list_changed", "resourcesListChanged"],
  ["notifications/resources/updated", URIS],
]);

/** Whether `method` is a notification that a member of the filter asks for. */
export function isFilterable(method: string): boolean {
  return ASKED_BY.has(method);
}

/** Whether `filter` asks for the notification `method`. */
export function asksFor(filter: SubscriptionFilter, method: string): boolean {
  const member = ASKED_BY.get(method);
  return member !== undefined && filter[member] !== undefined;
}

/**
 * Checks a host's filter and takes a copy of it, without the members that ask for nothing.
 *
 * @param extensible whether members beyond the core's are taken as they are, for an extension that the client declares
 * @throws {UsageError} when a member is unknown or has the wrong type, or nothing is asked for
 */
export function readFilter(filter: unknown, extensible: boolean): SubscriptionFilter {
  if (!isObject(filter)) {
    throw new UsageError(
      `the filter must be an object such as { toolsListChanged: true }, not ${typeName(filter)}`,
      {
        path: "filter",
      },
    );
  }
  const read: JsonObject = {};
  for (const [key, value] of Object.entries(filter)) {
    if (value === undefined) continue;
    if ((FLAGS as readonly string[]).includes(key)) {
      if (typeof value !== "boolean") throw wrongMember(key, "true or false", value);
      if (value) read[key] = true;
    } else if (key === URIS) {
      if (!isUris(value)) throw wrongMember(key, "an array of URIs", value);
      if (value.length > 0) read[key] = [...value];
    } else if (extensible) {
      read[key] = value;
    } else {
      throw new UsageError(
        `filter.${key.slice(0, 100)} is unknown; a filter has ${FLAGS.join(", ")} and ${URIS}, and those of extensions in capabilities.extensions`,
        { path: "filter" },
      );
    }
  }
  if (Object.keys(read).length === 0) {
    throw new UsageError("the filter asks for nothing; set at least one of its members", { path: "filter" });
  }
  return read;
}

function wrongMember(key: string, expected: string, value: unknown): UsageError {
  return new UsageError(`filter.${key} must be ${expected}, not ${typeName(value)}`, {
    path: `filter.${key}`,
  });
}

function isUris(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((uri) => typeof uri === "string" && uri !== "");
}

/**
 * Compares an acknowledgment with what was asked. A server may leave types out; what it adds was not asked for and counts
 * for nothing, and an acknowledgment without a filter honours nothing.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#acknowledgment}
 */
export function readAcknowledgment(
  asked: SubscriptionFilter,
  params: JsonObject | undefined,
): Acknowledgment {
  const given = isObject(params?.notifications) ? params.notifications : {};
  const filter: JsonObject = {};
  const refused: string[] = [];
  for (const [key, value] of Object.entries(asked)) {
    if (key === URIS) {
      const honoured = new Set(Array.isArray(given[URIS]) ? given[URIS] : []);
      const uris = (value as string[]).filter((uri) => honoured.has(uri));
      refused.push(...(value as string[]).filter((uri) => !honoured.has(uri)));
      if (uris.length > 0) filter[key] = uris;
    } else if ((FLAGS as readonly string[]).includes(key) ? given[key] === true : Object.hasOwn(given, key)) {
      filter[key] = given[key];
    } else {
      refused.push(key);
    }
  }
  return { filter, refused };
}
