/**
 * Values of a peer as text that fits a message. A peer may nest a value so deeply that JSON.stringify gives up, or make it
 * as long as a message may be: neither must do more than cost its own call (SAF-02).
 */

/** A primitive as JSON, cut to `length`; of an object or an array only what it is. Never throws. */
export function showValue(value: unknown, length = 60): string {
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "an array" : "an object";
  return clip(JSON.stringify(value) ?? "undefined", length);
}

/** A whole value as JSON, cut to `length`; what can't be written is named by its type. Never throws. */
export function showJson(value: unknown, length = 200): string {
  try {
    return clip(JSON.stringify(value) ?? "undefined", length);
  } catch {
    return showValue(value, length);
  }
}

/** A text cut to `length` characters. */
export function clip(text: string, length = 200): string {
  return text.length > length ? `${text.slice(0, length - 3)}...` : text;
}

/** A server's key as text that fits a message. */
export function showKey(key: string): string {
  return JSON.stringify(key).slice(0, 120);
}

/** Several keys as text that fits a message. */
export function showKeys(keys: readonly string[]): string {
  return keys
    .map((key) => JSON.stringify(key))
    .join(", ")
    .slice(0, 300);
}

/** Whether a value is nested deeper than `levels`. Walks no deeper than that. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  for (const member of Object.values(value)) if (isDeeperThan(member, levels - 1)) return true;
  return false;
}
