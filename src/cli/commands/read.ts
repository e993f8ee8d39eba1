/** `mcp-rally read`: reads a resource. */

import type { ReadResourceResult } from "../../mcp-types.ts";
import { askCall } from "../ask-call.ts";
import { type Command, TARGET } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { INPUT_NOTES, INPUT_OPTIONS, SERVER_OPTIONS } from "../options.ts";
import type { Output } from "../output.ts";
import { printResource } from "../print.ts";
import { clipLine } from "../sanitise.ts";

export const readCommand: Command = {
  name: "read",
  summary: "Read a resource",
  positionals: [TARGET, "<uri>"],
  options: { ...INPUT_OPTIONS, ...SERVER_OPTIONS },
  notes: INPUT_NOTES,
  examples: ["read https://example.com/mcp note://plain > note.txt"],
  run(context) {
    const uri = context.args.positional("<uri>");
    return askCall<ReadResourceResult>(context, {
      what: `the resource ${clipLine(uri, 80)}`,
      method: "resources/read",
      params: { uri },
      run: (client, options) => client.readResource(uri, options),
      print: (result) => printRead(result, context.output),
    });
  },
};

/** Prints the contents of a resource. */
export function printRead(result: ReadResourceResult, output: Output): number {
  if (output.json) output.document(result);
  else printResource(result, output);
  return EXIT.done;
}
