import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { ClosedError, ConnectError, ConnectionLostError, LimitError, UsageError } from "../../src/errors.ts";
import type { Transport } from "../../src/transport.ts";
import { type StdioOptions, stdioTransport } from "../../transports/stdio.ts";
import { type Recorder, record } from "./recorder.ts";

const SERVER = fileURLToPath(new URL("../fixtures/stdio-server.mjs", import.meta.url));

const open: Transport[] = [];
const uncaught: unknown[] = [];
process.on("uncaughtExceptionMonitor", (error) => uncaught.push(error));

afterEach(async () => {
  await Promise.all(open.splice(0).map((transport) => transport.close()));
  expect(uncaught).toEqual([]);
});

function start(
  options: Partial<StdioOptions> & { flags?: string[]; messageBytes?: number } = {},
): Recorder & { transport: Transport } {
  const { flags = [], messageBytes, ...more } = options;
  const transport = stdioTransport({
    command: process.execPath,
    args: [SERVER, ...flags],
    closeGraceMs: 1000,
    killGraceMs: 1000,
    ...more,
  });
  open.push(transport);
  return Object.assign(record(transport, messageBytes), { transport });
}

/** Whether a process runs. An orphan that has ended may stay in the process table where no init process reaps. */
function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !/\) [ZX] /.test(stat);
  } catch (error) {
    return (error as { path?: string }).path !== undefined && process.platform !== "linux";
  }
}

async function untilGone(pid: number): Promise<void> {
  while (alive(pid)) await new Promise((resolve) => setTimeout(resolve, 5));
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const answer = (id: number | string, result: object): string =>
  `${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`;

describe("messages", () => {
  it("STD-01: requests go out in order and their answers come back, over one lazily started process", async () => {
    const { send, links, transport } = start();
    expect(links).toEqual([]);
    const calls = [send("echo", { n: 1 }), send("echo", { text: "é€😀\u2028" }), send("pid")];
    expect(await calls[0]!.result).toEqual({ n: 1 });
    expect(await calls[1]!.result).toEqual({ text: "é€😀\u2028" });
    const { pid } = await send("pid").result;
    expect(await calls[2]!.result).toEqual({ pid });
    expect(links).toEqual(["connecting", "up"]);
    await transport.close();
    expect(links).toEqual(["connecting", "up", "closed"]);
  });

  it("STD-01 B121: answers written byte by byte, or three in one write, arrive whole and once", async () => {
    const { send, anomalies } = start();
    const silent = [send("silent"), send("silent"), send("silent")];
    const three = silent.map(({ id }) => answer(id, { text: "é😀" })).join("");
    send("raw", { base64: base64(three) });
    for (const call of silent) expect(await call.result).toEqual({ text: "é😀" });
    const slow = send("silent");
    send("raw", { base64: base64(answer(slow.id, { text: "é😀" }).replace("\n", "\r\n")), each: true });
    expect(await slow.result).toEqual({ text: "é😀" });
    expect(anomalies).toEqual([]);
  });

  it("STD-01 B122 B124: noise on stdout is told in bounds, and the answer behind it arrives", async () => {
    const { send, anomalies } = start();
    const call = send("silent");
    const noise = `Starting…\n\n   \n\u001b[2J\n123\n"x"\n[]\nnull\n${"debug line\n".repeat(1000)}`;
    send("raw", { base64: base64(noise + answer(call.id, { fine: true })) });
    expect(await call.result).toEqual({ fine: true });
    expect(new Set(anomalies.map(({ kind }) => kind))).toEqual(new Set(["bad-frame"]));
    expect(anomalies.length).toBeLessThan(30);
  });

  it("STD-01: a line that is not UTF-8 is an anomaly, and the next one is read", async () => {
    const { send, anomalies } = start();
    const call = send("silent");
    const bytes = Buffer.concat([Buffer.from([0x22, 0xff, 0x22, 0x0a]), Buffer.from(answer(call.id, {}))]);
    send("raw", { base64: bytes.toString("base64") });
    expect(await call.result).toEqual({});
    expect(anomalies).toMatchObject([{ kind: "bad-frame", detail: { bytes: 3 } }]);
  });

  it("STD-01: an answer of several MiB arrives whole", async () => {
    const { send } = start();
    const { text } = await send("big", { chars: 3_000_000 }).result;
    expect(text).toBe("é".repeat(3_000_000));
  });

  it("LIM-01 B119: an endless line ends the link with a LimitError for everyone, and the next call starts anew", async () => {
    const { send, links } = start({ messageBytes: 1_000_000 });
    const other = send("silent");
    const { pid } = await send("pid").result;
    const flood = send("flood");
    for (const call of [other, flood]) {
      const { error } = await call.failure;
      expect(error).toBeInstanceOf(LimitError);
      expect(error).toMatchObject({ limit: "messageBytes", allowed: 1_000_000, delivery: "unknown" });
    }
    expect((await send("pid").result).pid).not.toBe(pid);
    expect(alive(pid as number)).toBe(false);
    expect(links).toEqual(["connecting", "up", "down", "connecting", "up"]);
  });

  it("CAN-02 B074: the server sees one cancelled for a written request and nothing of one that was not", async () => {
    const { send } = start();
    send("never").handle.cancel("changed my mind");
    const call = send("silent");
    await send("echo").result;
    call.handle.cancel("enough");
    const { seen } = (await send("seen").result) as { seen: { method: string; params: unknown }[] };
    expect(seen.map(({ method }) => method)).toEqual(["silent", "echo", "notifications/cancelled", "seen"]);
    expect(seen[2]!.params).toEqual({ requestId: call.id, reason: "enough" });
  });

  it("CAN-02: a process is not even started for a request that is cancelled in its own turn", async () => {
    const { send, links, until } = start();
    send("never").handle.cancel("changed my mind");
    await Promise.resolve();
    expect(links).toEqual([]);
    await send("echo").result;
    await until(() => links.includes("up"));
  });

  it("WS-02 B136: requests to a server that does not read stay with us, bounded, and can still be dropped", async () => {
    const { send, until, links } = start({
      args: ["-e", "setInterval(() => {}, 1000)"],
      outboundBytes: 4_000_000,
      closeGraceMs: 50,
    });
    const calls = Array.from({ length: 10 }, () => send("echo", { text: "x".repeat(1_000_000) }));
    await until(() => links.includes("up"));
    const refused = calls.filter(({ ends }) => ends.length > 0);
    expect(refused.length).toBeGreaterThanOrEqual(4);
    for (const call of refused)
      expect((await call.failure).error).toMatchObject({ code: "limit", delivery: "not-sent" });
    calls[2]!.handle.cancel("enough");
    expect(calls[2]!.ends).toEqual([]);
  });
});

describe("stderr", () => {
  it("STD-01 B116: a server that writes a mebibyte to stderr first is not blocked, with or without a reader", async () => {
    for (const onStderr of [undefined, () => {}]) {
      const { send } = start({ onStderr });
      expect(await send("stderr", { text: "0123456789abcdef", times: 65_536 }).result).toEqual({});
    }
  });

  it("STD-01 B116: onStderr gets the text; one that throws is an anomaly and breaks nothing", async () => {
    let text = "";
    const { send, anomalies, until } = start({
      onStderr: (piece) => {
        text += piece;
        throw new Error("boom");
      },
    });
    await send("stderr", { text: "waiting for é\n" }).result;
    await until(() => anomalies.length > 0);
    expect(await send("echo").result).toEqual({});
    expect(text).toBe("waiting for é\n");
    expect(anomalies[0]).toMatchObject({ kind: "host-callback", detail: { callback: "onStderr" } });
  });

  it("STD-02: the end of stderr is in the error, however much came before", async () => {
    const { send } = start();
    await send("stderr", { text: "é", times: 100_000 }).result;
    const { error } = await send("exit", { code: 3, stderr: "\nfatal: no database\n" }).failure;
    const { stderr } = error as ConnectionLostError;
    expect(stderr!.endsWith("é\nfatal: no database\n")).toBe(true);
    expect(stderr!.length).toBeLessThanOrEqual(8192);
    expect(stderr).not.toContain("\ufffd");
  });
});

describe("loss of the process", () => {
  const ends: { name: string; method: string; params?: object; details: object; message: RegExp }[] = [
    {
      name: "exits with 0",
      method: "exit",
      params: { code: 0 },
      details: { exitCode: 0 },
      message: /exited with code 0/,
    },
    {
      name: "exits with 1",
      method: "exit",
      params: { code: 1 },
      details: { exitCode: 1 },
      message: /exited with code 1/,
    },
    {
      name: "is killed",
      method: "kill",
      params: { signal: "SIGKILL" },
      details: { signal: "SIGKILL" },
      message: /was ended by SIGKILL/,
    },
    {
      name: "closes its stdout and stays",
      method: "close-stdout",
      details: {},
      message: /closed its stdout/,
    },
  ];
  for (const { name, method, params, details, message } of ends) {
    it(`STD-02 B112 B113: when it ${name}, all pending exchanges fail at once and the next starts it again`, async () => {
      const { send, links, causes } = start({ closeGraceMs: 50 });
      const { pid } = await send("pid").result;
      const pending = [send("silent"), send("silent"), send(method, { ...params })];
      const asked = performance.now();
      for (const call of pending) {
        const { error, delivery } = await call.failure;
        expect(error).toBeInstanceOf(ConnectionLostError);
        expect(error).toMatchObject({ ...details, delivery: "unknown" });
        expect(error.message).toMatch(message);
        expect(delivery).toBe("unknown");
      }
      expect(performance.now() - asked).toBeLessThan(1000);
      expect((await send("pid").result).pid).not.toBe(pid);
      expect(links).toEqual(["connecting", "up", "down", "connecting", "up"]);
      expect(causes[2]).toBeInstanceOf(ConnectionLostError);
      expect(alive(pid as number)).toBe(false);
    });
  }

  it("STD-02: an answer written just before the exit is delivered, not lost", async () => {
    const { send } = start();
    for (let index = 0; index < 3; index++) {
      const [last, lost] = [send("exit", { code: 0, answer: true }), send("silent")];
      expect(await last.result).toEqual({ last: true });
      expect((await lost.failure).delivery).toBe("unknown");
    }
  });

  it("STD-02 B112: a grandchild that holds the pipes does not hold up the failure, and is ended before the restart", async () => {
    const { send } = start({ closeGraceMs: 50 });
    const grandchild = (await send("grandchild").result).pid as number;
    const { error } = await send("exit", { code: 9 }).failure;
    expect(error).toMatchObject({ code: "connection-lost", exitCode: 9 });
    await send("echo").result;
    expect(alive(grandchild)).toBe(false);
  });

  it("STD-02 B125: a server that closes its stdin costs errors, never an uncaught one", async () => {
    const { send } = start({ closeGraceMs: 50 });
    await send("echo").result;
    const first = send("close-stdin");
    const calls = [first, ...Array.from({ length: 100 }, () => send("echo"))];
    const later = setInterval(() => calls.push(send("echo")), 5);
    expect((await first.failure).error).toBeInstanceOf(ConnectionLostError);
    clearInterval(later);
    first.handle.cancel("after the end");
    for (const call of calls) await Promise.race([call.failure, call.result]).catch(() => {});
    expect(await send("echo").result).toEqual({});
  });

  it("STD-02 B125: a server that exits at its start fails a hundred requests with its exit code and stderr", async () => {
    const { send } = start({ flags: ["--exit-at-start"] });
    const calls = Array.from({ length: 100 }, () => send("echo", { text: "x".repeat(10_000) }));
    for (const call of calls) {
      const { error } = await call.failure;
      expect(error).toMatchObject({ code: "connection-lost", exitCode: 7, stderr: "no licence\n" });
    }
  });

  it("STD-02 B130: killed between calls, it is started once for however many calls come next", async () => {
    const { send, links, until } = start();
    const pid = (await send("pid").result).pid as number;
    process.kill(pid, "SIGKILL");
    await until(() => links.includes("down"));
    const pids = await Promise.all(
      [send("pid"), send("pid"), send("pid")].map(async (call) => (await call.result).pid),
    );
    expect(new Set(pids).size).toBe(1);
    expect(pids[0]).not.toBe(pid);
  });

  it("STD-02: restarts in a row wait longer each time; sustained uptime begins anew", async () => {
    const delays: number[] = [];
    const { send } = start({ restart: { initialMs: 60, maxMs: 200, sustainedMs: 10_000 } });
    for (let index = 0; index < 4; index++) {
      const asked = performance.now();
      await send("echo").result;
      delays.push(performance.now() - asked);
      await send("exit", { code: 1 }).failure;
    }
    // Jitter takes away at most a half: the third start waits 30 to 60 ms, the fourth 60 to 120 ms.
    expect(delays[2]).toBeGreaterThan(30);
    expect(delays[3]).toBeGreaterThan(60);
  });

  it("STD-02: requests that are cancelled during the wait start nothing", async () => {
    const { send, links, until } = start({ restart: { initialMs: 40 } });
    for (let index = 0; index < 2; index++) await send("exit", { code: 1 }).failure;
    const call = send("echo");
    call.handle.cancel("enough");
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(links.filter((state) => state === "connecting")).toHaveLength(2);
    expect(await send("echo").result).toEqual({});
    await until(() => links.filter((state) => state === "connecting").length === 3);
  });

  it("STD-02: with restart false, later calls fail with the loss and are not sent", async () => {
    const { send, links } = start({ restart: false });
    await send("exit", { code: 4 }).failure;
    const { error, delivery } = await send("echo").failure;
    expect(error).toMatchObject({ code: "connection-lost", exitCode: 4, delivery: "not-sent" });
    expect(delivery).toBe("not-sent");
    expect(links).toEqual(["connecting", "up", "down"]);
  });
});

describe("a process that cannot be started", () => {
  const cases: { name: string; options: Partial<StdioOptions>; message: RegExp }[] = [
    {
      name: "no such command",
      options: { command: "no-such-command-here" },
      message: /"no-such-command-here".*ENOENT.*PATH/,
    },
    { name: "not executable", options: { command: SERVER }, message: /EACCES.*permission/ },
    { name: "a folder", options: { command: "/tmp" }, message: /EACCES.*directory/ },
    {
      name: "no such cwd",
      options: { cwd: "/no/such/folder" },
      message: /working directory "\/no\/such\/folder"/,
    },
    {
      name: "PATH taken away",
      options: { command: "node", env: { PATH: "/nowhere" } },
      message: /ENOENT.*PATH/,
    },
    { name: "a NUL in an argument", options: { args: ["a\0b"] }, message: /could not start/ },
  ];
  for (const { name, options, message } of cases) {
    it(`STD-02: ${name} is a ConnectError that says what to check; every waiting call gets it`, async () => {
      const { send, links } = start(options);
      for (const call of [send("echo"), send("echo")]) {
        const { error, delivery } = await call.failure;
        expect(error).toBeInstanceOf(ConnectError);
        expect(error.message).toMatch(message);
        expect([delivery, error.delivery]).toEqual(["not-sent", "not-sent"]);
      }
      expect(links).toEqual(["connecting", "down"]);
    });
  }

  it("options that cannot work are a UsageError at once", () => {
    expect(() => stdioTransport({ command: "" })).toThrow(UsageError);
    expect(() => stdioTransport({ command: "node", args: [1 as unknown as string] })).toThrow(/args\[0\]/);
  });
});

describe("close", () => {
  it("STD-03: a server that exits on the end of its stdin is not signalled; pending exchanges fail as closed", async () => {
    const { send, transport, links } = start();
    const pid = (await send("pid").result).pid as number;
    const call = send("silent");
    await send("echo").result;
    const closing = transport.close();
    expect((await call.failure).error).toBeInstanceOf(ClosedError);
    expect((await call.failure).delivery).toBe("unknown");
    await closing;
    expect(alive(pid)).toBe(false);
    expect(links.at(-1)).toBe("closed");
    expect(transport.close()).toBe(transport.close());
  });

  const stubborn: { name: string; flags: string[]; minMs: number }[] = [
    { name: "ignores the end of its stdin", flags: ["--ignore-eof"], minMs: 100 },
    { name: "ignores the end of its stdin and SIGTERM", flags: ["--ignore-end"], minMs: 200 },
  ];
  for (const { name, flags, minMs } of stubborn) {
    it(`STD-03 B115: a server that ${name} is ended within the budget`, async () => {
      const { send, transport } = start({ flags, closeGraceMs: 100, killGraceMs: 100 });
      const pid = (await send("pid").result).pid as number;
      const asked = performance.now();
      await transport.close();
      const took = performance.now() - asked;
      expect(alive(pid)).toBe(false);
      expect(took).toBeGreaterThanOrEqual(minMs - 5);
      expect(took).toBeLessThan(1200);
    });
  }

  it("STD-03: what the server started is ended with it, also when it ignores SIGTERM", async () => {
    const { send, transport } = start({ closeGraceMs: 50, killGraceMs: 50 });
    const pid = (await send("grandchild", { stubborn: true }).result).pid as number;
    await transport.close();
    expect(alive(pid)).toBe(false);
  });

  it("STD-02 STD-03 B130: after close nothing is started; calls fail as closed and not sent", async () => {
    const { send, transport, links } = start();
    await send("echo").result;
    await transport.close();
    const { error, delivery } = await send("echo").failure;
    expect(error).toBeInstanceOf(ClosedError);
    expect(delivery).toBe("not-sent");
    expect(links).toEqual(["connecting", "up", "closed"]);
  });

  it("STD-03: closed before the first call, in its turn, and while a restart waits", async () => {
    const unused = start();
    await unused.transport.close();
    expect(unused.links).toEqual(["closed"]);

    const early = start();
    const call = early.send("echo");
    await early.transport.close();
    expect((await call.failure).delivery).toBe("not-sent");
    expect(early.links).toEqual(["closed"]);

    const waiting = start({ restart: { initialMs: 60_000 } });
    for (let index = 0; index < 2; index++) await waiting.send("exit", { code: 1 }).failure;
    const queued = waiting.send("echo");
    await waiting.transport.close();
    expect((await queued.failure).error).toBeInstanceOf(ClosedError);
  });

  it("STD-03: closed while what starts a server is being loaded, it starts none", async () => {
    const folder = await mkdtemp(join(tmpdir(), "rally-stdio-"));
    const mark = join(folder, "started");
    const program = `require("node:fs").writeFileSync(${JSON.stringify(mark)}, "")`;
    const { send, links, transport } = start({ args: ["-e", program] });
    const call = send("echo");
    await Promise.resolve(); // the link is opened one turn after the request
    expect(links).toEqual(["connecting"]);
    await transport.close();
    expect((await call.failure).error).toBeInstanceOf(ClosedError);
    expect(existsSync(mark)).toBe(false);
    await rm(folder, { recursive: true });
  });

  it("STD-03: closed from inside a link callback, it still leaves no process", async () => {
    const transport = stdioTransport({ command: process.execPath, args: [SERVER] });
    open.push(transport);
    let closing: Promise<void> | undefined;
    transport.attach({
      limits: { messageBytes: 1000 },
      notification: () => {},
      anomaly: () => {},
      link: (state) => {
        if (state === "up") closing = transport.close();
      },
    });
    const { failure } = record({ exchange: (frame, sink) => transport.exchange(frame, sink) }).send("pid");
    expect((await failure).error).toBeInstanceOf(ClosedError);
    await closing;
  });

  it("STD-03: a host that exits without close takes the whole group down; the exit hook is gone after a close", async () => {
    const before = process.listenerCount("exit");
    const { send, transport } = start();
    await send("echo").result;
    expect(process.listenerCount("exit")).toBe(before + 1);
    await transport.close();
    expect(process.listenerCount("exit")).toBe(before);

    const host = fileURLToPath(new URL("../fixtures/stdio-host.ts", import.meta.url));
    const stdout = await new Promise<string>((resolve, reject) => {
      execFile(process.execPath, ["--import", "tsx", host, SERVER], (error, out) =>
        error ? reject(error) : resolve(out),
      );
    });
    const pids = JSON.parse(stdout) as number[];
    expect(pids).toHaveLength(2);
    for (const pid of pids) await untilGone(pid);
  });
});

describe("environment", () => {
  const inherited = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"];
  const cases: { name: string; env: StdioOptions["env"]; more: object }[] = [
    { name: "no env", env: undefined, more: {} },
    { name: "an empty env", env: {}, more: {} },
    { name: "an env", env: { A: "1", SHELLSHOCK: "() { :;}; true", GONE: undefined }, more: { A: "1" } },
  ];
  for (const { name, env, more } of cases) {
    it(`STD-04 B127: with ${name}, the server gets the short list and what was given, nothing else`, async () => {
      process.env.RALLY_TEST_SECRET = "secret";
      process.env.TERM = "() { :;}";
      const { send } = start({ env });
      const seen = (await send("env").result).env as Record<string, string>;
      const expected: Record<string, string | undefined> = { ...more };
      for (const key of inherited) if (process.env[key] && key !== "TERM") expected[key] = process.env[key];
      expect(seen).toEqual(expected);
    });
  }

  it("STD-04: env takes precedence, and cwd is where the server runs", async () => {
    const { send } = start({ env: { HOME: "/elsewhere", USER: undefined }, cwd: "/" });
    const seen = (await send("env").result).env as Record<string, string>;
    expect(seen.HOME).toBe("/elsewhere");
    expect("USER" in seen).toBe(false);
    expect((await send("cwd").result).cwd).toBe("/");
  });
});

describe("peer", () => {
  const cases: [command: string, args: string[], peer: string][] = [
    ["/usr/bin/node", ["/srv/app/server.mjs", "--token", "hunter2"], "node server.mjs"],
    ["python3", ["server.py", "hunter2"], "python3 server.py"],
    [
      "npx",
      ["-y", "@modelcontextprotocol/server-everything", "hunter2"],
      "npx @modelcontextprotocol/server-everything",
    ],
    ["uvx", ["mcp-server-git@1.2.3"], "uvx mcp-server-git@1.2.3"],
    ["deploy-server", ["hunter2"], "deploy-server"],
    ["node", ["--eval", "hunter2.js"], "node"],
    ["sh", ["-c", "TOKEN=hunter2 ./server.sh"], "sh"],
  ];
  for (const [command, args, peer] of cases) {
    it(`SAF-01: ${command} ${args.join(" ")} is called "${peer}"`, () => {
      expect(stdioTransport({ command, args }).peer).toBe(peer);
    });
  }
});
