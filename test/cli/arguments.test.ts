import { describe, expect, it } from "vitest";
import { nearest, readArguments } from "../../src/cli/arguments.ts";
import { type Command, TARGET } from "../../src/cli/command.ts";
import { COMMANDS } from "../../src/cli/command-table.ts";
import { run } from "./harness.ts";

const command: Command = {
  name: "test",
  summary: "A command",
  positionals: [TARGET, "<tool>"],
  options: {
    flag: { help: "a flag" },
    text: { takes: "TEXT", short: "t", help: "one" },
    many: { takes: "TEXT", multiple: true, help: "many" },
    config: { takes: "FILE", help: "a file" },
    count: { takes: "N", help: "a number" },
  },
  run: async () => 0,
};

describe("arguments", () => {
  it("reads options, positionals and the command after --", () => {
    const args = readArguments(command, [
      "--flag",
      "-t",
      "a",
      "do",
      "--many=x=1",
      "--many",
      "-5",
      "--",
      "node",
      "--flag",
      "--",
    ]);
    expect(args.has("flag")).toBe(true);
    expect(args.text("text")).toBe("a");
    expect(args.texts("many")).toEqual(["x=1", "-5"]);
    expect(args.target).toBeUndefined();
    expect(args.positional("<tool>")).toBe("do");
    expect(args.server).toEqual(["node", "--flag", "--"]);
  });

  it("takes the target as a positional where it is given in no other way", () => {
    const byUrl = readArguments(command, ["https://example.com/", "do"]);
    expect([byUrl.target, byUrl.positional("<tool>")]).toEqual(["https://example.com/", "do"]);
    const byConfig = readArguments(command, ["--config", "mcp.json", "do"]);
    expect([byConfig.target, byConfig.positional("<tool>")]).toEqual([undefined, "do"]);
  });

  it("the last of an option that can be given once is the one that counts", () => {
    expect(readArguments(command, ["u:", "do", "--text", "a", "--text", "b"]).texts("text")).toEqual(["b"]);
  });

  it.each([
    [["u:", "do", "--flog"], /unknown option "--flog"\. Did you mean --flag\?/],
    [["u:", "do", "-x"], /unknown option "-x"/],
    [["u:", "do", "--text"], /--text needs a value \(TEXT\)/],
    [["u:", "do", "--text", "--flag"], /--text needs a value/],
    [["u:", "do", "--flag=1"], /--flag takes no value/],
    [["u:"], /test needs <target> and <tool>, and one argument was given; <target> is a URL, or --config/],
    [["--", "node"], /test needs <tool>, and nothing was given/],
    [["u:", "do", "more"], /there are 3 arguments, and test takes <target> and <tool>/],
    [["u:", "do", "--", "node"], /the server is given by a command after --, so what is left is <tool>/],
  ])("%j says what is wrong", (argv, message) => {
    expect(() => readArguments(command, argv)).toThrow(message);
  });

  it.each(["1.5", "-1", "", "ten", "1e3", "99999999999999999999"])("a count is not %j", (text) => {
    const args = readArguments(command, ["u:", "do", `--count=${text}`]);
    expect(() => args.count("count")).toThrow(/--count must be a whole number/);
  });

  it("suggests only what is like the name", () => {
    expect(nearest("jsn", ["json", "trace"])).toBe("json");
    expect(nearest("tim", ["timeout"])).toBe("timeout");
    expect(nearest("zzz", ["json", "trace"])).toBeUndefined();
  });
});

describe("help", () => {
  it("names every command, and every option of each", async () => {
    const { code, stdout } = await run(["--help"]);
    expect(code).toBe(0);
    for (const { name, summary, options } of COMMANDS) {
      expect(stdout).toContain(`${name.padEnd(9)}  ${summary}`);
      const own = await run([name, "--help"]);
      expect(own.code).toBe(0);
      expect(await run(["help", name])).toEqual(own);
      for (const option of Object.keys(options)) expect(own.stdout).toContain(`--${option}`);
    }
  });

  it("no command is exit code 2, with the help on stderr", async () => {
    const { code, stdout, stderr } = await run([]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("Usage: mcp-rally <command>");
  });

  it.each([["cal"], ["--json"], ["cal", "--json"]])("%j is no command: exit code 2", async (...argv) => {
    const { code, stdout, stderr } = await run(argv);
    expect(code).toBe(2);
    expect(stdout + stderr).toContain("The commands are call, resume");
  });

  it("--version prints the version of package.json", async () => {
    const { default: manifest } = await import("../../package.json", { with: { type: "json" } });
    expect(await run(["--version"])).toMatchObject({ code: 0, stdout: `${manifest.version}\n` });
  });
});
