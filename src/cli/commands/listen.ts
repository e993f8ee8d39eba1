/** `mcp-rally listen`: shows what a server says has changed, one line each, until it is interrupted. */

import type { Client } from "../../client.ts";
import type { Subscription } from "../../subscription.ts";
import type { SubscriptionFilter } from "../../subscription-filter.ts";
import type { SubscriptionItem } from "../../subscription-queue.ts";
import type { Arguments } from "../arguments.ts";
import { type Command, TARGET } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { withClient } from "../open-client.ts";
import { SERVER_OPTIONS } from "../options.ts";
import type { Output } from "../output.ts";
import { clipLine } from "../sanitise.ts";

/** A stream has no answer to wait for: what bounds or traces calls says nothing about it. */
const STREAM_OPTIONS = Object.fromEntries(
  Object.entries(SERVER_OPTIONS).filter(([name]) =>
    ["config", "server", "header", "token-env", "debug", "help"].includes(name),
  ),
);

export const listenCommand: Command = {
  name: "listen",
  summary: "Show what a server says has changed, until interrupted",
  positionals: [TARGET],
  options: {
    tools: { help: "Changes of the list of tools" },
    prompts: { help: "Changes of the list of prompts" },
    resources: { help: "Changes of the list of resources" },
    uri: { takes: "URI", multiple: true, help: "Changes of this resource" },
    count: { takes: "N", help: "End after N lines" },
    json: { help: "Print one JSON document for each change" },
    ...STREAM_OPTIONS,
  },
  notes: [
    `Without --tools, --prompts, --resources and --uri it listens for changes of all three lists. A lost stream is
listened to again; a line that begins with "gap" says that changes may have been missed before it. With --json every
line is one JSON document.`,
    `It ends with exit code 0 after --count lines, or when the server ends it.`,
  ],
  examples: [
    "listen https://example.com/mcp --tools",
    "listen https://example.com/mcp --uri note://plain --count 1",
  ],
  run(context) {
    const { args, output } = context;
    const filter = readFilter(args);
    const count = args.count("count") ?? Number.POSITIVE_INFINITY;
    return withClient(context, {}, (client, { signal }) => listen(client, filter, { count, signal, output }));
  },
};

function readFilter(args: Arguments): SubscriptionFilter {
  const uris = args.texts("uri");
  const all = !args.has("tools") && !args.has("prompts") && !args.has("resources") && uris.length === 0;
  return {
    toolsListChanged: all || args.has("tools"),
    promptsListChanged: all || args.has("prompts"),
    resourcesListChanged: all || args.has("resources"),
    resourceSubscriptions: uris,
  };
}

interface Listening {
  readonly count: number;
  readonly signal: AbortSignal | undefined;
  readonly output: Output;
}

async function listen(
  client: Client,
  filter: SubscriptionFilter,
  { count, signal, output }: Listening,
): Promise<number> {
  const subscription = client.subscribe(filter, { signal });
  const honoured = await subscription.acknowledged;
  if (subscription.refused.length > 0)
    output.note(`the server does not tell of ${refusedText(subscription)}`);
  if (Object.keys(honoured).length === 0) {
    const message = "the server tells of nothing that was asked for, so there is nothing to wait for";
    if (output.json) output.document({ error: { code: "refused", message, refused: subscription.refused } });
    else output.problem(message);
    return EXIT.failed;
  }
  output.note("listening; Ctrl-C ends it");
  let lines = 0;
  if (lines < count) {
    for await (const item of subscription) {
      if (output.json) output.document(item);
      else output.line(itemText(item));
      if (++lines >= count) return EXIT.done;
    }
  }
  const end = await subscription.closed;
  if (end.reason === "failed") throw end.error;
  signal?.throwIfAborted();
  output.note(`the server ended the subscription${end.reason === "graceful" ? "" : ` (${end.reason})`}`);
  return EXIT.done;
}

function refusedText({ refused }: Subscription): string {
  return refused.map((name) => clipLine(name, 200)).join(", ");
}

function itemText(item: SubscriptionItem): string {
  if (item.type === "gap") return `gap ${item.reason}`;
  const what = clipLine(item.method.replace(/^notifications\//, ""), 200);
  const uri = item.params?.uri;
  return typeof uri === "string" ? `${what} ${clipLine(uri, 2000)}` : what;
}
