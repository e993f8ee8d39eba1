/** Every public name, by entry point. A name that comes or goes has to come or go here too, and in the changelog. */

/** What one entry point exports. */
export interface Surface {
  readonly source: string;
  readonly values: string;
  readonly types: string;
}

/** By subpath of package.json `exports`, in its order. */
export const SURFACE: Record<string, Surface> = {
  ".": {
    source: "src/index.ts",
    values: `
      CancelledError CapabilityRequiredError Client ClosedError ConnectError ConnectionLostError
      DIAGNOSTICS_CHANNEL FrameError HttpStatusError InputError InputRepeatedError LegacyPeerError
      LimitError PROTOCOL_VERSION ProtocolViolationError RallyError RoundLimitError RpcError
      SchemaError SuspendedError TimeoutError TransportError UnsupportedVersionError UsageError
      createClient createValidator memoryCache systemClock`,
    types: `
      AnomalyKind AttemptOutcome AuthChallenge CacheMode CacheStore CachedResult CallOptions
      CallToolResult ChangeItem ClientLimits ClientOptions Clock CompleteResult ContentBlock
      Continuation Delivery DiscoverResult ElicitFormHandler ElicitFormParams ElicitResult
      ElicitUrlHandler ElicitUrlParams Envelope ErrorCode Exchange ExchangeFailure ExchangeRequest
      ExchangeSink ExtensionItem ExtraCapabilities GapItem GetPromptResult Implementation InputContext
      InputHandlers InputKind InputRequest JsonObject Limits LinkState ListMethod ListOptions
      ListRootsHandler ListRootsResult LogEntry LogLevel MemoryCacheOptions MirroredField
      NotificationFrame OperationInfo OperationOutcome OperationView Outcome Problem Progress Prompt
      PromptMessage RallyEvent ReadResourceResult ReissueOption ReissueRules RelistenRules Resource
      ResourceContents ResourceTemplate ResponseFrame Result SampleHandler SampleOptions SampleParams
      SampleResult SchemaBounds SchemaCheck SchemaValidator StandardIssue StandardResult
      StandardSchema SubscribeOptions Subscription SubscriptionEnd SubscriptionFilter SubscriptionItem
      TimeSpent Timeouts TimerHandle Tool ToolCallOptions Transport TransportHost UncheckedOutput
      ValidatorOptions WireId`,
  },
  "./transports/http": {
    source: "transports/http.ts",
    values: "httpTransport",
    types: "CallInfo HttpHeaders HttpTlsOptions HttpTransportOptions TokenCall TokenOption",
  },
  "./transports/stdio": {
    source: "transports/stdio.ts",
    values: "stdioTransport",
    types: "BackoffOptions StdioOptions",
  },
  "./transports/websocket": {
    source: "transports/websocket.ts",
    values: "webSocketTransport",
    types: "BackoffOptions CallInfo HttpHeaders TokenCall TokenOption WebSocketOptions",
  },
  "./transports/memory": {
    source: "transports/memory.ts",
    values: "memoryTransport",
    types: "MemoryExchange MemoryHandler MemoryRequest",
  },
  "./transports/target": {
    source: "transports/target.ts",
    values: "transportFor",
    types: "CommandTarget ResolveOptions Target TargetOptions UrlTarget Variables",
  },
  "./transports/channel": {
    source: "transports/channel.ts",
    values: "Channel refuseExchange",
    types: "ChannelOptions ChannelPort FailureFactory Stranded",
  },
  "./transports/lines": {
    source: "transports/lines.ts",
    values: "LineReader",
    types: "LineReaderOptions",
  },
  "./transports/link": {
    source: "transports/link.ts",
    values: "linkTransport",
    types: "BackoffOptions Link LinkEnd LinkResources LinkTransportOptions",
  },
  "./testing": {
    source: "src/testing/index.ts",
    values: `
      complete createScriptedPeer elicitForm elicitUrl inputRequired listRoots sample
      transportContract`,
    types: `
      ContractNeed ContractRunner PeerChannel PeerChannelPort PeerCommand PeerExchange PeerHttpAnswer
      PeerHttpOptions PeerRequest PeerServer Script ScriptedPeer ScriptedPeerOptions Step
      TransportContractOptions`,
  },
};

/** The names in a text of names. */
export function words(text: string): string[] {
  return (text.match(/\w+/g) ?? []).sort();
}
