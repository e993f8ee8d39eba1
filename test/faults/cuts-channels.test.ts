import { startRig } from "./cutting-lanes.ts";
import { describeCuts } from "./cutting-table.ts";

describeCuts("lines", { start: () => startRig("lines") });
describeCuts("WebSocket", { start: () => startRig("WebSocket") });
// Real processes, whose stdout ends in the middle of whatever the offset falls into; an offset costs two processes.
describeCuts("stdio", { start: () => startRig("stdio"), every: 121 });
