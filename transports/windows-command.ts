/**
 * Windows runs `.cmd` and `.bat` files only through its command processor, whose quoting rules differ from everyone
 * else's; Node refuses to start them directly. `npx` and `npm` are such files there.
 */

import { node } from "./node.ts";

/** What to give to `spawn`. */
export interface SpawnCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** The arguments are quoted already (`windowsVerbatimArguments`). */
  readonly verbatim: boolean;
}

/**
 * Finds how to start `command`. Elsewhere than on Windows it is started as it is. On Windows it is looked up along the
 * PATH and PATHEXT of the server's own environment, and a batch file goes through `cmd.exe` with every argument in quotes.
 * Throws when an argument holds a character that no quoting makes safe there.
 */
export function windowsCommand(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  platform: NodeJS.Platform = process.platform,
  exists: (path: string) => boolean = (path) => node.fs.existsSync(path),
): SpawnCommand {
  if (platform !== "win32") return { command, args, verbatim: false };
  const file = find(command, env, exists);
  if (file === undefined || !/\.(cmd|bat)$/i.test(file))
    return { command: file ?? command, args, verbatim: false };
  const line = [file, ...args].map(quote).join(" ");
  return {
    command: variable(env, "COMSPEC") ?? "cmd.exe",
    args: ["/d", "/s", "/c", `"${line}"`],
    verbatim: true,
  };
}

function find(
  command: string,
  env: Readonly<Record<string, string>>,
  exists: (path: string) => boolean,
): string | undefined {
  const extensions = (variable(env, "PATHEXT") ?? ".COM;.EXE;.BAT;.CMD")
    .split(";")
    .filter((part) => part !== "");
  const { win32 } = node.path;
  const endings = win32.extname(command) === "" ? extensions : ["", ...extensions];
  const folders = /[\\/]/.test(command)
    ? [""]
    : (variable(env, "PATH") ?? "").split(";").filter((part) => part !== "");
  for (const folder of folders) {
    for (const ending of endings) {
      const file = folder === "" ? command + ending : win32.join(folder, command + ending);
      if (exists(file)) return file;
    }
  }
  return undefined;
}

function variable(env: Readonly<Record<string, string>>, name: string): string | undefined {
  const key = Object.keys(env).find((other) => other.toUpperCase() === name);
  return key === undefined ? undefined : env[key];
}

function quote(part: string): string {
  // Between quotes cmd.exe takes & | < > ^ and spaces as they are. A quote would end them, % is expanded even inside
  // them, and a line break ends the command: a batch file cannot be given these.
  const fault = /["%\r\n]/.exec(part)?.[0];
  if (fault !== undefined) {
    throw new Error(
      `an argument holds ${JSON.stringify(fault)}, which cannot be passed safely to a batch file on Windows. ` +
        "Start the program behind it instead: node with the script's path",
    );
  }
  // A backslash before the closing quote would escape it in the program that the batch file starts.
  return `"${part.replace(/\\+$/, "$&$&")}"`;
}
