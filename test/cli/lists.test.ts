import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { complete, createScriptedPeer, type Script } from "../../src/testing/index.ts";
import { type StartedServer, startOfficialHttp } from "../support/servers.ts";
import { document, run } from "./harness.ts";

let server: StartedServer;
beforeAll(async () => {
  server = await startOfficialHttp();
});
afterAll(() => server.close());

async function onPeer(script: Script, argv: readonly string[], options: Parameters<typeof run>[1] = {}) {
  await using peer = createScriptedPeer(script);
  const { url } = await peer.http();
  return await run([argv[0]!, url, ...argv.slice(1)], options);
}

describe("lists", () => {
  it("tools: a line for each", async () => {
    const { code, stdout, stderr } = await run(["tools", server.url]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout.split("\n")).toContain("deploy\tDeploys after a confirmation");
  });

  it("tools: a table on a terminal", async () => {
    const { stdout } = await run(["tools", server.url], { columns: 30 });
    expect(stdout.split("\n").slice(0, 2)).toEqual([
      "TOOL     DESCRIPTION",
      "deploy   Deploys after a conf…",
    ]);
  });

  it.each([
    ["tools", ["tools"]],
    ["prompts", ["prompts"]],
    ["resources", ["resources", "resourceTemplates"]],
    ["discover", ["supportedVersions", "capabilities"]],
  ])("%s --json is one document", async (command, members) => {
    const ended = await run([command, server.url, "--json"]);
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    for (const member of members) expect(document(ended)).toHaveProperty(member);
  });

  it("prompts: with their arguments; resources: with their templates", async () => {
    expect((await run(["prompts", server.url])).stdout).toContain("greet\tname\tA plain prompt\n");
    const { stdout } = await run(["resources", server.url]);
    expect(stdout).toContain("note://plain\tplain\ttext/plain");
    expect(stdout).toContain("page://{number}\tpage\ttext/plain");
  });

  it("discover: says what the server is", async () => {
    const { stdout } = await run(["discover", server.url]);
    expect(stdout).toMatch(
      /^server {8}official-server 1\.0\.0 \(Official test server\)\nversions {6}2026-07-28\nfeatures {6}logging, completions, resources \(subscribe, listChanged\)/,
    );
    expect(stdout).toContain("A server for tests.");
  });

  it("LST-01: a list that does not end is cut with a warning", async () => {
    const script: Script = (_request, exchange) =>
      exchange.result({
        resultType: "complete",
        tools: [{ name: "t", inputSchema: { type: "object" } }],
        nextCursor: "c",
      });
    const { code, stdout, stderr } = await onPeer(script, ["tools"]);
    expect([code, stdout]).toEqual([0, "t\t\nt\t\n"]);
    expect(stderr).toMatch(/^mcp-rally: warning: the list is not complete: /);
  });

  it("a server that has resources and no templates", async () => {
    const script: Script = ({ method }, exchange) =>
      method === "resources/list"
        ? exchange.result({ resultType: "complete", resources: [{ uri: "a:b", name: "n" }] })
        : exchange.error(-32601, "unknown");
    expect(await onPeer(script, ["resources"])).toMatchObject({ code: 0, stdout: "a:b\tn\t\t\n" });
    expect(await onPeer(script, ["prompts"])).toMatchObject({
      code: 4,
      stderr:
        "mcp-rally: the server answered with an error: unknown (code -32601)\nThe server does not have this feature.\n",
    });
  });
});

describe("results as text", () => {
  const HOSTILE = "red\u001b[31m";

  it("structured content is JSON, once; other content is told in words", async () => {
    expect((await run(["call", server.url, "weather"])).stdout).toBe(
      '{\n  "celsius": 21.5,\n  "sky": "clear over Prague"\n}\n',
    );
    const blocks = [
      { type: "text", text: HOSTILE },
      { type: "image", mimeType: "image/png", data: "AAAA" },
      { type: "audio", mimeType: "audio/wav", data: "A".repeat(4000) },
      { type: "resource_link", name: "doc", uri: "doc://1", mimeType: "text/plain" },
      { type: "resource", resource: { uri: "a:b", text: "inside" } },
      { type: "resource", resource: { uri: "a:c", mimeType: "x/y", blob: "AAA=" } },
      { type: "hologram", depth: 3 },
    ];
    const script: Script = (_request, exchange) => exchange.result(complete(blocks));
    const words = [
      "[image: image/png, 3 B]",
      "[audio: audio/wav, 3.0 kB]",
      "[resource link: doc doc://1 (text/plain)]",
      "inside",
      "[blob: x/y, 2 B, a:c]",
      "[hologram: 29 characters of JSON; use --json to see it]",
    ];
    expect((await onPeer(script, ["call", "any"])).stdout.split("\n")).toEqual([HOSTILE, ...words, ""]);
    expect((await onPeer(script, ["call", "any"], { columns: 80 })).stdout.split("\n")).toEqual([
      "red\\u{1b}[31m",
      ...words,
      "",
    ]);
    expect(document(await onPeer(script, ["call", "any", "--json"]))).toMatchObject({ content: blocks });
  });

  it("--json on a terminal is the same document, without anything that the terminal could obey", async () => {
    const text = `${HOSTILE}\u009b2J\u202e`;
    const script: Script = (_request, exchange) => exchange.result(complete(text));
    const { stdout } = await onPeer(script, ["call", "any", "--json"], { columns: 80 });
    expect(stdout.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(JSON.parse(stdout)).toMatchObject({ content: [{ text }] });
  });

  it("a resource goes to a file unchanged, and ends its line on a terminal", async () => {
    expect((await run(["read", server.url, "note://plain"])).stdout).toBe("a plain note");
    expect((await run(["read", server.url, "note://plain"], { columns: 80 })).stdout).toBe("a plain note\n");
    const contents = [
      { uri: "a:1", text: "one" },
      { uri: "a:2", mimeType: "x/y", blob: "AAAA" },
    ];
    const script: Script = (_request, exchange) => exchange.result({ resultType: "complete", contents });
    expect((await onPeer(script, ["read", "a:1"])).stdout).toBe(
      "== a:1\none\n== a:2\n[blob: x/y, 3 B, a:2]\n",
    );
  });

  it("a prompt has its messages under their roles", async () => {
    expect((await run(["prompt", server.url, "greet", "--arg", "name=Ada"])).stdout).toBe(
      "user: Greet Ada\n",
    );
  });
});
