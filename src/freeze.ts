/** Freezes JSON values, so that what is shared between callers can't be changed by one of them. */

/**
 * Freezes a JSON value all through, without recursion, and gives about how many bytes of memory it takes.
 */
export function freezeDeep(value: unknown): number {
  let bytes = 0;
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    bytes += 16;
    if (typeof next === "string") bytes += next.length * 2;
    if (typeof next !== "object" || next === null) continue;
    if (Array.isArray(next)) {
      for (const item of next) open.push(item);
    } else {
      for (const key of Object.keys(next)) {
        bytes += 16 + key.length;
        open.push((next as Record<string, unknown>)[key]);
      }
    }
    Object.freeze(next);
  }
  return bytes;
}
