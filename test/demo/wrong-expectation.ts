/** The demo with an expectation that cannot be met: for the test that such a thing is noticed. */

import { runDemo } from "./run-demo.ts";
import { scenes } from "./scenes.ts";

const [first, second] = scenes;
process.exitCode = await runDemo(["stdio"], [{ ...first!, expected: "something else" }, second!]);
