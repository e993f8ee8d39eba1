/** Plays the scenes over each binding, prints the traces, and checks what came of every scene. */

import { createClient, type Transport } from "mcp-rally";
import { httpTransport } from "mcp-rally/transports/http";
import { stdioTransport } from "mcp-rally/transports/stdio";
import { webSocketTransport } from "mcp-rally/transports/websocket";
import { officialStdio, startOfficialHttp, startOfficialWebSocket } from "../support/servers.ts";
import type { Scene } from "./scenes.ts";
import { Trace } from "./trace.ts";

/** A way to a server of its own. */
interface Bound {
  readonly transport: Transport;
  /** Ends the server, where that is not the transport's to do. */
  close?(): Promise<void>;
}

/** Starts the demo server for a binding. */
type Bind = () => Promise<Bound>;

/** Every binding of the demo. */
export const bindings: Readonly<Record<string, Bind>> = {
  stdio: async () => ({ transport: stdioTransport(officialStdio()) }),
  http: async () => {
    const { url, close } = await startOfficialHttp();
    return { transport: httpTransport(url), close };
  },
  websocket: async () => {
    const { url, close } = await startOfficialWebSocket();
    return { transport: webSocketTransport(url), close };
  },
};

/** Plays `scenes` over the bindings of these names. Gives the exit code: 1 when anything was not as expected. */
export async function runDemo(names: readonly string[], scenes: readonly Scene[]): Promise<number> {
  const started = names.map((name) => ({ name, bound: bindings[name]!() }));
  let played = 0;
  const wrong: string[] = [];
  for (const { name, bound } of started) {
    const { transport, close } = await bound;
    console.log(`\n${name}: ${transport.peer}`);
    const trace = new Trace((line) => console.log(line));
    const client = createClient({
      transport,
      info: { name: "mcp-rally-demo", version: "1.0.0" },
      // Declares what the scenes answer; each brings a handler of its own.
      inputs: { elicitForm: () => ({ action: "cancel" }) },
      onEvent: trace.onEvent,
    });
    for (const scene of scenes.filter(({ only }) => only === undefined || only === name)) {
      played++;
      console.log(`\n  ${played}. ${scene.title}`);
      trace.heading();
      const say = (text: string) => console.log(`    … ${text}`);
      const outcome = await scene
        .play({ client, say, sent: () => trace.sent })
        .catch((error: unknown) => String(error));
      if (outcome === scene.expected) {
        console.log(`    ok: ${outcome}`);
      } else {
        wrong.push(`${name}, ${scene.title}`);
        console.log(`    WRONG: ${outcome}\n    expected: ${scene.expected}`);
      }
    }
    await client.close();
    await close?.();
  }
  for (const scene of wrong) console.log(`\nwrong: ${scene}`);
  console.log(`\n${played} scenes, ${played - wrong.length} as expected`);
  return wrong.length === 0 ? 0 : 1;
}
