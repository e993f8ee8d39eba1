/** What every contender does in a scenario: the same calls with the same answers, whatever makes them. */

export const INFO = { name: "bench", version: "1.0.0" };
export const VERSION = "2026-07-28";

/** The tools that ask something back: the others are called by clients that declare nothing. */
export const asks = (tool) => tool === "confirm" || tool === "confirm-new" || tool === "five";

export const ANSWER = { action: "accept", content: { confirm: true } };

/** The arguments of a scenario's calls. */
export function argumentsOf({ tool, megabytes, ascii }) {
  if (tool === "echo") return { text: "hello" };
  return tool === "big" ? { megabytes, ascii } : {};
}

/** Throws when a result is not what the scenario is about: a contender that fails fast must not look fast. */
export function check({ tool, megabytes }, result) {
  const { text } = result.content[0];
  if (
    tool === "echo" ? text !== "hello" : tool === "big" ? text.length < megabytes * 900_000 : text === "none"
  ) {
    throw new Error(`${tool} gave ${text.slice(0, 40)}`);
  }
}

export const PROGRESS_REPORTS = 100;

export function checkProgress(count) {
  if (count !== PROGRESS_REPORTS)
    throw new Error(`${count} progress notifications came, not ${PROGRESS_REPORTS}`);
}

const META = "io.modelcontextprotocol/";

/** One request of a scenario as text: the bytes that the engine sends, by way of a plain JSON.stringify. */
export function frameOf(id, { tool, ...scenario }, { responses, requestState } = {}) {
  const meta = {
    [`${META}protocolVersion`]: VERSION,
    [`${META}clientInfo`]: INFO,
    [`${META}clientCapabilities`]: asks(tool) ? { elicitation: { form: {} } } : {},
  };
  if (tool === "progress" || tool === "hang") meta.progressToken = id;
  return JSON.stringify({
    jsonrpc: "2.0",
    id,
    method: "tools/call",
    params: {
      name: tool,
      arguments: argumentsOf({ tool, ...scenario }),
      _meta: meta,
      inputResponses: responses,
      requestState,
    },
  });
}

/**
 * Plays one call over `exchange(text, id, onNotification) -> Promise<frame>`: what a host would write by hand around a
 * bare connection.
 */
export async function playCall(scenario, nextId, exchange) {
  const { tool } = scenario;
  let progressed = 0;
  const onNotification = tool === "progress" ? () => progressed++ : undefined;
  let again;
  for (;;) {
    const id = nextId();
    const { result } = await exchange(frameOf(id, scenario, again), id, onNotification);
    if (result.resultType !== "input_required") {
      if (tool === "progress") checkProgress(progressed);
      check(scenario, result);
      return;
    }
    const responses = {};
    for (const key of Object.keys(result.inputRequests)) responses[key] = ANSWER;
    again = { responses, requestState: result.requestState };
  }
}
