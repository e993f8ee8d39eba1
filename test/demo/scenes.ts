/** What the demo plays, and what must come of it. The server is the official one of `test/servers`. */

import { type CallToolResult, type Client, type ElicitFormHandler, RallyError } from "mcp-rally";

/** What a scene works with. */
export interface Stage {
  readonly client: Client;
  /** Prints one line of what the user sees. */
  say(text: string): void;
  /** How many requests this scene has sent so far. */
  sent(): number;
}

/** One scene. */
export interface Scene {
  readonly title: string;
  /** The only binding that can play it. */
  readonly only?: string;
  /** What `play` must give, word for word. */
  readonly expected: string;
  play(stage: Stage): Promise<string>;
}

/** Every scene, in the order of the demo. */
export const scenes: readonly Scene[] = [
  {
    title: "a tool that needs confirmation is confirmed, and its retry succeeds",
    expected: "deployed",
    async play(stage) {
      const elicitForm = answering(stage, "yes", () => ({ action: "accept", content: { ok: true } }));
      return textOf(await stage.client.callTool("deploy", { env: "staging" }, { inputs: { elicitForm } }));
    },
  },
  {
    title: "a tool that asks twice, the second question built on the first answer",
    expected: "Ada is on the team plan",
    async play(stage) {
      const elicitForm = onboarding(stage, "Ada");
      return textOf(await stage.client.callTool("onboard", {}, { inputs: { elicitForm } }));
    },
  },
  {
    title: "the user declines: an answer too, and the tool says what it makes of it",
    expected: "not deployed",
    async play(stage) {
      const elicitForm = answering(stage, "no", () => ({ action: "decline" }));
      return textOf(await stage.client.callTool("deploy", {}, { inputs: { elicitForm } }));
    },
  },
  {
    title:
      "the host aborts while the user is being asked: the call is over at once, and nothing more is sent",
    expected: "CancelledError because the window was closed, after 1 request",
    async play(stage) {
      const window = new AbortController();
      const elicitForm: ElicitFormHandler = ({ message }, { signal }) => {
        stage.say(`the server asks "${message}", the user closes the window`);
        window.abort(new Error("the window was closed"));
        return new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        });
      };
      const options = { signal: window.signal, inputs: { elicitForm } };
      const error = await failureOf(stage.client.callTool("deploy", {}, options));
      return `${error.name} because ${(error.cause as Error).message}, after ${stage.sent()} request`;
    },
  },
  {
    title: "a server that always wants more input: the client refuses to go on for ever",
    expected: "RoundLimitError after 3 answers and 4 requests",
    async play(stage) {
      const elicitForm = answering(stage, "yes", () => ({ action: "accept", content: { ok: true } }));
      const options = { maxRounds: 3, inputs: { elicitForm } };
      const error = await failureOf(stage.client.callTool("forever", {}, options));
      return `${error.name} after ${"rounds" in error ? error.rounds : "?"} answers and ${stage.sent()} requests`;
    },
  },
  {
    title:
      "the server process is killed in the middle of a round trip: it is started again, and so is the round trip",
    only: "stdio",
    expected: "Grace is on the team plan, says another process, after 4 questions",
    async play(stage) {
      const killed = await pidOf(stage.client);
      const answer = onboarding(stage, "Grace");
      let questions = 0;
      const elicitForm: ElicitFormHandler = (params, context) => {
        questions++;
        if (questions === 2) {
          stage.say(`now the server process, ${killed}, is killed`);
          process.kill(killed, "SIGKILL");
        }
        return answer(params, context);
      };
      const text = textOf(await stage.client.callTool("onboard", {}, { inputs: { elicitForm } }));
      const process2 = await pidOf(stage.client);
      return `${text}, says ${process2 === killed ? "the same" : "another"} process, after ${questions} questions`;
    },
  },
];

function answering(
  stage: Stage,
  shown: string,
  answer: () => ReturnType<ElicitFormHandler>,
): ElicitFormHandler {
  return ({ message }) => {
    stage.say(`the server asks "${message}", the user says ${shown}`);
    return answer();
  };
}

function onboarding(stage: Stage, name: string): ElicitFormHandler {
  return ({ message }, { key }) => {
    const content: Record<string, string> = key === "name" ? { name } : { plan: "team" };
    stage.say(`the server asks "${message}", the user says ${Object.values(content).join()}`);
    return { action: "accept", content };
  };
}

async function pidOf(client: Client): Promise<number> {
  const { pid } = JSON.parse(textOf(await client.callTool("inspect"))) as { pid: number };
  return pid;
}

function textOf({ content }: CallToolResult): string {
  return (content[0] as { text: string }).text;
}

/** The error of a call that has to fail. */
async function failureOf(call: Promise<unknown>): Promise<RallyError> {
  try {
    await call;
  } catch (error) {
    if (RallyError.is(error)) return error;
    throw error;
  }
  throw new Error("the call succeeded");
}
