import { startRig } from "./cutting-lanes.ts";
import { describeCuts } from "./cutting-table.ts";

describeCuts("HTTP answering JSON", { start: () => startRig("HTTP answering JSON") });
