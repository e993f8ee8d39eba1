/** `mcp-rally tools`: lists the tools. */

import { type Command, TARGET } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { withClient } from "../open-client.ts";
import { SERVER_OPTIONS } from "../options.ts";

export const toolsCommand: Command = {
  name: "tools",
  summary: "List the tools",
  positionals: [TARGET],
  options: SERVER_OPTIONS,
  examples: ["tools https://example.com/mcp", "tools -- node server.mjs"],
  async run(context) {
    const { output } = context;
    const tools = await withClient(context, {}, (client, options) => client.listTools(options));
    if (output.json) output.document({ tools });
    else {
      output.table(
        ["TOOL", "DESCRIPTION"],
        tools.map(({ name, title, annotations, description }) => [
          name,
          description ?? title ?? annotations?.title ?? "",
        ]),
      );
    }
    return EXIT.done;
  },
};
