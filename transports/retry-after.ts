/**
 * Reads a `Retry-After` field: how long the peer asks to be left alone, in milliseconds from now (HTTP-03).
 *
 * Whole seconds and the three HTTP-date forms are understood. A date that has passed means now. Anything else, a negative
 * or fractional number included, means nothing and gives undefined. No upper bound is applied here: whoever waits has a
 * deadline to hold it against.
 * {@link https://www.rfc-editor.org/rfc/rfc9110#field.retry-after}
 *
 * @param wallNowMs the time of day in milliseconds since 1970
 */
export function retryAfterMs(value: string | undefined, wallNowMs: number): number | undefined {
  const text = value?.trim();
  if (text === undefined || text === "" || text.length > 64) return undefined;
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, Number.MAX_SAFE_INTEGER);
  if (!HTTP_DATE.test(text)) return undefined;
  // The asctime form names no zone and means GMT like the others.
  const at = Date.parse(/GMT$/.test(text) ? text : `${text} GMT`);
  return Number.isNaN(at) ? undefined : Math.max(0, at - wallNowMs);
}

/** `Date.parse` takes many more forms than HTTP has; only HTTP's get that far. */
const HTTP_DATE =
  /^(?:[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} GMT|[A-Z][a-z]{5,8}, \d\d-[A-Z][a-z]{2}-\d\d [\d:]{8} GMT|[A-Z][a-z]{2} [A-Z][a-z]{2} [\d ]\d [\d:]{8} \d{4})$/;
