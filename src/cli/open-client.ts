/** Opens the client of a command, and sees to it that it is closed. The engine and the transport are loaded here. */

import type { Client } from "../client.ts";
import type { CallOptions } from "../client-options.ts";
import type { InputHandlers } from "../inputs.ts";
import type { CommandContext } from "./command.ts";
import { readCallOptions } from "./options.ts";
import { openTransport, readTarget } from "./target.ts";
import { programVersion } from "./version.ts";
import { watch } from "./watch.ts";

/** Runs `use` with a client, and closes it whatever happens. The options go with every call. */
export async function withClient<T>(
  { args, io, output, signal }: CommandContext,
  inputs: InputHandlers,
  use: (client: Client, options: CallOptions) => Promise<T>,
): Promise<T> {
  const calls = readCallOptions(args);
  const target = await readTarget(args, io);
  const watching = watch(args, io, output);
  const transport = await openTransport(target, watching.onStderr);
  const { createClient } = await import("../index.ts");
  const peer = args.text("peer");
  const client = createClient({
    transport,
    info: { name: "mcp-rally", version: await programVersion() },
    inputs,
    onEvent: watching.onEvent,
    ...(peer !== undefined && { peer }),
  });
  try {
    return await use(client, { ...calls, ...watching.callbacks, signal });
  } finally {
    watching.end();
    await client.close();
  }
}
