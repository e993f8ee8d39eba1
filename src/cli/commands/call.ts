/** `mcp-rally call`: calls a tool. */

import type { CallToolResult } from "../../mcp-types.ts";
import { askCall } from "../ask-call.ts";
import { type Command, TARGET } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { INPUT_NOTES, INPUT_OPTIONS, SERVER_OPTIONS } from "../options.ts";
import type { Output } from "../output.ts";
import { printToolResult } from "../print.ts";
import { clipLine } from "../sanitise.ts";
import { readToolArguments } from "../values.ts";

export const callCommand: Command = {
  name: "call",
  summary: "Call a tool, and answer what its server asks on the way",
  positionals: [TARGET, "<tool>"],
  options: {
    args: { takes: "JSON", help: "The tool's arguments as a JSON object; @FILE or @- reads it" },
    arg: {
      takes: "NAME=VALUE",
      multiple: true,
      help: "One argument, laid over --args; NAME:=JSON must be JSON",
    },
    ...INPUT_OPTIONS,
    ...SERVER_OPTIONS,
  },
  notes: [
    `--arg NAME=VALUE takes VALUE as JSON where it is JSON, and as text where it is not: n=5 is a number, on=true is
true, city=Brno is text. To keep such a value as text, quote it as JSON: 'zip="12345"'.`,
    ...INPUT_NOTES,
  ],
  examples: [
    "call https://example.com/mcp deploy --arg env=staging",
    "call deploy --answer 'confirm={\"ok\":true}' -- node server.mjs",
    "call --config mcp.json --server deploy deploy --suspend deploy.json",
  ],
  async run(context) {
    const { args, io, output } = context;
    const tool = args.positional("<tool>");
    const toolArguments = await readToolArguments(args, io);
    return askCall<CallToolResult>(context, {
      what: `the tool ${clipLine(tool, 80)}`,
      method: "tools/call",
      params: toolArguments === undefined ? { name: tool } : { name: tool, arguments: toolArguments },
      run: (client, options) => client.callTool(tool, toolArguments, options),
      print: (result) => printCall(result, output),
    });
  },
};

/** Prints a tool's result, and gives its exit code. */
export function printCall(result: CallToolResult, output: Output): number {
  const failed = result.isError === true;
  if (output.json) output.document(result);
  else {
    printToolResult(result, output);
    if (failed) output.problem("the tool reported an error");
  }
  return failed ? EXIT.toolError : EXIT.done;
}
