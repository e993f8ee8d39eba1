/**
 * Loads what answers input requests before any test runs. In a program it is loaded while the first call is out; a test
 * with a clock of its own would move that on while a file is being read. `input-code.test.ts` begins without it.
 */

import { loadInputCode } from "../../src/input-code.ts";

await loadInputCode();
