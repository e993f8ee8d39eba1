/** Something well known, for scale: undici's root entry. */

import "undici";
import { report } from "./report.mjs";

report();
