import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, it } from "vitest";
import { unixSocketTransport } from "../../docs/examples/unix-socket-transport.ts";
import { transportContract } from "../../src/testing/contract.ts";
import { type LinePeer, serveLines } from "../support/line-peer.ts";

// The transport of docs/transport-guide.md, as someone else would write it, served by peer.channel().

const served: LinePeer[] = [];
afterEach(async () => {
  for (const { close } of served.splice(0)) await close();
});

let made = 0;
transportContract(
  "own transport",
  async (peer) => {
    const path = join(tmpdir(), `mcp-rally-${process.pid}-${++made}.sock`);
    served.push(await serveLines(peer, path));
    return unixSocketTransport(path);
  },
  { runner: { describe, it } },
);
