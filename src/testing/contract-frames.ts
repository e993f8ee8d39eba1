/** Contract cases: frames that no correct peer sends harm no exchange but their own. */

import assert from "node:assert/strict";
import type { AnomalyKind } from "../transport.ts";
import type { ContractCase } from "./contract-rig.ts";
import type { PeerRequest } from "./peer-types.ts";

/** A frame that comes before a right answer, and changes nothing for it. */
const HARMLESS: readonly { what: string; frame(request: PeerRequest): unknown; anomaly: AnomalyKind }[] = [
  {
    what: "an answer to an id that was never used",
    frame: () => ({ jsonrpc: "2.0", id: 4711, result: {} }),
    anomaly: "unknown-id",
  },
  {
    what: "REQ-02: an answer whose id is the right number as a string",
    frame: ({ id }) => ({ jsonrpc: "2.0", id: String(id), result: { wrong: true } }),
    anomaly: "unknown-id",
  },
  {
    what: "REQ-04: a request of the peer, even with our own id",
    frame: ({ id }) => ({ jsonrpc: "2.0", id, method: "sampling/createMessage", params: {} }),
    anomaly: "peer-request",
  },
];

/** A frame with the id of the exchange that can't be its answer. */
const BROKEN: readonly { what: string; frame: object }[] = [
  { what: "without jsonrpc", frame: { result: {} } },
  { what: "with result and error", frame: { jsonrpc: "2.0", result: {}, error: { code: 1, message: "" } } },
  { what: "with neither", frame: { jsonrpc: "2.0" } },
  { what: "with a result that is an array", frame: { jsonrpc: "2.0", result: [] } },
  { what: "with a code that is no integer", frame: { jsonrpc: "2.0", error: { code: "1", message: "" } } },
];

export const frameCases: readonly ContractCase[] = [
  ...HARMLESS.map(
    ({ what, frame, anomaly }): ContractCase => ({
      title: `${what} is an anomaly, and the exchange goes on`,
      needs: "frames",
      async run(open) {
        const rig = await open((request, exchange) => {
          exchange.frame(JSON.stringify(frame(request)));
          exchange.result({ for: request.id });
        });
        const exchange = rig.start();
        assert.deepEqual(await exchange.result(), { for: exchange.id });
        assert.deepEqual(rig.anomalies, [anomaly]);
        assert.deepEqual(rig.peer.received, [exchange.body], "nothing was answered");
      },
    }),
  ),
  ...BROKEN.map(
    ({ what, frame }): ContractCase => ({
      title: `REQ-03: an answer ${what} ends its exchange with a FrameError`,
      needs: "frames",
      async run(open) {
        const rig = await open((request, exchange) => {
          if (request.params.broken) exchange.raw(JSON.stringify({ ...frame, id: request.id }));
          else exchange.result({ for: request.id });
        });
        const { delivery, error } = await rig.start({ broken: true }).failed();
        assert.equal(error.code, "frame");
        assert.equal(delivery, "unknown");
        await rig.start().result();
      },
    }),
  ),
  {
    title: "a second answer is not delivered",
    needs: "frames",
    async run(open) {
      const rig = await open((request, exchange) => {
        exchange.frame(JSON.stringify({ jsonrpc: "2.0", id: request.id, result: { n: 1 } }));
        exchange.result({ n: 2 });
      });
      assert.deepEqual(await rig.start().result(), { n: 1 });
      await rig.start().result();
      if (rig.transport.shared) assert(rig.anomalies.includes("late-response"));
    },
  },
  {
    title:
      "what is no JSON is an anomaly on a shared channel, and ends the exchange that it came for elsewhere",
    needs: "frames",
    async run(open) {
      const rig = await open((request, exchange) => {
        exchange.frame("Server listening on port 3000");
        exchange.result({ for: request.id });
      });
      const exchange = rig.start();
      if (rig.transport.shared) {
        assert.deepEqual(await exchange.result(), { for: exchange.id });
        assert.deepEqual(rig.anomalies, ["bad-frame"]);
      } else {
        assert.equal((await exchange.failed()).error.code, "frame");
      }
    },
  },
  ...[1, 3].map(
    (size): ContractCase => ({
      title: `an answer that comes in pieces of ${size} byte(s) is whole, whatever characters that cuts`,
      needs: "pieces",
      async run(open) {
        const text = "aé€🐎".repeat(10);
        const rig = await open((request, exchange) =>
          exchange.pieces(JSON.stringify({ jsonrpc: "2.0", id: request.id, result: { text } }), size),
        );
        assert.deepEqual(await rig.start().result(), { text });
      },
    }),
  ),
];
