/** How a transport tells one authorization from another. */

import { node } from "./node.ts";

/**
 * The text by which a transport tells one authorization from another (CCH-01): a digest of everything that can bear on
 * who the peer thinks is asking, so that it holds no secret and equal texts mean equal parts. It is made when a cacheable
 * call first asks for it, once: a process that makes none does not load `node:crypto`.
 */
export function partitionOf(...parts: readonly unknown[]): () => string {
  // What the host does to its objects meanwhile must not change whose results are whose.
  const text = JSON.stringify(parts);
  let digest: string | undefined;
  return () => {
    if (digest === undefined) {
      const { createHash } = node.crypto;
      digest = createHash("sha256").update(text).digest("base64url");
    }
    return digest;
  };
}
