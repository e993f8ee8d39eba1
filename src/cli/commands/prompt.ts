/** `mcp-rally prompt`: gets a prompt. */

import type { GetPromptResult } from "../../mcp-types.ts";
import { askCall } from "../ask-call.ts";
import { type Command, TARGET } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { INPUT_NOTES, INPUT_OPTIONS, SERVER_OPTIONS } from "../options.ts";
import type { Output } from "../output.ts";
import { printPrompt } from "../print.ts";
import { clipLine } from "../sanitise.ts";
import { readPromptArguments } from "../values.ts";

export const promptCommand: Command = {
  name: "prompt",
  summary: "Get a prompt",
  positionals: [TARGET, "<name>"],
  options: {
    arg: { takes: "NAME=TEXT", multiple: true, help: "One argument of the prompt; always text" },
    ...INPUT_OPTIONS,
    ...SERVER_OPTIONS,
  },
  notes: INPUT_NOTES,
  examples: ["prompt https://example.com/mcp greet --arg name=Ada"],
  async run(context) {
    const { args, output } = context;
    const name = args.positional("<name>");
    const promptArguments = readPromptArguments(args);
    return askCall<GetPromptResult>(context, {
      what: `the prompt ${clipLine(name, 80)}`,
      method: "prompts/get",
      params: promptArguments === undefined ? { name } : { name, arguments: promptArguments },
      run: (client, options) => client.getPrompt(name, promptArguments, options),
      print: (result) => printGet(result, output),
    });
  },
};

/** Prints the messages of a prompt. */
export function printGet(result: GetPromptResult, output: Output): number {
  if (output.json) output.document(result);
  else printPrompt(result, output);
  return EXIT.done;
}
