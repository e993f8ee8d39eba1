/** An empty process: what Node.js itself takes. */

import { report } from "./report.mjs";

report();
