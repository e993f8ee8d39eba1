import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  complete,
  createScriptedPeer,
  elicitForm,
  elicitUrl,
  inputRequired,
  listRoots,
  sample,
} from "../../src/testing/index.ts";
import { document, run } from "./harness.ts";

/** A peer whose tools tell what they got. */
const peer = createScriptedPeer(({ method, params }, exchange) => {
  if (method === "prompts/get") {
    const content = { type: "text", text: JSON.stringify(params.arguments ?? null) };
    return exchange.result({ resultType: "complete", messages: [{ role: "user", content }] });
  }
  if (params.name === "ask" && params.inputResponses === undefined) {
    return exchange.result(
      inputRequired({
        inputRequests: {
          form: elicitForm("Form?"),
          "a=b": elicitForm("Form?"),
          page: elicitUrl("Visit?", "https://example.com/"),
          line: sample("One line"),
          places: listRoots(),
        },
      }),
    );
  }
  exchange.result(complete(JSON.stringify(params.inputResponses ?? params.arguments ?? null)));
});
let url: string;
let folder: string;
beforeAll(async () => {
  ({ url } = await peer.http());
  folder = await mkdtemp(join(tmpdir(), "rally-values-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
  await peer.close();
});

async function argumentsOf(argv: readonly string[], stdin = ""): Promise<unknown> {
  const { code, stdout, stderr } = await run(["call", url, "echo", ...argv], { cwd: folder, stdin });
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return JSON.parse(stdout);
}

describe("the arguments of a tool", () => {
  it.each<[string[], unknown]>([
    [[], null],
    [["--args", '{"a":1}'], { a: 1 }],
    [["--args", '{"a":1,"b":2}', "--arg", "b=3", "--arg", "c=x"], { a: 1, b: 3, c: "x" }],
    [["--arg", "n=5", "--arg", "f=-1.5", "--arg", "e=1e3"], { n: 5, f: -1.5, e: 1000 }],
    [["--arg", "on=true", "--arg", "off=false", "--arg", "none=null"], { on: true, off: false, none: null }],
    [["--arg", 'list=["a"]', "--arg", 'map={"k":1}'], { list: ["a"], map: { k: 1 } }],
    [["--arg", "city=Brno", "--arg", "empty=", "--arg", "eq=a=b"], { city: "Brno", empty: "", eq: "a=b" }],
    [["--arg", 'zip="01234"', "--arg", "zip2=01234"], { zip: "01234", zip2: "01234" }],
    [["--arg", "id=12345678901234567890"], { id: "12345678901234567890" }],
    [["--arg", 'x:="text"', "--arg", "y:=7"], { x: "text", y: 7 }],
    [["--arg", '"a=b"=1'], { "a=b": 1 }],
  ])("%j", async (argv, expected) => {
    expect(await argumentsOf(argv)).toEqual(expected);
  });

  it("a name such as __proto__ is a name like any other", async () => {
    const { stdout } = await run([
      "call",
      url,
      "echo",
      "--arg",
      "__proto__=1",
      "--args",
      '{"constructor":2}',
    ]);
    expect(stdout).toBe('{"constructor":2,"__proto__":1}\n');
  });

  it("come from a file with @FILE and from stdin with @-", async () => {
    await writeFile(join(folder, "args.json"), '{"from":"file"}');
    expect(await argumentsOf(["--args", "@args.json"])).toEqual({ from: "file" });
    expect(await argumentsOf(["--args", "@-"], '{"from":"stdin"}')).toEqual({ from: "stdin" });
  });

  it.each<[string[], RegExp]>([
    [
      ["--args", '{"a":1,}'],
      /--args is not JSON: at position 7, expected a name in double quotes\n {2}\{"a":1,\}\n {9}\^/,
    ],
    [["--args", "[1]"], /--args must be a JSON object such as .*, not array/],
    [["--args", "@none.json"], /--args: cannot read none\.json: ENOENT/],
    [["--arg", "x:=Brno"], /--arg x is not JSON: at position 0/],
    [["--arg", "novalue"], /--arg must be written as NAME=VALUE; there is no =/],
    [["--arg", "=x"], /there is no name/],
  ])("%j is exit code 2, and nothing is sent", async (argv, message) => {
    const sent = peer.requests.length;
    const { code, stdout, stderr } = await run(["call", url, "echo", ...argv], { cwd: folder });
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(message);
    expect(peer.requests.length).toBe(sent);
  });

  it("a fault in JSON has its position in the --json document", async () => {
    const ended = await run(["call", url, "echo", "--args", '{"a":1,\n"b":}', "--json"]);
    expect(ended.code).toBe(2);
    expect(document(ended)).toEqual({
      error: {
        code: "usage",
        message:
          "--args is not JSON: at position 12 (line 2, column 5), expected a JSON value (text needs double quotes)",
        path: "--args",
        position: 12,
        expected: "a JSON value (text needs double quotes)",
      },
    });
  });

  it("of a prompt are always text", async () => {
    const { stdout } = await run(["prompt", url, "p", "--arg", "n=5", "--arg", "b=true", "--arg", "t=x y"]);
    expect(stdout).toBe('user: {"n":"5","b":"true","t":"x y"}\n');
  });
});

describe("answers", () => {
  const complete = [
    "--answer",
    "form=accept",
    "--answer",
    '"a=b"=decline',
    "--answer",
    "page=cancel",
    "--answer",
    'line="la la"',
    "--answer",
    'places=["file:///a"]',
  ];
  it("MRTR-05: short forms stand for whole results", async () => {
    const { code, stdout } = await run([
      "call",
      url,
      "ask",
      ...complete.map((part) => part.replace("form=accept", 'form={"ok":true}')),
    ]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      form: { action: "accept", content: { ok: true } },
      "a=b": { action: "decline" },
      page: { action: "cancel" },
      line: {
        role: "assistant",
        content: { type: "text", text: "la la" },
        model: "user",
        stopReason: "endTurn",
      },
      places: { roots: [{ uri: "file:///a" }] },
    });
  });

  it("whole results go as they are", async () => {
    const results = {
      form: { action: "accept", content: { ok: false } },
      page: { action: "accept" },
      line: { role: "assistant", content: { type: "text", text: "x" }, model: "m" },
      places: { roots: [{ uri: "file:///a", name: "A" }] },
    };
    const given = Object.entries(results).flatMap(([key, result]) => [
      "--answer",
      `${key}=${JSON.stringify(result)}`,
    ]);
    const { stdout } = await run(["call", url, "ask", ...given, "--decline"]);
    expect(JSON.parse(stdout)).toEqual({ ...results, "a=b": { action: "decline" } });
  });

  it("SAF-01: the text of an answer that is not JSON is not shown", async () => {
    const { code, stderr } = await run(["call", url, "ask", "--answer", 'form={"pin":"s3cret",}']);
    expect(code).toBe(2);
    expect(stderr).toBe(
      "mcp-rally: --answer form is not JSON: at position 16, expected a name in double quotes\n",
    );
  });

  it("come from a file with KEY=@FILE", async () => {
    await writeFile(join(folder, "form.json"), '{"ok":true}');
    const { stdout } = await run(
      [
        "call",
        url,
        "ask",
        "--decline",
        "--root",
        folder,
        "--answer",
        "form=@form.json",
        "--answer",
        'line="x"',
      ],
      { cwd: folder },
    );
    expect(JSON.parse(stdout)).toMatchObject({
      form: { action: "accept", content: { ok: true } },
      page: { action: "decline" },
    });
  });

  it.each<[string[], RegExp]>([
    [["--answer", 'form="text"', "--decline"], /--answer "form" must be the content of the form/],
    [["--answer", 'page={"ok":true}', "--decline"], /--answer "page" must be accept, decline or cancel/],
    [["--answer", "form=accept", "--answer", "form=decline"], /gives the key "form" twice/],
    [["--root", "/no/such/folder"], /--root \/no\/such\/folder: there is no such directory/],
  ])("%j does not fit: exit code 2", async (argv, message) => {
    const { code, stderr } = await run([
      "call",
      url,
      "ask",
      "--answer",
      'line="x"',
      "--answer",
      "places=[]",
      ...argv,
    ]);
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
  });
});
