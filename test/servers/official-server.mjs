/**
 * An MCP server made with the official package: every feature that the engine has to get along with, one tool each.
 * Plain JavaScript, so that a test's child process starts without a compiler.
 */

import { createHash } from "node:crypto";
import {
  createRequestStateCodec,
  fromJsonSchema,
  inputRequired,
  inputResponse,
  McpServer,
  ResourceTemplate,
} from "@modelcontextprotocol/server";

/** Signed with a key that all processes share, so that a round trip may begin in one process and end in another. */
const states = createRequestStateCodec({ key: createHash("sha256").update("official-server").digest() });

/** Ids of the `slow` calls that were cancelled in this process. */
const cancelledCalls = [];
/** How many times each tool ran in this process: every round counts. */
const runs = new Map();

const CONFIRM = {
  type: "object",
  properties: { ok: { type: "boolean", title: "Confirm" } },
  required: ["ok"],
};

function text(value) {
  return { content: [{ type: "text", text: value }] };
}

function object(properties = {}, required = []) {
  return fromJsonSchema({ type: "object", properties, required });
}

function oneText(name, title) {
  return {
    type: "object",
    properties: { [name]: { type: "string", title, minLength: 1 } },
    required: [name],
  };
}

/**
 * Builds one instance. `notify` publishes change events where instances are too short-lived to do it (HTTP); without it the
 * instance publishes its own.
 */
export function buildServer({ notify } = {}) {
  const server = new McpServer(
    { name: "official-server", version: "1.0.0", title: "Official test server" },
    {
      capabilities: { logging: {}, completions: {}, resources: { subscribe: true, listChanged: true } },
      instructions: "A server for tests.",
      requestState: { verify: states.verify },
      cacheHints: { "tools/list": { ttlMs: 60_000, cacheScope: "public" } },
    },
  );
  addAskingTools(server);
  addPlainTools(server);
  addChangeTools(server, notify);
  addPrompts(server);
  addResources(server);
  addCompletions(server);
  return server;
}

/** Registers a tool whose runs are counted. */
function tool(server, name, config, handler) {
  server.registerTool(name, { inputSchema: object(), ...config }, (args, context) => {
    runs.set(name, (runs.get(name) ?? 0) + 1);
    return handler(args, context.mcpReq, context);
  });
}

function addAskingTools(server) {
  tool(
    server,
    "deploy",
    {
      description: "Deploys after a confirmation",
      inputSchema: object({ env: { type: "string" } }),
      annotations: { destructiveHint: true },
    },
    ({ env = "production" }, { inputResponses }) => {
      const answer = inputResponse(inputResponses, "confirm");
      if (answer.kind === "missing") {
        const confirm = inputRequired.elicit({ message: `Deploy to ${env}?`, requestedSchema: CONFIRM });
        return inputRequired({ inputRequests: { confirm } });
      }
      return text(answer.action === "accept" && answer.content.ok ? "deployed" : "not deployed");
    },
  );

  tool(server, "onboard", { description: "Asks a name, then a plan" }, async (_args, request) => {
    const { inputResponses } = request;
    const state = request.requestState();
    if (state?.name !== undefined) {
      const plan = inputResponse(inputResponses, "plan");
      if (plan.action === "accept") return text(`${state.name} is on the ${plan.content.plan} plan`);
    } else {
      const name = inputResponse(inputResponses, "name");
      if (name.kind === "missing") {
        const ask = inputRequired.elicit({ message: "Your name?", requestedSchema: oneText("name", "Name") });
        return inputRequired({ inputRequests: { name: ask }, requestState: await states.mint({ step: 1 }) });
      }
      if (name.action === "accept") {
        const plans = { type: "string", title: "Plan", enum: ["free", "team"], default: "free" };
        const requestedSchema = { type: "object", properties: { plan: plans }, required: ["plan"] };
        const plan = inputRequired.elicit({ message: `Which plan, ${name.content.name}?`, requestedSchema });
        const requestState = await states.mint({ name: name.content.name });
        return inputRequired({ inputRequests: { plan }, requestState });
      }
    }
    return text("not onboarded");
  });

  tool(server, "forever", { description: "Asks again and again" }, async (_args, request) => {
    const round = (request.requestState()?.round ?? 0) + 1;
    const again = inputRequired.elicit({ message: `Round ${round}?`, requestedSchema: CONFIRM });
    return inputRequired({ inputRequests: { again }, requestState: await states.mint({ round }) });
  });

  tool(server, "wait", { description: "Answers with state alone for two rounds" }, async (_args, request) => {
    const round = request.requestState()?.round ?? 0;
    if (round >= 2) return text("waited");
    return inputRequired({ requestState: await states.mint({ round: round + 1 }) });
  });

  tool(server, "sample", { description: "Asks the host's model" }, (_args, { inputResponses }) => {
    const answer = inputResponse(inputResponses, "poem");
    if (answer.kind === "sampling") {
      return text(`${answer.result.model} says: ${answer.result.content.text}`);
    }
    const poem = inputRequired.createMessage({
      messages: [{ role: "user", content: { type: "text", text: "Write a poem" } }],
      systemPrompt: "You are a poet.",
      maxTokens: 50,
    });
    return inputRequired({ inputRequests: { poem } });
  });

  tool(server, "roots", { description: "Asks for the host's roots" }, (_args, { inputResponses }) => {
    const answer = inputResponse(inputResponses, "roots");
    if (answer.kind === "roots") return text(answer.roots.map((root) => root.uri).join(" "));
    return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
  });

  tool(server, "link", { description: "Sends the user to a page" }, (_args, { inputResponses }) => {
    const answer = inputResponse(inputResponses, "visit");
    if (answer.kind === "elicit") return text(answer.action === "accept" ? "visited" : "not visited");
    const visit = inputRequired.elicitUrl({ message: "Sign in", url: "https://example.com/sign-in?flow=1" });
    return inputRequired({ inputRequests: { visit } });
  });

  tool(server, "survey", { description: "Asks four things in one round" }, (_args, { inputResponses }) => {
    const keys = ["mood", "site", "line", "places"];
    const views = keys.map((key) => inputResponse(inputResponses, key));
    if (views.every((view) => view.kind !== "missing")) {
      return text(views.map((view) => view.kind).join(" "));
    }
    return inputRequired({
      inputRequests: {
        mood: inputRequired.elicit({ message: "Mood?", requestedSchema: oneText("mood", "Mood") }),
        site: inputRequired.elicitUrl({ message: "Visit", url: "https://example.com/" }),
        line: inputRequired.createMessage({
          messages: [{ role: "user", content: { type: "text", text: "One line" } }],
          maxTokens: 10,
        }),
        places: inputRequired.listRoots(),
      },
    });
  });
}

function addPlainTools(server) {
  tool(
    server,
    "echo",
    { description: "Gives the text back", inputSchema: object({ text: { type: "string" } }, ["text"]) },
    (args) => text(args.text),
  );

  tool(server, "fail", { description: "Fails as a tool fails" }, () => ({
    ...text("it failed"),
    isError: true,
  }));

  tool(
    server,
    "slow",
    {
      description: "Reports progress `steps` times in `ms` milliseconds, then completes",
      inputSchema: object({ ms: { type: "integer" }, steps: { type: "integer" } }),
    },
    async ({ ms = 100, steps = 4 }, { id, _meta, notify, signal }) => {
      const progressToken = _meta?.progressToken;
      for (let step = 1; step <= steps; step++) {
        if (!(await sleep(ms / steps, signal))) {
          cancelledCalls.push(id);
          return text("cancelled");
        }
        if (progressToken === undefined) continue;
        const params = { progressToken, progress: step, total: steps, message: `step ${step}` };
        await notify({ method: "notifications/progress", params });
      }
      return text("slow but sure");
    },
  );

  tool(
    server,
    "log",
    { description: "Logs one line of each level, then completes" },
    async (_args, { log }) => {
      for (const level of ["debug", "info", "warning", "error"])
        await log(level, { line: level }, "official");
      return text("logged");
    },
  );

  const report = { celsius: { type: "number" }, sky: { type: "string" } };
  tool(
    server,
    "weather",
    {
      description: "Has an output schema",
      inputSchema: object({ city: { type: "string" } }),
      outputSchema: object(report, ["celsius", "sky"]),
      annotations: { readOnlyHint: true },
    },
    ({ city = "Prague" }) => {
      const structuredContent = { celsius: 21.5, sky: `clear over ${city}` };
      return { ...text(JSON.stringify(structuredContent)), structuredContent };
    },
  );

  tool(
    server,
    "query",
    {
      description: "Has params that HTTP mirrors as headers",
      inputSchema: object({
        region: { type: "string", "x-mcp-header": "Region" },
        limit: { type: "integer", "x-mcp-header": "Limit" },
        fresh: { type: "boolean", "x-mcp-header": "Fresh" },
        sql: { type: "string" },
      }),
    },
    (args, _request, context) => {
      const headers = context.http?.req?.headers;
      const mirrored = ["region", "limit", "fresh"].map((name) => headers?.get(`mcp-param-${name}`) ?? null);
      return text(JSON.stringify({ args, mirrored }));
    },
  );

  tool(server, "inspect", { description: "Tells what this process has seen" }, (_args, { _meta, envelope }) =>
    text(
      JSON.stringify({
        pid: process.pid,
        cancelled: cancelledCalls,
        runs: Object.fromEntries(runs),
        _meta,
        envelope,
      }),
    ),
  );
}

/** Tools that publish change events to `subscriptions/listen` streams. */
function addChangeTools(server, notify) {
  const publish = notify ?? {
    toolsChanged: () => server.sendToolListChanged(),
    promptsChanged: () => server.sendPromptListChanged(),
    resourcesChanged: () => server.sendResourceListChanged(),
    resourceUpdated: (uri) => server.server.sendResourceUpdated({ uri }),
  };
  const what = { type: "string", enum: ["tools", "prompts", "resources", "resource"] };
  tool(
    server,
    "touch",
    { description: "Publishes a change", inputSchema: object({ what, uri: { type: "string" } }, ["what"]) },
    async ({ what: kind, uri = "note://plain" }) => {
      if (kind === "resource") await publish.resourceUpdated(uri);
      else await publish[`${kind}Changed`]();
      return text(`touched ${kind}`);
    },
  );
}

function message(value) {
  return { messages: [{ role: "user", content: { type: "text", text: value } }] };
}

function addPrompts(server) {
  server.registerPrompt(
    "greet",
    { description: "A plain prompt", argsSchema: object({ name: { type: "string" } }, ["name"]) },
    ({ name }) => message(`Greet ${name}`),
  );
  server.registerPrompt(
    "review",
    { description: "A prompt that asks the language first", argsSchema: object() },
    (_args, { mcpReq }) => {
      const answer = inputResponse(mcpReq.inputResponses, "language");
      if (answer.action === "accept") return message(`Review this ${answer.content.language} code`);
      if (answer.kind === "elicit") return message("Review this code");
      const language = inputRequired.elicit({
        message: "Which language?",
        requestedSchema: oneText("language", "Language"),
      });
      return inputRequired({ inputRequests: { language } });
    },
  );
}

function addResources(server) {
  server.registerResource(
    "plain",
    "note://plain",
    { mimeType: "text/plain", cacheHint: { ttlMs: 60_000, cacheScope: "public" } },
    ({ href }) => ({ contents: [{ uri: href, mimeType: "text/plain", text: "a plain note" }] }),
  );
  server.registerResource("locked", "note://locked", { mimeType: "text/plain" }, ({ href }, { mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, "pin");
    if (answer.action === "accept")
      return { contents: [{ uri: href, text: `opened with ${answer.content.pin}` }] };
    if (answer.kind === "elicit") return { contents: [{ uri: href, text: "still locked" }] };
    const pin = inputRequired.elicit({ message: "PIN?", requestedSchema: oneText("pin", "PIN") });
    return inputRequired({ inputRequests: { pin } });
  });
  server.registerResource(
    "page",
    new ResourceTemplate("page://{number}", { list: undefined }),
    { mimeType: "text/plain" },
    ({ href }, { number }) => ({ contents: [{ uri: href, text: `page ${number}` }] }),
  );
}

function addCompletions(server) {
  const names = ["Alice", "Albert", "Bob"];
  server.server.setRequestHandler("completion/complete", ({ params }) => {
    const { ref, argument } = params;
    const known = ref.type === "ref/prompt" && ref.name === "greet" && argument.name === "name" ? names : [];
    const values = known.filter((name) => name.toLowerCase().startsWith(argument.value.toLowerCase()));
    return { completion: { values, total: values.length, hasMore: false } };
  });
}

/** Waits; gives false when the signal aborted first. */
function sleep(ms, signal) {
  if (signal.aborted) return Promise.resolve(false);
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", onAbort);
      resolve(true);
    }, ms);
    function onAbort() {
      clearTimeout(timer);
      resolve(false);
    }
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
