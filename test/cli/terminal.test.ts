import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  complete,
  createScriptedPeer,
  elicitForm,
  elicitUrl,
  inputRequired,
  type Script,
  sample,
} from "../../src/testing/index.ts";
import { KEY, onTerminal, run, type Terminal } from "./harness.ts";

const FORM = {
  type: "object",
  properties: {
    name: { type: "string", title: "Your\u001b[2J name", description: "As on the ticket", minLength: 2 },
    mail: { type: "string", format: "email" },
    age: { type: "integer", minimum: 18, maximum: 99, default: 30 },
    news: { type: "boolean", title: "Newsletter" },
    agree: { type: "boolean", title: "Agree" },
    plan: {
      type: "string",
      oneOf: [
        { const: "f", title: "Free" },
        { const: "t", title: "Team" },
      ],
      default: "t",
    },
    tags: { type: "array", items: { type: "string", enum: ["a", "b", "c"] }, minItems: 2 },
  },
  required: ["name", "age", "agree", "tags"],
};

/** A peer that asks once, and gives back what it was answered. */
function asking(inputRequests: unknown): Script {
  return ({ params }, exchange) => {
    const { inputResponses } = params;
    exchange.result(
      inputResponses === undefined
        ? inputRequired({ inputRequests })
        : complete(JSON.stringify(inputResponses)),
    );
  };
}

/** Opens a terminal on a call to a scripted peer, and sees to it that the terminal is left as it was. */
async function ask(
  script: Script,
  argv: readonly string[],
  use: (terminal: Terminal, requests: readonly unknown[]) => Promise<void>,
) {
  await using peer = createScriptedPeer(script);
  const { url } = await peer.http();
  const terminal = onTerminal(["call", url, "deploy", ...argv]);
  await use(terminal, peer.requests);
  await terminal.ended;
  expect(terminal.isRaw).toBe(false);
  expect(terminal.cursorIsHidden).toBe(false);
}

/** The answers that came back. */
async function answersOf({ ended }: Terminal): Promise<unknown> {
  const { code, stdout } = await ended;
  expect(code).toBe(0);
  return JSON.parse(stdout);
}

describe("a form on a terminal", () => {
  it("MRTR-15: every kind of field is asked, checked in place, and reviewed before it is sent", () =>
    ask(asking({ trip: elicitForm("Fill\u202e this in", FORM) }), [], async (terminal) => {
      await terminal.shows("deploy");
      expect(terminal.screen).toMatch(
        /http:\/\/127\.0\.0\.1:\d+\/mcp asks you to fill in a form \(question "trip" of tools\/call deploy\)/,
      );
      expect(terminal.screen).toContain("Fill\\u{202e} this in");
      await terminal.shows("Your\\u{1b}[2J name (As on the ticket; text, at least 2 characters)");
      terminal.press("A", KEY.enter);
      await terminal.shows("This must be at least 2 characters long");
      terminal.press("da", KEY.enter);
      await terminal.shows("mail, optional (email)");
      terminal.press("nope", KEY.enter);
      await terminal.shows("This must be an email address");
      terminal.press(KEY.backspace, KEY.backspace, KEY.backspace, KEY.backspace, KEY.enter);
      await terminal.shows("age (whole number, 18 to 99)");
      expect(terminal.screen).toMatch(/age[^\n]*\n[^\n]*30/);
      terminal.press(KEY.backspace, "x", KEY.enter);
      await terminal.shows("This must be a number");
      terminal.press(KEY.backspace, "00", KEY.enter);
      await terminal.shows("This must be 99 or less");
      terminal.press(KEY.backspace, KEY.backspace, "5", KEY.enter);
      await terminal.shows("Newsletter, optional");
      terminal.press(KEY.enter);
      await terminal.shows("Agree");
      terminal.press(KEY.left, KEY.enter);
      await terminal.shows("plan, optional");
      terminal.press(KEY.enter);
      await terminal.shows("tags (space chooses, at least 2)");
      terminal.press(" ", KEY.enter);
      await terminal.shows("This must have at least 2 items");
      terminal.press(KEY.down, KEY.down, " ", KEY.enter);
      await terminal.shows("Send this answer?");
      expect(terminal.screen).toContain("Your\\u{1b}[2J name: Ada");
      expect(terminal.screen).toContain('tags: ["a","c"]');
      terminal.press(KEY.enter);
      expect(await answersOf(terminal)).toEqual({
        trip: {
          action: "accept",
          content: { name: "Ada", age: 35, agree: true, plan: "t", tags: ["a", "c"] },
        },
      });
      // biome-ignore lint/suspicious/noControlCharactersInRegex: nothing of the server may reach the terminal as it is
      expect(terminal.screen).not.toMatch(/[\u001b\u202e]/);
    }));

  it("a required yes or no begins at no", () =>
    ask(asking({ sure: elicitForm("Delete everything?") }), [], async (terminal) => {
      await terminal.shows("OK");
      terminal.press(KEY.enter);
      await terminal.shows("Send this answer?");
      terminal.press(KEY.enter);
      expect(await answersOf(terminal)).toEqual({ sure: { action: "accept", content: { ok: false } } });
    }));

  it("what was filled in can be changed before it is sent", () =>
    ask(asking({ sure: elicitForm("Sure?") }), [], async (terminal) => {
      await terminal.shows("OK");
      terminal.press(KEY.enter);
      await terminal.shows("Send this answer?");
      terminal.press(KEY.down, KEY.enter);
      await terminal.shows("OK");
      terminal.press(KEY.left, KEY.enter);
      await terminal.shows("Send this answer?");
      terminal.press(KEY.enter);
      expect(await answersOf(terminal)).toEqual({ sure: { action: "accept", content: { ok: true } } });
    }));

  it.each([
    ["decline", [KEY.down, KEY.enter]],
    ["cancel", [KEY.down, KEY.down, KEY.enter]],
    ["cancel", [KEY.escape]],
  ])("Escape leaves it: to %s", (action, keys) =>
    ask(asking({ trip: elicitForm("Fill this in", FORM) }), [], async (terminal) => {
      await terminal.shows("name");
      terminal.press(KEY.escape);
      await terminal.shows("Leave the form?");
      terminal.press(...keys);
      expect(await answersOf(terminal)).toEqual({ trip: { action } });
    }),
  );

  it("Escape and back: what was filled in is still there", () =>
    ask(
      asking({
        trip: elicitForm("Go", {
          type: "object",
          properties: { a: { type: "string" }, b: { type: "string" } },
        }),
      }),
      [],
      async (terminal) => {
        await terminal.shows("a, optional");
        terminal.press("first", KEY.enter);
        await terminal.shows("b, optional");
        terminal.press(KEY.escape);
        await terminal.shows("Leave the form?");
        terminal.press(KEY.enter);
        await terminal.shows("first");
        terminal.press(KEY.enter);
        await terminal.shows("b, optional");
        terminal.press(KEY.enter);
        await terminal.shows("Send this answer?");
        terminal.press(KEY.enter);
        expect(await answersOf(terminal)).toEqual({ trip: { action: "accept", content: { a: "first" } } });
      },
    ));

  it("a form without fields is a question by itself", () =>
    ask(asking({ go: elicitForm("Go on?", { type: "object", properties: {} }) }), [], async (terminal) => {
      await terminal.shows("Send this answer?");
      terminal.press(KEY.enter);
      expect(await answersOf(terminal)).toEqual({ go: { action: "accept", content: {} } });
    }));

  it("a field beyond the plain kinds is asked as JSON, and the whole form is checked before it is sent", () => {
    const schema = {
      type: "object",
      properties: { code: { type: "string", pattern: "^[a-z]+$" } },
      required: ["code", "__proto__"],
    };
    return ask(asking({ odd: elicitForm("Odd", schema) }), [], async (terminal) => {
      await terminal.shows("code");
      terminal.press("A1", KEY.enter);
      await terminal.shows("__proto__");
      terminal.press("x", KEY.enter);
      await terminal.shows("This must be JSON");
      terminal.press(KEY.backspace, "1", KEY.enter);
      await terminal.shows("Send this answer?");
      terminal.press(KEY.enter);
      await terminal.shows("code must match the pattern");
      terminal.press(KEY.backspace, KEY.backspace, "ok", KEY.enter);
      await terminal.shows("__proto__");
      terminal.press(KEY.enter);
      await terminal.shows("Send this answer?");
      terminal.press(KEY.enter);
      const { stdout } = await terminal.ended;
      expect(stdout).toContain('{"odd":{"action":"accept","content":{"code":"ok","__proto__":1}}}');
    });
  });

  it("several questions are asked one after the other; those with an --answer are not asked", () =>
    ask(
      asking({ one: elicitForm("First?"), two: elicitForm("Second?"), three: elicitForm("Third?") }),
      ["--answer", "two=decline"],
      async (terminal) => {
        await terminal.shows("First?");
        expect(terminal.screen).not.toContain("Third?");
        terminal.press(KEY.enter);
        await terminal.shows("Send this answer?");
        terminal.press(KEY.enter);
        await terminal.shows("Third?");
        terminal.press(KEY.enter);
        await terminal.shows("Send this answer?");
        terminal.press(KEY.enter);
        const refused = { action: "accept", content: { ok: false } };
        expect(await answersOf(terminal)).toEqual({
          one: refused,
          two: { action: "decline" },
          three: refused,
        });
        expect(terminal.screen).not.toContain("Second?");
      },
    ));

  it("prompts are on stderr: stdout stays one document under --json", () =>
    ask(asking({ sure: elicitForm("Sure?") }), ["--json"], async (terminal) => {
      await terminal.shows("OK");
      terminal.press(KEY.enter);
      await terminal.shows("Send this answer?");
      terminal.press(KEY.enter);
      const { stdout } = await terminal.ended;
      expect(JSON.parse(stdout)).toMatchObject({ resultType: "complete" });
    }));

  it("--no-input asks nothing", () =>
    ask(asking({ sure: elicitForm("Sure?") }), ["--no-input"], async (terminal, requests) => {
      expect(await terminal.ended).toMatchObject({ code: 3 });
      expect(requests).toHaveLength(1);
    }));
});

describe("a URL on a terminal", () => {
  const PAGE = "https://xn--pple-43d.com/sign-in?flow=1";

  it("MRTR-16: is shown whole, its host apart, with a warning about look-alikes; Enter alone does not agree", () =>
    ask(asking({ page: elicitUrl("Sign in", PAGE) }), [], async (terminal) => {
      await terminal.shows("Do you agree to visit this page?");
      expect(terminal.screen).toContain("asks you to visit a page");
      expect(terminal.screen).toContain("Host: xn--pple-43d.com\n");
      expect(terminal.screen).toContain(`URL:  ${PAGE}\n`);
      expect(terminal.screen).toContain("punycode");
      terminal.press(KEY.enter);
      expect(await answersOf(terminal)).toEqual({ page: { action: "decline" } });
    }));

  it.each([
    ["accept", [KEY.up, KEY.enter]],
    ["cancel", [KEY.escape]],
  ])("MRTR-16: the user can %s", (action, keys) =>
    ask(asking({ page: elicitUrl("Sign in", "https://example.com/") }), [], async (terminal) => {
      await terminal.shows("Do you agree to visit this page?");
      expect(terminal.screen).not.toContain("punycode");
      terminal.press(...keys);
      expect(await answersOf(terminal)).toEqual({ page: { action } });
    }),
  );
});

describe("sampling on a terminal", () => {
  it("is answered by the user with --sample", () =>
    ask(asking({ line: sample("Write\u001b[2J a line") }), ["--sample"], async (terminal) => {
      await terminal.shows("Your message (at most 100 tokens");
      expect(terminal.screen).toContain("user: Write\\u{1b}[2J a line");
      terminal.press("roses", KEY.enter);
      expect(await answersOf(terminal)).toMatchObject({
        line: { role: "assistant", content: { text: "roses" }, model: "user" },
      });
    }));

  it("MRTR-13: is not declared without it", () =>
    ask(asking({ line: sample("Write a line") }), [], async (terminal, requests) => {
      expect(await terminal.ended).toMatchObject({ code: 3 });
      expect(JSON.stringify(requests[0])).not.toContain('"sampling"');
    }));
});

describe("interrupting", () => {
  it("MRTR-17: Ctrl-C in a form ends the call with 130, sends nothing more, and restores the terminal", () =>
    ask(asking({ trip: elicitForm("Fill this in", FORM) }), ["--trace"], async (terminal, requests) => {
      await terminal.shows("name");
      expect(terminal.isRaw).toBe(true);
      terminal.press("A", KEY.ctrlC);
      const { code, stdout, stderr } = await terminal.ended;
      expect([code, stdout]).toEqual([130, ""]);
      expect(stderr).toContain("interrupted; what was running was cancelled");
      expect(terminal.screen).not.toContain("Leave the form?");
      expect(requests).toHaveLength(1);
    }));

  it("a signal while a form is shown does the same, and so does a terminal that goes away", async () => {
    for (const end of [
      (terminal: Terminal) => terminal.signal(143),
      (terminal: Terminal) => terminal.hangUp(),
    ]) {
      await ask(asking({ one: elicitForm("First?"), two: elicitForm("Second?") }), [], async (terminal) => {
        await terminal.shows("OK");
        end(terminal);
        expect([130, 143]).toContain((await terminal.ended).code);
        expect(terminal.screen).not.toContain("Second?");
      });
    }
  });

  it("CAN-01: a signal while the call runs cancels it on the wire; a second one ends the process at once", async () => {
    await using peer = createScriptedPeer(() => {});
    const { url } = await peer.http();
    const terminal = onTerminal(["call", url, "slow"]);
    await peer.waitFor(1);
    terminal.signal(130);
    terminal.signal(130);
    expect(terminal.exits).toEqual([130]);
    expect(await terminal.ended).toMatchObject({ code: 130 });
    await peer.waitForCancelled(1);
  });
});

describe("progress on a terminal", () => {
  it("PRG-01: is a bar on stderr that is gone before anything else is shown", async () => {
    const script: Script = ({ meta }, exchange) => {
      for (const progress of [1, 2])
        exchange.notify("notifications/progress", {
          progressToken: meta.progressToken,
          progress,
          total: 2,
          message: "work",
        });
      exchange.result(complete("done"));
    };
    await ask(script, [], async (terminal) => {
      const { stdout, stderr } = await terminal.ended;
      expect(stdout).toBe("done\n");
      expect(terminal.screen).toContain("[########################] 100%  work");
      expect(stderr.endsWith("\r\u001b[2K")).toBe(true);
    });
  });
});

describe("resume on a terminal", () => {
  it("MRTR-20: asks what the file leaves open", async () => {
    const folder = await mkdtemp(join(tmpdir(), "rally-terminal-"));
    const file = join(folder, "call.json");
    await using peer = createScriptedPeer(asking({ sure: elicitForm("Sure?") }));
    const { url } = await peer.http();
    expect(await run(["call", url, "deploy", "--suspend", file])).toMatchObject({ code: 3 });
    const terminal = onTerminal(["resume", file, url]);
    await terminal.shows("Sure?");
    terminal.press(KEY.left, KEY.enter);
    await terminal.shows("Send this answer?");
    terminal.press(KEY.enter);
    expect(await answersOf(terminal)).toEqual({ sure: { action: "accept", content: { ok: true } } });
    await rm(folder, { recursive: true });
  });
});
