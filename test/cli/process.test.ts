import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { complete, createScriptedPeer } from "../../src/testing/index.ts";
import { officialStdio } from "../support/servers.ts";
import { KEY, onTerminal } from "./harness.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MAIN = join(ROOT, "src/cli/main.ts");
// `npm test` builds first: what is started here is what users start.
const PROGRAM = [process.execPath, join(ROOT, "dist/src/cli/main.js")];
const STARTS_WITHIN_MS = 15_000;

/** A process that runs the executable, and what it wrote so far. */
interface Spawned {
  readonly child: ChildProcess;
  readonly output: { stdout: string; stderr: string };
  /** Resolves when stdout shows `text` after what was shown when it was last asked. */
  shows(text: string): Promise<void>;
  readonly ended: Promise<number | null>;
}

/** What a failed test left running: the end of a pseudo-terminal hangs up on what runs there. */
const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill();
});

function start(command: string, args: readonly string[]): Spawned {
  const child = spawn(command, args, {
    cwd: ROOT,
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, NO_COLOR: "1", TERM: "xterm" },
  });
  running.add(child);
  child.on("close", () => running.delete(child));
  const output = { stdout: "", stderr: "" };
  let mark = 0;
  let look = () => {};
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    output.stdout += text;
    look();
  });
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    output.stderr += text;
  });
  const ended = new Promise<number | null>((resolveEnd) => child.on("close", resolveEnd));
  return {
    child,
    output,
    shows: (text) =>
      new Promise((resolveShown, reject) => {
        const timer = setTimeout(
          () => reject(new Error(`"${text}" was not shown: ${output.stdout.slice(mark)}${output.stderr}`)),
          STARTS_WITHIN_MS,
        );
        look = () => {
          const at = output.stdout.indexOf(text, mark);
          if (at === -1) return;
          mark = at + text.length;
          clearTimeout(timer);
          resolveShown();
        };
        look();
      }),
    ended,
  };
}

function startCli(...args: string[]): Spawned {
  return start(PROGRAM[0]!, [...PROGRAM.slice(1), ...args]);
}

const { command, args } = officialStdio();
const SERVER = ["--", command, ...args];

describe("the executable", () => {
  it("prints one JSON document, exits by itself, and leaves no server behind", {
    timeout: 20_000,
  }, async () => {
    const { output, ended, child } = startCli("call", "inspect", "--json", ...SERVER);
    child.stdin!.end();
    expect(await ended).toBe(0);
    expect(output.stderr).toBe("");
    const { content } = JSON.parse(output.stdout) as { content: [{ text: string }] };
    const { pid } = JSON.parse(content[0].text) as { pid: number };
    expect(() => process.kill(pid, 0)).toThrow(/ESRCH/);
  });

  it("CAN-02: SIGINT cancels the call on the wire, ends the server, and exits with 130", {
    timeout: 20_000,
  }, async () => {
    await using peer = createScriptedPeer(() => {});
    const server = await peer.stdio();
    const { child, output, ended } = startCli("call", "slow", "--", server.command, ...server.args);
    await peer.waitFor(1, STARTS_WITHIN_MS);
    child.kill("SIGINT");
    expect(await ended).toBe(130);
    expect(peer.cancelled).toHaveLength(1);
    expect(output).toEqual({
      stdout: "",
      stderr: "mcp-rally: interrupted; what was running was cancelled\n",
    });
  });

  it("ends quietly when its reader has seen enough", { timeout: 20_000 }, async () => {
    await using peer = createScriptedPeer(complete("a line\n".repeat(100_000)));
    const { url } = await peer.http();
    const { child, output, ended } = start("sh", [
      "-c",
      '"$@" | head -n 1',
      "sh",
      ...PROGRAM,
      "call",
      url,
      "much",
    ]);
    child.stdin!.end();
    expect(await ended).toBe(0);
    expect(output).toEqual({ stdout: "a line\n", stderr: "" });
  });

  it("B185: starting up loads no transport, no prompt library and no validator", () => {
    const reached = new Set<string>();
    const visit = (file: string) => {
      if (reached.has(file)) return;
      reached.add(file);
      if (!file.endsWith(".ts")) return;
      const source = readFileSync(file, "utf8");
      for (const [, clause, specifier] of source.matchAll(
        /^(?:import|export) ([^"']*?)(?:from )?["']([^"']+)["'];$/gm,
      )) {
        if (clause!.startsWith("type ")) continue;
        visit(specifier!.startsWith(".") ? resolve(dirname(file), specifier!) : specifier!);
      }
    };
    visit(MAIN);
    const names = [...reached].map((file) => file.replace(`${ROOT}/`, "").replace(ROOT, ""));
    expect(names).toContain("src/cli/commands/call.ts");
    expect(names.filter((name) => !name.startsWith("src/cli/") && !name.startsWith("node:"))).not.toEqual(
      expect.arrayContaining([
        expect.stringMatching(
          /^(@clack|undici|ws$|ajv|eventsource)|transports\/(http|stdio|websocket)|src\/(client|engine)\.ts/,
        ),
      ]),
    );
  });
});

const SCRIPT = ["/usr/bin/script", "/bin/script"].find(
  (path) => process.platform === "linux" && existsSync(path),
);

/** Runs the executable on a pseudo-terminal, where there is a program that makes one; else in here, on a stand-in. */
describe("the executable on a terminal", () => {
  it("asks a form, sends what was typed, and gives the terminal back", { timeout: 30_000 }, async () => {
    if (SCRIPT === undefined) {
      const terminal = onTerminal(["call", "deploy", ...SERVER]);
      await terminal.shows("Confirm");
      terminal.press(KEY.left, KEY.enter);
      await terminal.shows("Send this answer?");
      terminal.press(KEY.enter);
      expect(await terminal.ended).toMatchObject({ code: 0, stdout: "deployed\n" });
      expect(terminal.isRaw).toBe(false);
      return;
    }
    const line = `${[...PROGRAM, "call", "deploy", ...SERVER].map((part) => `'${part}'`).join(" ")}; echo "code=$?"; stty -a`;
    const { child, output, shows, ended } = start(SCRIPT, ["-qefc", line, "/dev/null"]);
    await shows("Deploy to production?");
    await shows("Confirm");
    child.stdin!.write(KEY.left + KEY.enter);
    await shows("Send this answer?");
    child.stdin!.write(KEY.enter);
    await shows("deployed");
    await shows("code=0");
    expect(await ended).toBe(0);
    // The terminal reads whole lines and echoes again, and its cursor can be seen.
    expect(output.stdout).toMatch(/[^-]icanon/);
    expect(output.stdout).toMatch(/[^-]echo /);
    expect(output.stdout.lastIndexOf("\u001b[?25h")).toBeGreaterThan(
      output.stdout.lastIndexOf("\u001b[?25l"),
    );
  });

  it("Ctrl-C in a form exits with 130, and gives the terminal back", { timeout: 30_000 }, async () => {
    if (SCRIPT === undefined) {
      const terminal = onTerminal(["call", "deploy", ...SERVER]);
      await terminal.shows("Confirm");
      terminal.press(KEY.ctrlC);
      expect(await terminal.ended).toMatchObject({ code: 130 });
      expect(terminal.isRaw).toBe(false);
      return;
    }
    const line = `${[...PROGRAM, "call", "deploy", ...SERVER].map((part) => `'${part}'`).join(" ")}; echo "code=$?"; stty -a`;
    const { child, output, shows, ended } = start(SCRIPT, ["-qefc", line, "/dev/null"]);
    await shows("Confirm");
    child.stdin!.write(KEY.ctrlC);
    await shows("interrupted; what was running was cancelled");
    await shows("code=130");
    expect(await ended).toBe(0);
    expect(output.stdout).toMatch(/[^-]icanon/);
  });
});
