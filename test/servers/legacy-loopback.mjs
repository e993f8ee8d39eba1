/**
 * Preloaded into a server that chooses its own port and listens on every interface: makes it listen on a free port of
 * 127.0.0.1, print {"url": …}, and exit when its stdin ends.
 */

import { Server } from "node:net";

const { listen } = Server.prototype;
Server.prototype.listen = function listenOnLoopback(_port, ...rest) {
  const callback = rest.find((argument) => typeof argument === "function");
  return listen.call(this, 0, "127.0.0.1", () => {
    console.log(JSON.stringify({ url: `http://127.0.0.1:${this.address().port}/mcp` }));
    callback?.();
  });
};

process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
