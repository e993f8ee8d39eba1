/** The public names of `mcp-rally/testing`. */

export {
  type ContractNeed,
  type ContractRunner,
  type TransportContractOptions,
  transportContract,
} from "./contract.ts";
export type {
  PeerChannel,
  PeerChannelPort,
  PeerCommand,
  PeerExchange,
  PeerHttpAnswer,
  PeerHttpOptions,
  PeerRequest,
  PeerServer,
  Script,
  ScriptedPeer,
  ScriptedPeerOptions,
  Step,
} from "./peer-types.ts";
export { complete, elicitForm, elicitUrl, inputRequired, listRoots, sample } from "./replies.ts";
export { createScriptedPeer } from "./scripted-peer.ts";
