import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  complete,
  createScriptedPeer,
  elicitForm,
  elicitUrl,
  inputRequired,
  type Script,
} from "../../src/testing/index.ts";
import { officialStdio, type StartedServer, startLegacyHttp, startOfficialHttp } from "../support/servers.ts";
import { document, run } from "./harness.ts";

let server: StartedServer;
let folder: string;
beforeAll(async () => {
  server = await startOfficialHttp();
  folder = await mkdtemp(join(tmpdir(), "rally-call-"));
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

/** Runs a command line against a scripted peer over HTTP. */
async function onPeer(script: Script, argv: readonly string[], options: Parameters<typeof run>[1] = {}) {
  await using peer = createScriptedPeer(script);
  const { url } = await peer.http();
  const ended = await run(
    argv.map((argument) => (argument === "URL" ? url : argument)),
    options,
  );
  return { ...ended, requests: peer.requests, url };
}

const ALWAYS_ASKS: Script = (_request, exchange) =>
  exchange.result(inputRequired({ inputRequests: { again: elicitForm("Again?") }, requestState: "st4te" }));

describe("exit codes", () => {
  it("0: the tool's text is on stdout, and nothing is on stderr", async () => {
    expect(await run(["call", server.url, "echo", "--arg", "text=hello"])).toEqual({
      code: 0,
      stdout: "hello\n",
      stderr: "",
      exits: [],
    });
  });

  it("0 over stdio, and the server is gone", async () => {
    const { command, args } = officialStdio();
    const { code, stdout } = await run(["call", "inspect", "--", command, ...args]);
    expect(code).toBe(0);
    const { pid } = JSON.parse(stdout) as { pid: number };
    expect(() => process.kill(pid, 0)).toThrow(/ESRCH/);
  });

  it("1: the tool said isError", async () => {
    const plain = await run(["call", server.url, "fail"]);
    expect(plain).toMatchObject({
      code: 1,
      stdout: "it failed\n",
      stderr: "mcp-rally: the tool reported an error\n",
    });
    const json = await run(["call", server.url, "fail", "--json"]);
    expect(json).toMatchObject({ code: 1, stderr: "" });
    expect(document(json)).toMatchObject({ isError: true, content: [{ type: "text", text: "it failed" }] });
  });

  it.each([
    [["--timeout", "0"], /--timeout must be more than 0/],
    [["--timeout", "soon"], /--timeout must be a whole number/],
    [["--reissue", "maybe"], /--reissue must be one of always, safe, never, not "maybe"/],
    [["--max-rounds", "-1"], /--max-rounds must be a whole number/],
    [["--log-level", "loud"], /--log-level must be one of debug/],
    [["--force"], /--force goes with --suspend/],
    [["--sample"], /--sample needs a terminal/],
  ])("2: %j", async (argv, message) => {
    const { code, stdout, stderr } = await run(["call", server.url, "echo", ...argv]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(message);
  });

  it("3 MRTR-13: without a way to answer nothing is declared, and the server's refusal is explained", async () => {
    const plain = await run(["call", server.url, "deploy"]);
    expect(plain).toMatchObject({ code: 3, stdout: "" });
    expect(plain.stderr).toMatch(
      /^mcp-rally: the tool deploy needs input \(elicitation\), and this command line has no way to give it\. Run it on a terminal.*--answer.*--decline.*--suspend FILE/,
    );
    const json = await run(["call", server.url, "deploy", "--json"]);
    expect(json.code).toBe(3);
    expect(document(json)).toMatchObject({
      error: { code: "input-needed", keys: [], requiredCapabilities: { elicitation: {} } },
    });
  });

  it("3 MRTR-13: a server that asks all the same is refused, with the key", async () => {
    const { code, stderr, requests } = await onPeer(ALWAYS_ASKS, ["call", "URL", "any"]);
    expect(code).toBe(3);
    expect(stderr).toContain(
      'the tool any asks for an elicitation under the key "again", and this command line has no way to answer it',
    );
    expect(requests).toHaveLength(1);
  });

  it("3 MRTR-14: what is missing is named, with its fields and a way to answer", async () => {
    const script: Script = (_request, exchange) =>
      exchange.result(
        inputRequired({
          inputRequests: {
            who: elicitForm("Who are\u001b[2J you?", {
              type: "object",
              properties: {
                name: { type: "string", title: "Your name", minLength: 2 },
                plan: { type: "string", enum: ["free", "team"], default: "team" },
                age: { type: "integer", minimum: 18 },
              },
              required: ["name", "age"],
            }),
            "it's": elicitUrl("Sign in", "https://example.com/in?a=1"),
            given: elicitForm("Given?"),
          },
        }),
      );
    const argv = ["call", "URL", "any", "--answer", 'given={"ok":true}'];
    const plain = await onPeer(script, argv);
    expect(plain.code).toBe(3);
    expect(plain.requests).toHaveLength(1);
    expect(plain.stderr).toBe(
      [
        'mcp-rally: the tool any needs input that was not given: "who", "it\'s". Nothing more was sent. Give each an --answer, or use --decline, or run it on a terminal, or keep the call for later with --suspend FILE.',
        '  "who" wants a form: Who are\\u{1b}[2J you?',
        "    name  text, at least 2 characters, required: Your name",
        '    plan  one of "free" | "team", optional',
        "    age  whole number, at least 18, required",
        `    --answer 'who={"name":"…","plan":"team","age":18}'`,
        '  "it\'s" wants a URL to visit: Sign in',
        "    https://example.com/in?a=1",
        "    --answer 'it'\\''s=accept'",
        "",
      ].join("\n"),
    );
    const json = await onPeer(script, [...argv, "--json"]);
    expect(document(json)).toMatchObject({
      error: {
        code: "input-needed",
        keys: ["who", "it's"],
        inputRequests: {
          who: { method: "elicitation/create" },
          "it's": { params: { url: "https://example.com/in?a=1" } },
        },
      },
    });
  });

  it("2 MRTR-15: an --answer that does not fit its form is a fault of the command line; its value is not shown", async () => {
    const plain = await run(["call", server.url, "deploy", "--answer", 'confirm={"ok":"s3cret"}']);
    expect(plain).toMatchObject({ code: 2, stdout: "" });
    expect(plain.stderr).toMatch(
      /the --answer for "confirm" does not fit: .*content\.ok must be true or false, not string/,
    );
    expect(plain.stderr).not.toContain("s3cret");
  });

  it("4: the server answered with an error", async () => {
    const ended = await run(["call", server.url, "no-such-tool", "--json"]);
    expect(ended.code).toBe(4);
    expect(document(ended)).toMatchObject({
      error: { code: "rpc", rpcCode: -32602, operation: { method: "tools/call", round: 1 } },
    });
  });

  it("4: an error's text of the server is harmless on the terminal", async () => {
    const script: Script = (_request, exchange) => exchange.error(-32000, "no\u001b[2J\u202e", { a: 1 });
    const { code, stderr } = await onPeer(script, ["call", "URL", "any"]);
    expect(code).toBe(4);
    expect(stderr).toBe(
      "mcp-rally: the server answered with an error: no\\u{1b}[2J\\u{202e} (code -32000)\n",
    );
  });

  it("4 HTTP-03: a 401 says how to give a token", async () => {
    const script: Script = (_request, exchange) => exchange.http({ status: 401, body: "who are you?" });
    const { code, stderr } = await onPeer(script, ["call", "URL", "any", "--reissue", "never"]);
    expect(code).toBe(4);
    expect(stderr).toContain("Give a token with --token-env VAR, or a header with --header.");
  });

  it("4 VER-02: a server of the older revisions is told from one that fails", async () => {
    const legacy = await startLegacyHttp();
    const ended = await run(["tools", legacy.url, "--json"]);
    expect(ended.code).toBe(4);
    expect(document(ended)).toMatchObject({ error: { code: "legacy-peer" } });
    await legacy.close();
  });

  it("4 STD-02: a server that ends shows its exit code and the end of its stderr", async () => {
    const { code, stderr } = await run([
      "call",
      "any",
      "--reissue",
      "never",
      "--",
      process.execPath,
      "-e",
      "console.error('boom\\u001b[2J'); process.exit(3)",
    ]);
    expect(code).toBe(4);
    expect(stderr).toMatch(/exited with code 3/);
    expect(stderr).toContain("The end of what it wrote to stderr:\n  boom\\u{1b}[2J\n");
  });

  it("4 TIM-01: a timeout names its option", async () => {
    const script: Script = () => {};
    expect((await onPeer(script, ["call", "URL", "any", "--attempt-timeout", "50"])).stderr).toContain(
      "the bound is --attempt-timeout",
    );
    const whole = await onPeer(script, ["call", "URL", "any", "--timeout", "50"]);
    expect(whole.stderr).toContain("the bound is --timeout");
    expect(whole.code).toBe(4);
  });

  it("4 MRTR-11: a server that asks for ever meets --max-rounds", async () => {
    const { code, stderr, requests } = await onPeer(ALWAYS_ASKS, [
      "call",
      "URL",
      "any",
      "--max-rounds",
      "2",
      "--answer",
      'again={"ok":true}',
    ]);
    expect(code).toBe(4);
    expect(requests).toHaveLength(3);
    expect(stderr).toContain("--max-rounds");
  });

  it("3 MRTR-21: a question that comes again and again after --decline", async () => {
    const ended = await onPeer(ALWAYS_ASKS, ["call", "URL", "any", "--decline", "--json"]);
    expect(ended.code).toBe(3);
    expect(document(ended)).toMatchObject({ error: { code: "input-repeated", keys: ["again"] } });
  });

  it("4 MRTR-16: a URL that must not be shown is the server's fault, also when it was agreed to beforehand", async () => {
    const script: Script = (_request, exchange) =>
      exchange.result(
        inputRequired({ inputRequests: { page: elicitUrl("Go", "http://user@evil.example/") } }),
      );
    const call = ["call", "URL", "any", "--answer", "page=accept"];
    expect(await onPeer(script, call)).toMatchObject({ code: 4, requests: { length: 1 } });
    const kept = await onPeer(script, [...call, "--suspend", join(folder, "page.json")]);
    expect(kept).toMatchObject({ code: 4, requests: { length: 1 } });
    expect(kept.stderr).toContain("it holds credentials");
  });

  it("4: an answer that is not one is told without a stack, and with one under --debug", async () => {
    const script: Script = (_request, exchange) => exchange.http({ body: "<html>" });
    const argv = ["call", "URL", "any", "--reissue", "never"];
    const plain = await onPeer(script, argv);
    expect(plain.code).toBe(4);
    expect(plain.stderr).not.toMatch(/^ {4}at /m);
    expect((await onPeer(script, [...argv, "--debug"])).stderr).toMatch(/^ {4}at /m);
  });
});

describe("answers on the command line", () => {
  it("MRTR-06: a confirmed tool completes over HTTP, and over stdio", async () => {
    const argv = ["deploy", "--answer", 'confirm={"ok":true}'];
    expect(await run(["call", server.url, ...argv])).toMatchObject({
      code: 0,
      stdout: "deployed\n",
      stderr: "",
    });
    const { command, args } = officialStdio();
    expect(await run(["call", ...argv, "--", command, ...args])).toMatchObject({
      code: 0,
      stdout: "deployed\n",
    });
  });

  it("MRTR-11: two rounds", async () => {
    const argv = [
      "call",
      server.url,
      "onboard",
      "--answer",
      'name={"name":"Ada"}',
      "--answer",
      'plan={"plan":"team"}',
    ];
    expect(await run(argv)).toMatchObject({ code: 0, stdout: "Ada is on the team plan\n" });
  });

  it("--decline declines", async () => {
    expect(await run(["call", server.url, "deploy", "--decline"])).toMatchObject({
      code: 0,
      stdout: "not deployed\n",
    });
    expect(await run(["call", server.url, "link", "--decline"])).toMatchObject({
      code: 0,
      stdout: "not visited\n",
    });
  });

  it("--root gives roots", async () => {
    const { code, stdout } = await run(
      ["call", server.url, "roots", "--root", ".", "--root", "file:///other"],
      { cwd: folder },
    );
    expect([code, stdout]).toEqual([0, `file://${folder} file:///other\n`]);
  });

  it("an answer that no question had is a warning", async () => {
    const { code, stderr } = await run([
      "call",
      server.url,
      "echo",
      "--arg",
      "text=x",
      "--answer",
      "nope=accept",
    ]);
    expect(code).toBe(0);
    expect(stderr).toBe(
      'mcp-rally: warning: the server never asked for "nope", so its --answer was not used\n',
    );
  });

  it("resources and prompts ask too", async () => {
    expect(await run(["read", server.url, "note://locked", "--answer", 'pin={"pin":"1234"}'])).toMatchObject({
      code: 0,
      stdout: "opened with 1234",
    });
    expect(
      await run(["prompt", server.url, "review", "--answer", 'language={"language":"Rust"}']),
    ).toMatchObject({ code: 0, stdout: "user: Review this Rust code\n" });
  });
});

describe("--trace", () => {
  it("prints one line for each attempt: operation, round, attempt, wire id, outcome, milliseconds", async () => {
    const { stdout, stderr } = await run([
      "call",
      server.url,
      "deploy",
      "--answer",
      'confirm={"ok":true}',
      "--trace",
      "--json",
    ]);
    expect(JSON.parse(stdout)).toMatchObject({ content: [{ text: "deployed" }] });
    expect(stderr.replace(/[\d.]+ms/g, "MS")).toBe(
      "trace op=1 tools/call round=1 attempt=1 id=1 input_required MS\ntrace op=1 tools/call round=2 attempt=2 id=2 complete MS\n",
    );
  });

  it("MRTR-18: tells what is known of an attempt that was lost", async () => {
    let calls = 0;
    const script: Script = (_request, exchange) =>
      ++calls === 1 ? exchange.crash() : exchange.result(complete("at last"));
    const { stdout, stderr } = await onPeer(script, ["call", "URL", "any", "--trace"]);
    expect(stdout).toBe("at last\n");
    expect(stderr).toMatch(
      /^trace op=1 tools\/call round=1 attempt=1 id=1 failure code=[a-z-]+ delivery=unknown [\d.]+ms\ntrace op=1 tools\/call round=1 attempt=2 id=2 complete [\d.]+ms\n$/,
    );
  });

  it("PRG-01: shows progress as lines; without it, and without a terminal, none is asked for", async () => {
    const argv = ["call", server.url, "slow", "--arg", "ms=20", "--arg", "steps=2"];
    const traced = await run([...argv, "--trace"]);
    expect(traced.stderr).toContain(
      "progress round=1 attempt=1 1/2 step 1\nprogress round=1 attempt=1 2/2 step 2\ntrace ",
    );
    expect((await run(argv)).stderr).toBe("");
  });

  it("LOG-01: --log-level shows the server's log", async () => {
    const { stderr } = await run(["call", server.url, "log", "--log-level", "warning"]);
    expect(stderr).toBe('log warning official: {"line":"warning"}\nlog error official: {"line":"error"}\n');
  });
});

describe("SAF-01", () => {
  it("no output shows a token, requestState or the content of an answer, whatever goes wrong", async () => {
    const answers = ["--answer", 'again={"ok":true}', "--answer", 'pin={"pin":"s3cret"}'];
    const argv = [
      "call",
      "URL",
      "any",
      "--max-rounds",
      "1",
      "--token-env",
      "T",
      "--trace",
      "--debug",
      ...answers,
    ];
    for (const more of [[], ["--json"], ["--suspend", join(folder, `saf-${Math.random()}.json`)]]) {
      const { stdout, stderr } = await onPeer(ALWAYS_ASKS, [...argv, ...more], { env: { T: "t0ken" } });
      expect(stdout + stderr).not.toMatch(/st4te|s3cret|t0ken/);
      expect(stdout + stderr).toContain("again");
    }
  });
});

describe("--suspend and resume", () => {
  const CONFIRMED = ["--answer", 'confirm={"ok":true}'];

  it("MRTR-20: a call is kept in a file of its owner, and goes on in another run, over another transport's process", async () => {
    const { command, args } = officialStdio();
    const kept = await run(["call", "deploy", "--suspend", "a.json", "--", command, ...args], {
      cwd: folder,
    });
    expect(kept).toMatchObject({ code: 3, stdout: "" });
    expect(kept.stderr).toContain('"confirm" wants a form: Deploy to production?');
    expect(kept.stderr).toContain("Go on with: mcp-rally resume a.json <target> --answer KEY=JSON");
    expect((await stat(join(folder, "a.json"))).mode & 0o777).toBe(0o600);
    expect((await readdir(folder)).filter((name) => name.endsWith(".tmp"))).toEqual([]);
    const resumed = await run(["resume", "a.json", ...CONFIRMED, "--trace", "--", command, ...args], {
      cwd: folder,
    });
    expect(resumed).toMatchObject({ code: 0, stdout: "deployed\n" });
    expect(resumed.stderr).toMatch(/^trace op=1 tools\/call round=2 [^\n]*\n$/);
  });

  it("MRTR-20: is refused for another server, before anything is sent, and goes on under the same --peer", async () => {
    await run(["call", server.url, "deploy", "--suspend", "b.json", "--peer", "deployer"], { cwd: folder });
    await using other = createScriptedPeer(complete("no"));
    const { url } = await other.http();
    const refused = await run(["resume", "b.json", url, ...CONFIRMED], { cwd: folder });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(/belongs to the server "deployer"/);
    expect(other.requests).toHaveLength(0);
    const resumed = await run(["resume", "b.json", server.url, ...CONFIRMED, "--peer", "deployer"], {
      cwd: folder,
    });
    expect(resumed).toMatchObject({ code: 0, stdout: "deployed\n" });
  });

  it("answers of the call count, round after round, until one is missing; the file is then the latest state", async () => {
    const kept = await run(
      ["call", server.url, "onboard", "--suspend", "c.json", "--json", "--answer", 'name={"name":"Ada"}'],
      { cwd: folder },
    );
    expect(kept.code).toBe(3);
    expect(document(kept)).toMatchObject({
      suspended: {
        file: "c.json",
        keys: ["plan"],
        inputRequests: { plan: { method: "elicitation/create" } },
      },
    });
    const before = await readFile(join(folder, "c.json"), "utf8");
    const still = await run(["resume", "c.json", server.url], { cwd: folder });
    expect(still.code).toBe(3);
    expect(await readFile(join(folder, "c.json"), "utf8")).toBe(before);
    const done = await run(["resume", "c.json", server.url, "--answer", 'plan={"plan":"free"}', "--json"], {
      cwd: folder,
    });
    expect(done.code).toBe(0);
    expect(document(done)).toMatchObject({ content: [{ text: "Ada is on the free plan" }] });
  });

  it("a resumed call that is asked more is kept in its own file, or in another", async () => {
    await run(["call", server.url, "onboard", "--suspend", "d.json"], { cwd: folder });
    const named = ["--answer", 'name={"name":"Bob"}'];
    const elsewhere = await run(["resume", "d.json", server.url, ...named, "--suspend", "e.json"], {
      cwd: folder,
    });
    expect(elsewhere.code).toBe(3);
    const again = await run(["resume", "d.json", server.url, ...named], { cwd: folder });
    expect(again.code).toBe(3);
    for (const file of ["d.json", "e.json"]) {
      const done = await run(["resume", file, server.url, "--answer", 'plan={"plan":"team"}'], {
        cwd: folder,
      });
      expect(done).toMatchObject({ code: 0, stdout: "Bob is on the team plan\n" });
    }
  });

  it("MRTR-09: rounds of state alone are gone through, also by hand", async () => {
    const { code, stdout } = await run(["call", server.url, "wait", "--suspend", "f.json"], { cwd: folder });
    expect([code, stdout]).toEqual([0, "waited\n"]);
    await expect(stat(join(folder, "f.json"))).rejects.toThrow(/ENOENT/);
  });

  it("MRTR-11: rounds that are used up leave the state in the file", async () => {
    const { code, stderr } = await onPeer(
      ALWAYS_ASKS,
      ["call", "URL", "any", "--max-rounds", "1", "--answer", 'again={"ok":true}', "--suspend", "g.json"],
      { cwd: folder },
    );
    expect(code).toBe(4);
    expect(stderr).toContain("the call is kept in g.json");
    expect(JSON.parse(await readFile(join(folder, "g.json"), "utf8"))).toMatchObject({
      version: 1,
      requestState: "st4te",
    });
  });

  it("a file that exists is not overwritten without --force, and the call is not made", async () => {
    await writeFile(join(folder, "mine.json"), "mine");
    const script: Script = ALWAYS_ASKS;
    const refused = await onPeer(script, ["call", "URL", "any", "--suspend", "mine.json"], { cwd: folder });
    expect(refused).toMatchObject({ code: 2, requests: { length: 0 } });
    expect(refused.stderr).toMatch(
      /mine\.json exists already; choose another name, or overwrite it with --force/,
    );
    expect(await readFile(join(folder, "mine.json"), "utf8")).toBe("mine");
    await chmod(join(folder, "mine.json"), 0o644);
    const forced = await onPeer(script, ["call", "URL", "any", "--suspend", "mine.json", "--force"], {
      cwd: folder,
    });
    expect(forced.code).toBe(3);
    expect((await stat(join(folder, "mine.json"))).mode & 0o777).toBe(0o600);
  });

  it.each([
    ["none.json", undefined, /cannot read none\.json: ENOENT/],
    ["cut.json", '{"version":1,', /cut\.json is not JSON: it ends at position 13/],
    ["old.json", '{"version":7}', /the continuation is of version 7/],
    ["odd.json", '{"version":1,"peer":"x"}', /the continuation is damaged at continuation\.method/],
  ])("%s cannot be resumed: exit code 2, nothing is sent", async (name, text, message) => {
    if (text !== undefined) await writeFile(join(folder, name), text);
    const { code, stderr, requests } = await onPeer(ALWAYS_ASKS, ["resume", name, "URL"], { cwd: folder });
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
    expect(requests).toHaveLength(0);
  });

  it("a folder that is not there is found out before the call", async () => {
    const { code, requests } = await onPeer(
      ALWAYS_ASKS,
      ["call", "URL", "any", "--suspend", "no/where.json"],
      { cwd: folder },
    );
    expect([code, requests.length]).toEqual([2, 0]);
  });
});
