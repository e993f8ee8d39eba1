/** `mcp-rally resume`: goes on with a call that --suspend kept. */

import { readContinuation } from "../../continuation.ts";
import type { CallToolResult, GetPromptResult, ReadResourceResult, Result } from "../../mcp-types.ts";
import { isObject } from "../../wire.ts";
import { answering, finish, keepingState } from "../ask-call.ts";
import { createAsker } from "../asker.ts";
import { type Command, TARGET } from "../command.ts";
import { planFile, readContinuationFile } from "../continuation-file.ts";
import { withClient } from "../open-client.ts";
import { INPUT_NOTES, INPUT_OPTIONS, SERVER_OPTIONS } from "../options.ts";
import type { Output } from "../output.ts";
import { followRounds } from "../rounds.ts";
import { printCall } from "./call.ts";
import { printGet } from "./prompt.ts";
import { printRead } from "./read.ts";

export const resumeCommand: Command = {
  name: "resume",
  summary: "Go on with a call that --suspend kept in a file",
  positionals: ["FILE", TARGET],
  options: {
    ...INPUT_OPTIONS,
    suspend: {
      takes: "FILE",
      help: "Where to keep the call if it is still open; default: the file it came from",
    },
    ...SERVER_OPTIONS,
  },
  notes: [
    `If the server asks something more that has no answer, the call is kept again, and the exit code is 3. FILE
belongs to one server: the same URL or command, or the same --peer NAME. It holds secrets; delete it when
the call is done.`,
    ...INPUT_NOTES,
  ],
  examples: [`resume deploy.json https://example.com/mcp --answer 'confirm={"ok":true}'`],
  async run(context) {
    const { args, io, output, signal } = context;
    const name = args.positional("FILE");
    const stored = await readContinuationFile(name, io);
    const elsewhere = args.text("suspend");
    const file = await planFile(elsewhere ?? name, elsewhere === undefined || args.has("force"), io);
    const asker = await createAsker(context, { suspends: true, prompts: true });
    return answering(context, asker, "the call", () =>
      withClient(context, asker.markers(), async (client, options) => {
        // The client looks at the continuation, and whose it is, before anything is asked or sent.
        const { continuation } = readContinuation(stored, client.peer);
        const end = await keepingState(file, context, () =>
          followRounds({ status: "input_required", continuation }, asker, signal, (next, answers) =>
            client.resume(next, answers, options),
          ),
        );
        return finish(end, file, context, (result) => printAny(continuation.method, result, output));
      }),
    );
  },
};

function printAny(method: string, result: Result, output: Output): number {
  switch (method) {
    case "tools/call":
      return printCall(result as CallToolResult, output);
    case "resources/read":
      return printRead(result as ReadResourceResult, output);
    case "prompts/get":
      return printGet(result as GetPromptResult, output);
    default:
      output.document(isObject(result) ? result : {});
      return 0;
  }
}
