/** How a scenario's call is made with a client of the official SDK, of either generation. */

import { argumentsOf, check, checkProgress } from "../contenders/calls.mjs";

/** @param callTool (params, options) => Promise<result> */
export function callOf(scenario, callTool) {
  const { tool } = scenario;
  const params = { name: tool, arguments: argumentsOf(scenario) };
  switch (tool) {
    case "progress":
      return async () => {
        let progressed = 0;
        const onprogress = () => progressed++;
        check(scenario, await callTool(params, { onprogress }));
        checkProgress(progressed);
      };
    case "hang":
      return async () => {
        const controller = new AbortController();
        const onprogress = () => controller.abort(new Error("cancelled"));
        let isAnswered = true;
        try {
          await callTool(params, { onprogress, signal: controller.signal });
        } catch (error) {
          isAnswered = false;
          if (!controller.signal.aborted) throw error;
        }
        if (isAnswered) throw new Error("a cancelled call was answered");
      };
    default:
      return async () => check(scenario, await callTool(params));
  }
}
