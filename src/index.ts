/**
 * mcp-rally: a client engine for the Model Context Protocol, revision 2026-07-28. Every public name, and no other.
 */

// `await using` a client needs this; a user's own `lib` need not name it.
/// <reference lib="esnext.disposable" preserve="true" />

export type { CacheMode } from "./cache.ts";
export { Client, createClient, type OperationView } from "./client.ts";
export type {
  CallOptions,
  ClientLimits,
  ClientOptions,
  ReissueOption,
  ToolCallOptions,
} from "./client-options.ts";
export { type Clock, systemClock, type TimerHandle } from "./clock.ts";
export type { Continuation } from "./continuation.ts";
export type { ExtraCapabilities, Implementation } from "./declarations.ts";
export {
  CancelledError,
  CapabilityRequiredError,
  ClosedError,
  ConnectError,
  ConnectionLostError,
  type ErrorCode,
  FrameError,
  HttpStatusError,
  InputError,
  InputRepeatedError,
  LegacyPeerError,
  LimitError,
  type OperationInfo,
  ProtocolViolationError,
  RallyError,
  RoundLimitError,
  RpcError,
  SchemaError,
  SuspendedError,
  TimeoutError,
  type TimeSpent,
  TransportError,
  UnsupportedVersionError,
  UsageError,
} from "./errors.ts";
export {
  type AttemptOutcome,
  DIAGNOSTICS_CHANNEL,
  type OperationOutcome,
  type RallyEvent,
} from "./events.ts";
export type { InputKind, InputRequest } from "./input-required.ts";
export type {
  ElicitFormHandler,
  ElicitFormParams,
  ElicitResult,
  ElicitUrlHandler,
  ElicitUrlParams,
  InputContext,
  InputHandlers,
  ListRootsHandler,
  ListRootsResult,
  SampleHandler,
  SampleOptions,
  SampleParams,
  SampleResult,
} from "./inputs.ts";
export type { ListMethod, ListOptions } from "./lists.ts";
export type {
  CallToolResult,
  CompleteResult,
  ContentBlock,
  DiscoverResult,
  GetPromptResult,
  Prompt,
  PromptMessage,
  ReadResourceResult,
  Resource,
  ResourceContents,
  ResourceTemplate,
  Result,
  Tool,
} from "./mcp-types.ts";
export { type CachedResult, type CacheStore, type MemoryCacheOptions, memoryCache } from "./memory-cache.ts";
export type { Outcome } from "./outcome.ts";
export type { UncheckedOutput } from "./output.ts";
export type { LogEntry, Progress, Timeouts } from "./pending.ts";
export type { Problem } from "./problems.ts";
export { type LogLevel, PROTOCOL_VERSION } from "./protocol.ts";
export type { ReissueRules } from "./reissue.ts";
export type { SchemaBounds } from "./schema-bounds.ts";
export type { StandardIssue, StandardResult, StandardSchema } from "./standard-schema.ts";
export type { Subscription } from "./subscription.ts";
export type { SubscriptionFilter } from "./subscription-filter.ts";
export type { ChangeItem, ExtensionItem, GapItem, SubscriptionItem } from "./subscription-queue.ts";
export type { RelistenRules, SubscriptionEnd } from "./subscription-state.ts";
export type { SubscribeOptions } from "./subscriptions.ts";
export type {
  AnomalyKind,
  AuthChallenge,
  Delivery,
  Envelope,
  Exchange,
  ExchangeFailure,
  ExchangeRequest,
  ExchangeSink,
  Limits,
  LinkState,
  MirroredField,
  Transport,
  TransportHost,
} from "./transport.ts";
export {
  createValidator,
  type SchemaCheck,
  type SchemaValidator,
  type ValidatorOptions,
} from "./validate.ts";
export type { JsonObject, NotificationFrame, ResponseFrame, WireId } from "./wire.ts";
