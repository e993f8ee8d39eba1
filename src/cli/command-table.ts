/** Every command, in the order of the help. A new one is a file in `commands/` and a line here. */

import type { Command } from "./command.ts";
import { benchCommand } from "./commands/bench.ts";
import { callCommand } from "./commands/call.ts";
import { discoverCommand } from "./commands/discover.ts";
import { listenCommand } from "./commands/listen.ts";
import { promptCommand } from "./commands/prompt.ts";
import { promptsCommand } from "./commands/prompts.ts";
import { readCommand } from "./commands/read.ts";
import { resourcesCommand } from "./commands/resources.ts";
import { resumeCommand } from "./commands/resume.ts";
import { toolsCommand } from "./commands/tools.ts";

export const COMMANDS: readonly Command[] = [
  callCommand,
  resumeCommand,
  toolsCommand,
  promptsCommand,
  resourcesCommand,
  discoverCommand,
  readCommand,
  promptCommand,
  listenCommand,
  benchCommand,
];
