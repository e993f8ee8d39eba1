/**
 * A peer that plays a script, over any binding. It plays what a correct server never does, and lets a host test its input
 * handlers against questions of its own choosing.
 */

import { openPeerChannel, outletOf } from "./peer-channel.ts";
import { type BoundServer, PeerCore } from "./peer-core.ts";
import { startPeerHttp } from "./peer-http.ts";
import { peerMemoryHandler, peerMemoryTransport } from "./peer-memory.ts";
import { startPeerStdio } from "./peer-stdio.ts";
import type { ScriptedPeer, ScriptedPeerOptions, Step } from "./peer-types.ts";
import { startPeerWebSocket } from "./peer-websocket.ts";

/**
 * Creates a peer. `script` is called for every request; of a list of steps, the n-th request gets the n-th and later
 * ones the last. A step is a script or simply the result to give.
 *
 * Scripts run in this process on every binding, also stdio, where the client starts a real child that leads back here.
 *
 * @example
 * const peer = createScriptedPeer([
 *   inputRequired({ inputRequests: { sure: elicitForm("Deploy to production?") } }),
 *   complete("deployed"),
 * ]);
 * const { url } = await peer.http();
 * // … createClient({ transport: httpTransport(url), inputs: { elicitForm: myHandler } }) …
 * await client.close();
 * await peer.close(); // rejects if something was left open
 */
export function createScriptedPeer(
  script: Step | readonly Step[],
  options: ScriptedPeerOptions = {},
): ScriptedPeer {
  const steps = Array.isArray(script) ? (script as readonly Step[]) : [script as Step];
  const core = new PeerCore(steps, options);
  const { closeGraceMs = 1000 } = options;

  function bind<Server extends BoundServer>(
    server: Server,
  ): Omit<Server, "close"> & { close(): Promise<void> } {
    core.servers.add(server);
    return {
      ...server,
      async close() {
        if (core.servers.delete(server)) report(await server.close(closeGraceMs), []);
      },
    };
  }

  async function close(): Promise<void> {
    const servers = [...core.servers];
    core.servers.clear();
    const leftovers = await Promise.all(servers.map((server) => server.close(closeGraceMs)));
    report(leftovers.flat(), core.faults.splice(0));
  }

  return {
    requests: core.requests,
    notifications: core.notifications,
    received: core.received,
    cancelled: core.cancelled,
    waitFor: (count, timeoutMs = 5000) => core.waitFor(core.requests, "requests", count, timeoutMs),
    waitForCancelled: (count, timeoutMs = 5000) =>
      core.waitFor(core.cancelled, "cancelled requests", count, timeoutMs),
    memory: () => peerMemoryTransport(core),
    handler: () => peerMemoryHandler(core),
    channel: (port) => openPeerChannel(core, { link: core.nextLink() }, outletOf(port)),
    http: async ({ answer = "json" } = {}) => bind(await startPeerHttp(core, answer)),
    stdio: async () => bind(await startPeerStdio(core)),
    websocket: async () => bind(await startPeerWebSocket(core)),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function report(leftovers: readonly string[], faults: readonly unknown[]): void {
  if (faults.length === 1 && leftovers.length === 0) throw faults[0];
  const errors = [...faults];
  if (leftovers.length > 0) {
    errors.unshift(
      new Error(
        `the client left something open: ${leftovers.join("; ")}. Close it before the scripted peer.`,
      ),
    );
  }
  if (errors.length === 1) throw errors[0];
  if (errors.length > 1)
    throw new AggregateError(errors, "the scripted peer closed with more than one fault");
}
