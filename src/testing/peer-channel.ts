/** A shared channel of a scripted peer: the part that stdio and WebSocket have in common. */

import type { RpcId } from "../wire.ts";
import { noHttp, type Origin, type Outlet, type PeerCore, type RunningExchange } from "./peer-core.ts";
import type { PeerChannel, PeerChannelPort } from "./peer-types.ts";

/** Opens a channel whose requests all answer through `outlet`. */
export function openPeerChannel(core: PeerCore, origin: Origin, outlet: Outlet): PeerChannel {
  const running = new Map<RpcId, RunningExchange>();
  return {
    receive(text) {
      const received = core.receive(text, origin, () => outlet);
      if (received.kind === "request") running.set(received.exchange.id, received.exchange);
      if (received.kind === "answered") outlet.final(received.text);
      if (received.kind === "notification" && received.method === "notifications/cancelled") {
        const { requestId, reason } = received.params;
        running.get(requestId as RpcId)?.cancel(typeof reason === "string" ? reason : "no reason given");
      }
    },
    gone(reason) {
      for (const exchange of running.values()) exchange.gone(reason);
      running.clear();
    },
  };
}

/** Makes an outlet of a port that a test's author wrote. */
export function outletOf(port: PeerChannelPort): Outlet {
  const send = (text: string) => port.send(text);
  return {
    frame: send,
    final: send,
    pieces: async (parts, whole) => (port.sendPieces === undefined ? send(whole) : port.sendPieces(parts)),
    async bytes(data) {
      if (port.write === undefined) throw new Error("exchange.bytes() needs a channel port with write()");
      port.write(data);
    },
    drop: () => port.end(),
    crash: () => (port.crash === undefined ? port.end() : port.crash()),
    http: noHttp,
  };
}
