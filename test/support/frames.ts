/** Reading what a client sent, frame by frame. */

import type { PeerRequest, ScriptedPeer } from "../../src/testing/peer-types.ts";
import type { JsonObject } from "../../src/wire.ts";

/** P: the text of the original params, from the frame as it came. */
export function paramsText({ text }: Pick<PeerRequest, "text">): string {
  const begin = text.indexOf('"params":{') + '"params":{'.length;
  return text.slice(begin, text.indexOf('"_meta":', begin)).replace(/,$/, "");
}

/** What a request carried besides its original params and `_meta`; a key is there only when it was sent. */
export function retryPart({ params }: PeerRequest): JsonObject {
  const part: JsonObject = {};
  if ("inputResponses" in params) part.inputResponses = params.inputResponses;
  if ("requestState" in params) part.requestState = params.requestState;
  return part;
}

/** The retry parts of all requests of a peer, in order. */
export function retryParts(peer: ScriptedPeer): JsonObject[] {
  return peer.requests.map(retryPart);
}

/** A frame without what may differ between two runs of the same call: its id, and the tokens that equal it. */
export function withoutIds(frame: string): string {
  return frame.replace(/"id":\d+/, '"id":N').replace(/"progressToken":\d+/, '"progressToken":N');
}
