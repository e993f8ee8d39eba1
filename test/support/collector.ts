import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc") as () => void;

/**
 * Collects garbage: what is used after it is held by someone. Buffers are freed beside the collection, and their figures lag
 * behind it: until `isEnough`, it is collected again for some turns.
 */
export async function collectGarbage(isEnough: () => boolean = () => true): Promise<void> {
  gc();
  for (let turn = 0; turn < 50 && !isEnough(); turn++) {
    await setImmediate();
    gc();
  }
}
