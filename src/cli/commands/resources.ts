/** `mcp-rally resources`: lists the resources and their templates. */

import type { Client } from "../../client.ts";
import type { CallOptions } from "../../client-options.ts";
import { RpcError } from "../../errors.ts";
import type { ResourceTemplate } from "../../mcp-types.ts";
import { CODE } from "../../protocol.ts";
import { type Command, TARGET } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { withClient } from "../open-client.ts";
import { SERVER_OPTIONS } from "../options.ts";

export const resourcesCommand: Command = {
  name: "resources",
  summary: "List the resources and the templates of resources",
  positionals: [TARGET],
  options: SERVER_OPTIONS,
  examples: ["resources https://example.com/mcp"],
  async run(context) {
    const { output } = context;
    const [resources, resourceTemplates] = await withClient(context, {}, (client, options) =>
      Promise.all([client.listResources(options), listTemplates(client, options)]),
    );
    if (output.json) output.document({ resources, resourceTemplates });
    else {
      output.table(
        ["URI", "NAME", "TYPE", "DESCRIPTION"],
        [
          ...resources.map((resource) => ({ ...resource, address: resource.uri })),
          ...resourceTemplates.map((template) => ({ ...template, address: template.uriTemplate })),
        ].map(({ address, name, title, mimeType, description }) => [
          address,
          name,
          mimeType ?? "",
          description ?? title ?? "",
        ]),
      );
    }
    return EXIT.done;
  },
};

/** A server may have resources and no templates at all. */
async function listTemplates(client: Client, options: CallOptions): Promise<ResourceTemplate[]> {
  try {
    return await client.listResourceTemplates(options);
  } catch (error) {
    if (error instanceof RpcError && error.rpcCode === CODE.methodNotFound) return [];
    throw error;
  }
}
