/** Which environment variables a server process gets: a short list, and what the host names (STD-04). */

/** What a POSIX program needs to find its files, its user and its language. */
const POSIX_NAMES = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"];

/** What a Windows program needs to start at all. Names are compared without case there. */
const WINDOWS_NAMES = [
  "APPDATA",
  "COMSPEC",
  "HOMEDRIVE",
  "HOMEPATH",
  "LOCALAPPDATA",
  "PATH",
  "PATHEXT",
  "PROCESSOR_ARCHITECTURE",
  "PROGRAMDATA",
  "PROGRAMFILES",
  "SYSTEMDRIVE",
  "SYSTEMROOT",
  "TEMP",
  "TMP",
  "USERNAME",
  "USERPROFILE",
  "WINDIR",
];

/** Environment variables by name; `undefined` takes an inherited one away. */
export type EnvironmentVariables = Readonly<Record<string, string | undefined>>;

/**
 * The environment of a server process. The host's own environment is full of credentials that are none of the server's
 * business, so only the variables every program needs are passed on, and `extra` over them. A value that begins with
 * "()" is an exported shell function, which some shells run on start: it is never passed on.
 */
export function serverEnvironment(
  extra: EnvironmentVariables = {},
  source: EnvironmentVariables = process.env,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const windows = platform === "win32";
  const names = new Set(windows ? WINDOWS_NAMES : POSIX_NAMES);
  const environment: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(source)) {
    if (names.has(windows ? name.toUpperCase() : name)) put(environment, name, value, windows);
  }
  for (const [name, value] of Object.entries(extra)) put(environment, name, value, windows);
  return environment;
}

function put(
  environment: Record<string, string>,
  name: string,
  value: string | undefined,
  windows: boolean,
): void {
  if (windows) {
    // "Path" and "PATH" are one variable there; two spellings would leave it to chance which counts.
    for (const other of Object.keys(environment)) {
      if (other.toUpperCase() === name.toUpperCase()) delete environment[other];
    }
  }
  if (value === undefined) delete environment[name];
  else if (!value.startsWith("()")) environment[name] = value;
}
