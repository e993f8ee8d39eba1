/** The suite that every transport passes, ours and yours. */

import type { Transport } from "../transport.ts";
import { answerCases } from "./contract-answers.ts";
import { cancelCases } from "./contract-cancel.ts";
import { endCases } from "./contract-ends.ts";
import { frameCases } from "./contract-frames.ts";
import { type ContractCase, type ContractNeed, type OpenRig, Rig } from "./contract-rig.ts";
import type { ScriptedPeer } from "./peer-types.ts";
import { createScriptedPeer } from "./scripted-peer.ts";

export type { ContractNeed } from "./contract-rig.ts";

/** The two functions of a test framework that the suite registers itself with. */
export interface ContractRunner {
  describe(name: string, body: () => void): unknown;
  it(name: string, body: () => Promise<void>): unknown;
}

/** Options of {@link transportContract}. */
export interface TransportContractOptions {
  /** Default: the global `describe` and `it` where there are such, otherwise those of `node:test`. */
  readonly runner?: ContractRunner;
  /**
   * What can't be played over the binding, so that its cases are left out: "frames" (frames of any text), "loss" (an end without
   * an answer), "pieces" (frames cut inside a character). Default: nothing.
   */
  readonly without?: readonly ContractNeed[];
  /** How long a case waits for what the contract promises, in milliseconds. Default 5000. */
  readonly patienceMs?: number;
}

/**
 * Registers the cases that check what `Transport` promises: order, exactly one end, silence after a cancel, losses, closing,
 * re-entrancy, large and broken frames, and that nothing is left open.
 *
 * `makeTransport` connects a new transport with a new peer; the suite attaches it and closes both. For a shared channel of
 * your own, accept the connection yourself and hand it to `peer.channel`.
 *
 * @example
 * transportContract("http", async (peer) => httpTransport((await peer.http()).url), { runner: { describe, it } });
 */
export function transportContract(
  name: string,
  makeTransport: (peer: ScriptedPeer) => Transport | Promise<Transport>,
  options: TransportContractOptions = {},
): void {
  const { runner = defaultRunner(), without = [], patienceMs = 5000 } = options;
  const cases = [...answerCases, ...cancelCases, ...endCases, ...frameCases];
  runner.describe(`${name}: transport contract`, () => {
    for (const contractCase of cases) {
      if (contractCase.needs !== undefined && without.includes(contractCase.needs)) continue;
      runner.it(contractCase.title, () => runCase(contractCase, makeTransport, patienceMs));
    }
  });
}

async function runCase(
  contractCase: ContractCase,
  makeTransport: (peer: ScriptedPeer) => Transport | Promise<Transport>,
  patienceMs: number,
): Promise<void> {
  const rigs: Rig[] = [];
  const open: OpenRig = async (script, { messageBytes = DEFAULT_MESSAGE_BYTES } = {}) => {
    const peer = createScriptedPeer(script);
    const rig = new Rig(peer, await makeTransport(peer), messageBytes, patienceMs);
    rigs.push(rig);
    return rig;
  };
  const errors: unknown[] = [];
  await contractCase.run(open).catch((error) => errors.push(error));
  for (const rig of rigs) await rig.finish().catch((error) => errors.push(error));
  // The case's own error tells more than what went wrong while cleaning up after it.
  if (errors.length > 0) throw errors[0];
}

function defaultRunner(): ContractRunner {
  const globals = globalThis as Partial<ContractRunner>;
  if (typeof globals.describe === "function" && typeof globals.it === "function") {
    return { describe: globals.describe, it: globals.it };
  }
  return process.getBuiltinModule("node:test") as ContractRunner;
}

const DEFAULT_MESSAGE_BYTES = 16 * 1024 * 1024;
