import { createHash } from "node:crypto";

/**
 * The text by which a transport tells one authorization from another (CCH-01): a digest of everything that can bear on
 * who the peer thinks is asking, so that it holds no secret and equal texts mean equal parts.
 */
export function partitionOf(...parts: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64url");
}
