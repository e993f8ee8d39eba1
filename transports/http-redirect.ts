/**
 * Redirects (HTTP-04). A POST carries the call and the credentials, so it goes where the host said and nowhere else: only
 * 307 and 308 within the origin are followed. Everything else is an error that says what to change.
 */

/** How often one request follows a redirect. */
export const MOST_REDIRECTS = 3;

/** Where to go, or why not to. */
export type Redirect = { readonly path: string } | { readonly refusal: string };

/**
 * Decides on an answer with a 3xx status.
 *
 * @param base the URL that was asked, whole
 * @param hops how many redirects this request has followed already
 */
export function judgeRedirect(
  status: number,
  location: string | undefined,
  base: string,
  hops: number,
): Redirect {
  if (location === undefined) return { refusal: "a redirect without a Location" };
  let target: URL;
  try {
    target = new URL(location, base);
  } catch {
    return { refusal: "a redirect to something that is not a URL" };
  }
  const shown = showTarget(target);
  const isWeb = target.protocol === "https:" || target.protocol === "http:";
  if (!isWeb || target.origin !== new URL(base).origin) {
    return {
      refusal: `a redirect to another origin, ${shown}, is not followed, because the call and its credentials would go there; use that URL if you trust it`,
    };
  }
  if (target.username !== "" || target.password !== "") {
    return { refusal: "a redirect to a URL with credentials is not followed" };
  }
  if (status !== 307 && status !== 308) {
    return {
      refusal: `a redirect of a kind that turns POST into GET is not followed; use ${shown} as the URL`,
    };
  }
  if (hops >= MOST_REDIRECTS)
    return { refusal: `more than ${MOST_REDIRECTS} redirects in a row are not followed` };
  return { path: target.pathname + target.search };
}

/** Scheme, host and path at most: a query may hold a secret, and of other schemes even the path is of no use. */
function showTarget(target: URL): string {
  if (target.protocol !== "https:" && target.protocol !== "http:")
    return `a ${target.protocol.slice(0, 20)} URL`;
  return `${target.origin}${target.pathname}`.slice(0, 200);
}
