import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { answerJson, type Peer, startPeer } from "./http-peer.ts";

const MODULE = fileURLToPath(new URL("../../dist/transports/http.js", import.meta.url));

let peer: Peer;

beforeAll(async () => {
  peer = await startPeer(answerJson);
});

afterAll(() => peer.stop());

/** Runs a program of its own, so that nothing is loaded but what the transport loads, and gives what it prints. */
async function runAlone(program: string): Promise<unknown> {
  const source = `
    import { createRequire } from "node:module";
    const { cache } = createRequire(import.meta.url);
    const loaded = () => Object.keys(cache).filter((file) => /node_modules.undici/.test(file));
    const { httpTransport } = await import(${JSON.stringify(MODULE)});
    const transport = httpTransport(${JSON.stringify(peer.url)});
    transport.attach({ limits: { messageBytes: 1e6 }, notification() {}, link() {}, anomaly() {} });
    const call = () => new Promise((resolve) => {
      const body = '{"jsonrpc":"2.0","id":1,"method":"m"}';
      transport.exchange(
        { id: 1, method: "m", protocolVersion: "2026-07-28", body, mirrored: [] },
        { notification() {}, response: (frame) => resolve(frame.kind), failure: ({ error }) => resolve(String(error)) },
      );
    });
    ${program}
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", source], {
    cwd: fileURLToPath(new URL("../..", import.meta.url)),
  });
  return JSON.parse(stdout);
}

it("HTTP-05: undici is loaded with the first call, and of it only what a pool needs", async () => {
  const [before, kind, after] = (await runAlone(`
    const before = loaded();
    const kind = await call();
    console.log(JSON.stringify([before, kind, loaded()]));
    await transport.close();
  `)) as [string[], string, string[]];
  expect(before).toEqual([]);
  expect(kind).toBe("result");
  expect(after.length).toBeGreaterThan(0);
  expect(after.filter((file) => /undici.(index\.js|lib.(web|mock|cache|interceptor))/.test(file))).toEqual(
    [],
  );
});

it("an idle connection does not keep the process of a host that forgot close() alive", async () => {
  expect(await runAlone("console.log(JSON.stringify(await call()));")).toBe("result");
});
