/** `mcp-rally prompts`: lists the prompts. */

import { type Command, TARGET } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { withClient } from "../open-client.ts";
import { SERVER_OPTIONS } from "../options.ts";

export const promptsCommand: Command = {
  name: "prompts",
  summary: "List the prompts",
  positionals: [TARGET],
  options: SERVER_OPTIONS,
  examples: ["prompts https://example.com/mcp"],
  async run(context) {
    const { output } = context;
    const prompts = await withClient(context, {}, (client, options) => client.listPrompts(options));
    if (output.json) output.document({ prompts });
    else {
      output.table(
        ["PROMPT", "ARGUMENTS", "DESCRIPTION"],
        prompts.map(({ name, title, description, arguments: list }) => [
          name,
          (list ?? []).map((one) => (one.required === true ? one.name : `[${one.name}]`)).join(" "),
          description ?? title ?? "",
        ]),
      );
    }
    return EXIT.done;
  },
};
