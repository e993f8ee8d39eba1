// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references to variables are what is tested

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClient } from "../../src/client.ts";
import { UsageError } from "../../src/errors.ts";
import { complete, createScriptedPeer } from "../../src/testing/index.ts";
import { transportFor } from "../../transports/target.ts";
import { resolveTarget, type Target } from "../../transports/target-entry.ts";
import { document, run } from "./harness.ts";

const variables = { HOST: "example.com", TOKEN: "s3cret", EMPTY: "" };

describe("a target", () => {
  it.each<[Target, object]>([
    ["https://example.com/mcp", { kind: "http", url: "https://example.com/mcp" }],
    ["http://localhost:3000/${HOST}", { kind: "http", url: "http://localhost:3000/${HOST}" }],
    [new URL("wss://example.com/"), { kind: "websocket", url: "wss://example.com/" }],
    ["WS://example.com", { kind: "websocket" }],
    [{ url: "https://${HOST}/mcp" }, { kind: "http", url: "https://example.com/mcp" }],
    [{ url: "https://${PORT:-a}.${EMPTY:-b}/", type: "streamable-http" }, { url: "https://a.b/" }],
    [{ url: "ws://h/", type: "websocket" }, { kind: "websocket" }],
    [{ url: "https://h/", headers: { "X-Key": "a ${TOKEN} b" } }, { headers: { "X-Key": "a s3cret b" } }],
    [{ command: "node" }, { kind: "stdio", command: "node", args: [], env: undefined, cwd: undefined }],
    [
      {
        command: "${SHELL_:-sh}",
        args: ["-c", "echo $HOME ${#x} ${HOST}"],
        env: { A: "${TOKEN}" },
        cwd: "/${HOST}",
      },
      {
        command: "sh",
        args: ["-c", "echo $HOME ${#x} example.com"],
        env: { A: "s3cret" },
        cwd: "/example.com",
      },
    ],
    [{ command: "node", type: "stdio", disabled: false, timeout: 5 } as Target, { kind: "stdio" }],
  ])("%j", (target, expected) => {
    expect(resolveTarget(target, { variables })).toMatchObject(expected);
  });

  it.each<[unknown, RegExp]>([
    [
      "ftp://example.com/s3cret",
      /the scheme "ftp" of the target is not supported; use http, https, ws or wss/,
    ],
    ["example.com/s3cret", /the target is not a URL; give one such as https:/],
    ["http://s3cret@:x", /the target is not a URL/],
    [7, /a target must be a URL, \{ command, args, env \} or \{ url, headers \}, not number/],
    [{}, /neither "command" nor "url"/],
    [{ command: "a", url: "http://b/" }, /both "command" and "url"/],
    [{ command: "" }, /command is empty/],
    [{ command: "a", args: "s3cret" }, /args must be an array of strings, not string/],
    [{ command: "a", args: [1] }, /args\[0\] must be a string, not number/],
    [{ command: "a", env: { KEY: 5 } }, /env\["KEY"\] must be a string, not number/],
    [{ url: "http://a/", headers: [] }, /headers must be an object of strings, not array/],
    [{ url: "file:///s3cret" }, /the scheme "file" of url is not supported/],
    [{ url: "http://a/", type: "sse" }, /"sse" is the transport of the oldest revisions/],
    [{ url: "http://a/", type: "ws" }, /type "ws" and the scheme of its url disagree/],
    [
      { url: "http://a/", type: "carrier-pigeon" },
      /type "carrier-pigeon" is unknown; it must be "stdio", "http" or "ws"/,
    ],
    [{ command: "a", type: "http" }, /url must be a string, not missing/],
    [
      { command: "a", env: { KEY: "${TOKEN}${ABSENT}" } },
      /the environment variable ABSENT, which env\["KEY"\] refers to, is not set; set it, or give a default as \$\{ABSENT:-default\}/,
    ],
    [{ url: "https://${ABSENT}/${TOKEN}" }, /variable ABSENT, which url refers to/],
    [
      { command: "a", args: ["${TOKEN:s3cret}"] },
      /args\[0\] has a reference that begins with \$\{TOKEN: and is not understood/,
    ],
    [{ command: "a", args: ["${toString}"] }, /variable toString/],
  ])("SAF-01: %j is a UsageError that names the fault and shows no value", (target, message) => {
    const refused = () => resolveTarget(target as Target, { variables });
    expect(refused).toThrow(UsageError);
    expect(refused).toThrow(message);
    expect(refused).not.toThrow(/s3cret/);
  });

  it("is expanded from the environment of the process, and not at all where a shell has done it", () => {
    process.env.RALLY_TARGET_TEST = "from the environment";
    expect(resolveTarget({ command: "a", args: ["${RALLY_TARGET_TEST}"] })).toMatchObject({
      args: ["from the environment"],
    });
    expect(
      resolveTarget({ command: "a", args: ["${RALLY_TARGET_TEST}"] }, { variables: false }),
    ).toMatchObject({
      args: ["${RALLY_TARGET_TEST}"],
    });
    delete process.env.RALLY_TARGET_TEST;
  });

  it("takes more headers, which replace those of the entry in any case; a command takes none", () => {
    const target = { url: "https://h/", headers: { "X-A": "1", "x-b": "2" } };
    expect(resolveTarget(target, { headers: { "X-B": "3" } })).toMatchObject({
      headers: { "X-A": "1", "X-B": "3" },
    });
    expect(() => resolveTarget({ command: "a" }, { headers: {} })).toThrow(
      /headers cannot be sent to a command/,
    );
    expect(() => resolveTarget({ command: "a" }, { token: "s3cret" })).toThrow(
      /token cannot be sent to a command/,
    );
  });

  it.each([
    ["http://127.0.0.1:1/", "http"],
    ["ws://127.0.0.1:1/", "websocket"],
    [{ command: "node" }, "stdio"],
  ] as const)("transportFor(%j) is the %s transport", async (target, name) => {
    const transport = transportFor(target);
    expect(transport.name).toBe(name);
    await transport.close();
  });

  it("transportFor reaches the peer with the headers and the token", async () => {
    await using peer = createScriptedPeer(complete("here"));
    const { url } = await peer.http();
    const transport = transportFor(
      { url, headers: { "X-Key": "${KEY}" } },
      { variables: { KEY: "k" }, token: "t" },
    );
    await using client = createClient({ transport, info: { name: "test", version: "1" } });
    await client.callTool("any");
    expect(peer.requests[0]?.headers).toMatchObject({ "x-key": "k", authorization: "Bearer t" });
  });
});

describe("the target of a command line", () => {
  const peer = createScriptedPeer(complete("here"));
  let folder: string;
  let url: string;
  let config: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "rally-target-"));
    ({ url } = await peer.http());
    const { command, args } = await peer.stdio();
    config = join(folder, "mcp.json");
    const mcpServers = {
      web: { url: "${URL}", headers: { "X-Key": "${KEY:-none}" } },
      local: { command, args },
      bad: 5,
    };
    await writeFile(config, `\uFEFF${JSON.stringify({ mcpServers })}`);
    await writeFile(join(folder, "one.json"), JSON.stringify({ mcpServers: { web: { url } } }));
    await writeFile(join(folder, "broken.json"), '{"mcpServers":{"a":{"token":"s3cret"},}}');
    await writeFile(join(folder, "empty.json"), "{}");
  });
  afterAll(async () => {
    await rm(folder, { recursive: true });
    await peer.close();
  });

  it("is a URL", async () => {
    expect(await run(["call", url, "any"])).toMatchObject({ code: 0, stdout: "here\n" });
  });

  it("is a WebSocket URL", async () => {
    const server = await peer.websocket();
    expect(await run(["call", server.url, "any"])).toMatchObject({ code: 0, stdout: "here\n" });
    await server.close();
  });

  it("is the command after --", async () => {
    const { command, args } = await peer.stdio();
    expect(await run(["call", "any", "--", command, ...args])).toMatchObject({ code: 0, stdout: "here\n" });
  });

  it("is an entry of --config, with variables from the environment", async () => {
    const argv = ["call", "--config", "mcp.json", "--server", "web", "any"];
    expect(await run(argv, { cwd: folder, env: { URL: url } })).toMatchObject({ code: 0, stdout: "here\n" });
    expect(peer.requests.at(-1)?.headers).toMatchObject({ "x-key": "none" });
    expect(await run(["call", "--config", config, "--server", "local", "any"])).toMatchObject({
      code: 0,
      stdout: "here\n",
    });
    expect(await run(["call", "--config", join(folder, "one.json"), "any"])).toMatchObject({
      code: 0,
      stdout: "here\n",
    });
  });

  it("HTTP-04 SAF-01: takes headers and a token, which no output shows", async () => {
    const argv = [
      "call",
      url,
      "any",
      "--trace",
      "--debug",
      "--token-env",
      "TOKEN",
      "--header",
      "X-Key: ${KEY}",
      "--header",
      "x-two:2",
    ];
    const { code, stdout, stderr } = await run(argv, { env: { TOKEN: "s3cret", KEY: "k3y" } });
    expect(code).toBe(0);
    expect(peer.requests.at(-1)?.headers).toMatchObject({
      authorization: "Bearer s3cret",
      "x-key": "k3y",
      "x-two": "2",
    });
    expect(stdout + stderr).not.toMatch(/s3cret|k3y/);
  });

  it.each<[string[], RegExp]>([
    [["--config", "none.json", "any"], /--config: cannot read none\.json: ENOENT/],
    [
      ["--config", "broken.json", "any"],
      /--config broken\.json is not JSON: at position 38, expected a name/,
    ],
    [
      ["--config", "empty.json", "any"],
      /--config empty\.json: "mcpServers" must be an object of servers, and is missing/,
    ],
    [["--config", "mcp.json", "any"], /--config mcp\.json needs --server NAME: it has "web", "local", "bad"/],
    [["--config", "mcp.json", "--server", "wob", "any"], /has no server "wob"; it has "web", "local", "bad"/],
    [["--config", "mcp.json", "--server", "bad", "any"], /the server "bad" must be an object, not number/],
    [
      ["--config", "mcp.json", "--server", "web", "any"],
      /the environment variable URL, which url refers to, is not set/,
    ],
    [
      ["http://127.0.0.1:1/", "any", "--server", "web"],
      /--server names an entry of a file, so it needs --config FILE/,
    ],
    [["http://127.0.0.1:1/", "any", "--token-env", "ABSENT"], /is not set: ABSENT/],
    [["http://127.0.0.1:1/", "any", "--token-env", "s3cret"], /the one it names is not set$/m],
    [
      ["http://127.0.0.1:1/", "any", "--header", "s3cret"],
      /--header number 1 must be written as 'Name: value'/,
    ],
    [["http://127.0.0.1:1/", "any", "--header", "Bad Name: s3cret"], /not a valid header name/],
    [["any", "--header", "A: b", "--", "node"], /headers cannot be sent to a command/],
    [["any", "--"], /there is no command after --/],
    [["http://user:s3cret@127.0.0.1:1/", "any"], /the url must not hold credentials/],
  ])("%j is exit code 2", async (argv, message) => {
    const { code, stdout, stderr } = await run(["call", ...argv], { cwd: folder });
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain("s3cret");
  });

  it("STD-02: a command that does not exist is exit code 4, and says so", async () => {
    const ended = await run(["tools", "--json", "--", "no-such-program-of-anyone"]);
    expect(ended.code).toBe(4);
    expect(document(ended)).toMatchObject({ error: { code: "connect", delivery: "not-sent" } });
  });
});
