import { startRig } from "./cutting-lanes.ts";
import { describeCuts } from "./cutting-table.ts";

// The requests are the same whatever form the answer has: cuts-http.test.ts cuts them.
const directions = ["down"] as const;

describeCuts("HTTP answering SSE", { start: () => startRig("HTTP answering SSE"), directions });
describeCuts("HTTP/1.0 answering JSON", { start: () => startRig("HTTP/1.0 answering JSON"), directions });
