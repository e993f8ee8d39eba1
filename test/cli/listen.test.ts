import { PassThrough } from "node:stream";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { main } from "../../src/cli/app.ts";
import { type Client, createClient } from "../../src/client.ts";
import { createScriptedPeer } from "../../src/testing/scripted-peer.ts";
import { httpTransport } from "../../transports/http.ts";
import { acknowledge, change, endGracefully } from "../client/subscription-rig.ts";
import { type StartedServer, startOfficialHttp } from "../support/servers.ts";

/** What one run of the command line wrote, as it goes on. */
interface Run {
  readonly exit: Promise<number>;
  /** Resolves when stdout holds `text`. */
  told(text: string): Promise<void>;
  /** Resolves when stderr holds `text`. */
  noted(text: string): Promise<void>;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Ctrl-C. */
  interrupt(): void;
}

function listen(...argv: string[]): Run {
  const out = new Collector();
  const err = new Collector();
  let interrupt = (_code: number) => {};
  const exit = main(["listen", ...argv], {
    stdin: new PassThrough(),
    stdout: out.stream,
    stderr: err.stream,
    env: {},
    cwd: process.cwd(),
    onSignal(listener) {
      interrupt = listener;
      return () => {};
    },
    exit: () => {},
  });
  return {
    exit,
    told: (text) => out.holds(text),
    noted: (text) => err.holds(text),
    stdout: () => out.text,
    stderr: () => err.text,
    interrupt: () => interrupt(130),
  };
}

class Collector {
  readonly stream = new PassThrough();
  text = "";
  readonly #waiting = new Set<() => void>();

  constructor() {
    this.stream.on("data", (bytes) => {
      this.text += String(bytes);
      for (const wake of [...this.#waiting]) wake();
    });
  }

  holds(text: string): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!this.text.includes(text)) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }
}

describe("mcp-rally listen, with the official server", () => {
  let server: StartedServer;
  let other: Client;
  beforeAll(async () => {
    server = await startOfficialHttp();
    other = createClient({
      transport: httpTransport(server.url),
      info: { name: "other", version: "1.0.0" },
    });
    return async () => {
      await other.close();
      await server.close();
    };
  });
  const touch = (what: string) => other.callTool("touch", { what });

  it("SUB-01: shows a line for each change of any list, and ends after --count", async () => {
    const run = listen(server.url, "--count", "3");
    await run.noted("listening");
    for (const what of ["tools", "resource", "prompts", "resources"]) await touch(what);
    expect(await run.exit).toBe(0);
    expect(run.stdout()).toBe("tools/list_changed\nprompts/list_changed\nresources/list_changed\n");
  });

  it("SUB-01: --uri alone asks for one resource, and --json prints a document a line", async () => {
    const run = listen(server.url, "--uri", "note://plain", "--json", "--count", "1");
    await run.noted("listening");
    for (const what of ["tools", "resource"]) await touch(what);
    expect(await run.exit).toBe(0);
    expect(JSON.parse(run.stdout())).toMatchObject({
      type: "notification",
      method: "notifications/resources/updated",
      params: { uri: "note://plain" },
    });
  });

  it("SUB-01: Ctrl-C ends it with exit code 130", async () => {
    const run = listen(server.url, "--tools");
    await run.noted("listening");
    await touch("tools");
    await run.told("tools/list_changed");
    run.interrupt();
    expect(await run.exit).toBe(130);
    expect(run.stdout()).toBe("tools/list_changed\n");
  });
});

describe("mcp-rally listen, with a server that plays a script", () => {
  const closers: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0)) await close();
  });

  async function serve(script: Parameters<typeof createScriptedPeer>[0]): Promise<string> {
    const peer = createScriptedPeer(script);
    closers.push(() => peer.close());
    return (await peer.http({ answer: "sse" })).url;
  }

  it("SUB-01: a graceful end is exit code 0; what is refused is told", async () => {
    const url = await serve((request, exchange) => {
      acknowledge(request, exchange, { toolsListChanged: true });
      change(request, exchange);
      endGracefully(request, exchange);
    });
    const run = listen(url, "--tools", "--prompts");
    expect(await run.exit).toBe(0);
    expect(run.stdout()).toBe("tools/list_changed\n");
    expect(run.stderr()).toContain("the server does not tell of promptsListChanged");
    expect(run.stderr()).toContain("the server ended the subscription");
  });

  it("SUB-01 B065: with nothing acknowledged there is nothing to wait for", async () => {
    const url = await serve((request, exchange) => acknowledge(request, exchange, {}));
    expect(await listen(url).exit).toBe(4);
    const run = listen(url, "--json");
    expect(await run.exit).toBe(4);
    expect(JSON.parse(run.stdout())).toMatchObject({ error: { code: "refused" } });
  });

  it("SUB-01 B062: a server without subscriptions is exit code 4", async () => {
    const url = await serve((_request, exchange) => exchange.error(-32601, "Method not found"));
    const run = listen(url);
    expect(await run.exit).toBe(4);
    expect(run.stderr()).toContain("The server does not have this feature");
  });

  it("SUB-01: an option of calls is not an option here", async () => {
    expect(await listen("http://127.0.0.1:1/mcp", "--timeout", "5").exit).toBe(2);
  });
});
