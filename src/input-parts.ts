/** The entry to all that answers input requests. Reached by way of input-code.ts only, which loads it when it is needed. */

export { encodeResponses, gatherInputs } from "./inputs.ts";
export { answersFor } from "./manual.ts";
