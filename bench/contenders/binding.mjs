/** The binding alone: a transport of the package, driven by hand, without the engine. */

import { frameOf, playCall } from "./calls.mjs";
import { transportTo } from "./engine.mjs";

export async function open(scenario, target) {
  const transport = await transportTo(scenario, target);
  transport.attach({
    limits: { messageBytes: 256 * 1024 * 1024 },
    notification() {},
    link() {},
    anomaly() {},
  });
  let lastId = 0;
  const nextId = () => ++lastId;
  const exchange = (body, id, onNotification) =>
    new Promise((resolve, reject) => {
      const request = {
        id,
        method: "tools/call",
        name: scenario.tool,
        protocolVersion: "2026-07-28",
        body,
        mirrored: [],
      };
      const handle = transport.exchange(request, {
        notification: (frame) => {
          if (scenario.tool !== "hang") return onNotification(frame);
          handle.cancel("the bench has seen enough");
          resolve(undefined);
        },
        response: resolve,
        failure: ({ error }) => reject(error),
      });
    });
  if (scenario.tool === "hang") {
    return {
      call: () => {
        const id = nextId();
        return exchange(frameOf(id, scenario), id);
      },
      close: () => transport.close(),
    };
  }
  return { call: () => playCall(scenario, nextId, exchange), close: () => transport.close() };
}
