/** What is measured, against whom, and what the engine may cost. */

/** A way of making the same calls. */
export type ContenderId =
  | "engine"
  | "before"
  | "binding"
  | "floor"
  | "realistic-floor"
  | "client-2"
  | "sdk-1"
  | "ai-sdk";

export interface Contender {
  readonly id: ContenderId;
  readonly title: string;
  readonly file: string;
  /** Which revisions it is measured with. */
  readonly speaks: "2026-07-28" | "older";
  /** The package of a peer, whose version the report names. */
  readonly package?: string;
}

export const CONTENDERS: readonly Contender[] = [
  { id: "engine", title: "mcp-rally", file: "contenders/engine.mjs", speaks: "2026-07-28" },
  { id: "binding", title: "binding alone", file: "contenders/binding.mjs", speaks: "2026-07-28" },
  { id: "floor", title: "floor", file: "contenders/floor.mjs", speaks: "2026-07-28" },
  {
    id: "realistic-floor",
    title: "realistic floor",
    file: "contenders/realistic-floor.mjs",
    speaks: "2026-07-28",
  },
  {
    id: "client-2",
    title: "@modelcontextprotocol/client",
    file: "peers/client-2.mjs",
    speaks: "2026-07-28",
    package: "@modelcontextprotocol/client",
  },
  {
    id: "sdk-1",
    title: "@modelcontextprotocol/sdk",
    file: "peers/sdk-1.mjs",
    speaks: "older",
    package: "@modelcontextprotocol/sdk",
  },
  { id: "ai-sdk", title: "@ai-sdk/mcp", file: "peers/ai-sdk.mjs", speaks: "older", package: "@ai-sdk/mcp" },
];

export type TransportId = "memory" | "http-json" | "http-sse" | "stdio" | "websocket";

export interface Scenario {
  readonly id: string;
  readonly title: string;
  readonly transport: TransportId;
  /** The tool of the bench server that is called. */
  readonly tool: string;
  /** Calls at a time. */
  readonly concurrency?: number;
  readonly megabytes?: number;
  readonly ascii?: boolean;
  /** Operations of one slice; a slice of the fastest contender then takes some 100 ms of CPU. */
  readonly operations: number;
  /** The most that the engine may cost, as a ratio to the floor. */
  readonly budget?: number;
  /** The most that the engine may add to the binding alone, in microseconds of CPU per operation. */
  readonly budgetOverBindingUs?: number;
  /** Contenders that cannot take part, and why. */
  readonly without?: Partial<Record<ContenderId, string>>;
  /** Left out of a quick run: it takes long, or there is no budget for it. */
  readonly isExtra?: boolean;
}

const NO_ROUNDS = "the older revisions have no multi round-trip requests";
const NO_PROGRESS = "tells nobody of progress";
const AS_BEFORE = "not measured at this size; see 40 MB";

const OLDER_ONLY = { "sdk-1": NO_ROUNDS, "ai-sdk": NO_ROUNDS } as const;

/** Echo calls, one at a time and 64 at once. */
const ECHOES: readonly Scenario[] = [
  {
    id: "memory",
    title: "memory, echo",
    transport: "memory",
    tool: "echo",
    operations: 10_000,
    budgetOverBindingUs: 3,
  },
  {
    id: "memory-64",
    title: "memory, echo, 64 at once",
    transport: "memory",
    tool: "echo",
    concurrency: 64,
    operations: 10_048,
    isExtra: true,
  },
  {
    id: "http-json",
    title: "HTTP JSON, echo",
    transport: "http-json",
    tool: "echo",
    operations: 600,
    budget: 1.15,
  },
  {
    id: "http-sse",
    title: "HTTP SSE, echo",
    transport: "http-sse",
    tool: "echo",
    operations: 600,
    budget: 1.2,
  },
  {
    id: "http-json-64",
    title: "HTTP JSON, echo, 64 at once",
    transport: "http-json",
    tool: "echo",
    concurrency: 64,
    operations: 1280,
    budget: 1.5,
  },
  {
    id: "http-sse-64",
    title: "HTTP SSE, echo, 64 at once",
    transport: "http-sse",
    tool: "echo",
    concurrency: 64,
    operations: 1280,
    budget: 1.5,
  },
  { id: "stdio", title: "stdio, echo", transport: "stdio", tool: "echo", operations: 1500, budget: 1.2 },
  {
    id: "stdio-64",
    title: "stdio, echo, 64 at once",
    transport: "stdio",
    tool: "echo",
    concurrency: 64,
    operations: 4800,
    budget: 1.6,
  },
  {
    id: "websocket",
    title: "WebSocket, echo",
    transport: "websocket",
    tool: "echo",
    operations: 1500,
    budget: 1.15,
  },
  {
    id: "websocket-64",
    title: "WebSocket, echo, 64 at once",
    transport: "websocket",
    tool: "echo",
    concurrency: 64,
    operations: 4800,
    isExtra: true,
  },
];

/** Calls that are more than a question and an answer. */
const LONGER: readonly Scenario[] = [
  {
    id: "http-confirm",
    title: "HTTP JSON, confirm: one round trip",
    transport: "http-json",
    tool: "confirm",
    operations: 300,
    budget: 1.2,
  },
  {
    id: "http-confirm-new",
    title: "HTTP JSON, confirm, a new form each time",
    transport: "http-json",
    tool: "confirm-new",
    operations: 300,
    budget: 1.2,
  },
  {
    id: "http-five",
    title: "HTTP JSON, five rounds",
    transport: "http-json",
    tool: "five",
    operations: 120,
    without: OLDER_ONLY,
    isExtra: true,
  },
  {
    id: "http-progress",
    title: "HTTP SSE, 100 progress notifications",
    transport: "http-sse",
    tool: "progress",
    operations: 120,
    budget: 2,
    without: { "ai-sdk": NO_PROGRESS },
  },
  {
    id: "http-cancel",
    title: "HTTP SSE, cancel after send",
    transport: "http-sse",
    tool: "hang",
    operations: 100,
    without: { "ai-sdk": NO_PROGRESS },
    isExtra: true,
  },
  {
    id: "stdio-cancel",
    title: "stdio, cancel after send",
    transport: "stdio",
    tool: "hang",
    operations: 600,
    without: { "ai-sdk": NO_PROGRESS },
    isExtra: true,
  },
];

const BIG = { tool: "big", ascii: false } as const;

/** Large results: text of many lines, now and then with a character beyond ASCII. */
const LARGE: readonly Scenario[] = [
  {
    ...BIG,
    id: "http-1mb",
    title: "HTTP JSON, 1 MB",
    transport: "http-json",
    megabytes: 1,
    operations: 4,
    isExtra: true,
  },
  {
    ...BIG,
    id: "http-10mb",
    title: "HTTP JSON, 10 MB",
    transport: "http-json",
    megabytes: 10,
    operations: 1,
    isExtra: true,
  },
  { ...BIG, id: "stdio-1mb", title: "stdio, 1 MB", transport: "stdio", megabytes: 1, operations: 4 },
  {
    ...BIG,
    id: "stdio-10mb",
    title: "stdio, 10 MB",
    transport: "stdio",
    megabytes: 10,
    operations: 1,
    budget: 1.2,
  },
  {
    ...BIG,
    id: "stdio-40mb",
    title: "stdio, 40 MB, limit raised",
    transport: "stdio",
    megabytes: 40,
    operations: 1,
    budget: 1.3,
    isExtra: true,
    without: { "realistic-floor": AS_BEFORE.replace("40", "10") },
  },
  {
    ...BIG,
    id: "stdio-64mb",
    title: "stdio, 64 MB, limit raised",
    transport: "stdio",
    megabytes: 64,
    operations: 1,
    isExtra: true,
    without: {
      binding: AS_BEFORE,
      "realistic-floor": AS_BEFORE,
      "client-2": AS_BEFORE,
      "sdk-1": AS_BEFORE,
      "ai-sdk": AS_BEFORE,
    },
  },
];

export const SCENARIOS: readonly Scenario[] = [...ECHOES, ...LONGER, ...LARGE];
