/** Which server a command line means, and how to reach it. Only the transport that is needed is loaded. */

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { expander, type ResolvedTarget, resolveTarget, webOptions } from "../../transports/target-entry.ts";
import type { Transport } from "../transport.ts";
import { isObject, type JsonObject, typeName } from "../wire.ts";
import type { Arguments } from "./arguments.ts";
import type { CliIo } from "./io.ts";
import { CommandLineError } from "./usage.ts";
import { parseJson } from "./values.ts";

/** Reads the target and what goes with it. @throws {UsageError} */
export async function readTarget(args: Arguments, io: CliIo): Promise<ResolvedTarget> {
  const web = { headers: readHeaders(args, io), token: readToken(args, io) };
  if (args.server !== undefined) {
    const [command, ...rest] = args.server;
    if (command === undefined || command === "") throw new CommandLineError("there is no command after --");
    // A shell has expanded this command line already.
    return resolveTarget({ command, args: rest, cwd: io.cwd }, { ...web, variables: false });
  }
  const config = args.text("config");
  if (config === undefined) {
    if (args.has("server")) {
      throw new CommandLineError("--server names an entry of a file, so it needs --config FILE", {
        path: "--server",
      });
    }
    return resolveTarget(args.target!, web);
  }
  const entry = await readEntry(config, args.text("server"), io);
  const resolved = resolveTarget(entry as never, { ...web, variables: io.env });
  if (resolved.kind !== "stdio") return resolved;
  return { ...resolved, cwd: resolve(io.cwd, resolved.cwd ?? ".") };
}

async function readEntry(file: string, name: string | undefined, io: CliIo): Promise<JsonObject> {
  let text: string;
  try {
    text = await readFile(resolve(io.cwd, file), "utf8");
  } catch (cause) {
    throw new CommandLineError(`--config: cannot read ${file}: ${(cause as Error).message}`, {
      path: "--config",
      cause,
    });
  }
  // The file may hold secrets, so no text of it is shown.
  const value = parseJson(text.replace(/^\uFEFF/, ""), { option: `--config ${file}`, showText: false });
  const servers = isObject(value) ? value.mcpServers : undefined;
  if (!isObject(servers)) {
    throw new CommandLineError(
      `--config ${file}: "mcpServers" must be an object of servers, and is ${servers === undefined ? "missing" : typeName(servers)}`,
      { path: "--config" },
    );
  }
  const names = Object.keys(servers);
  const wanted = name ?? (names.length === 1 ? names[0]! : undefined);
  const known =
    names.length === 0 ? "it has none" : `it has ${names.map((known) => JSON.stringify(known)).join(", ")}`;
  if (wanted === undefined) {
    throw new CommandLineError(`--config ${file} needs --server NAME: ${known}`, { path: "--server" });
  }
  if (!Object.hasOwn(servers, wanted)) {
    throw new CommandLineError(`--config ${file} has no server "${wanted.slice(0, 60)}"; ${known}`, {
      path: "--server",
    });
  }
  const entry = servers[wanted];
  if (!isObject(entry)) {
    throw new CommandLineError(
      `--config ${file}: the server "${wanted}" must be an object, not ${typeName(entry)}`,
      {
        path: "--config",
      },
    );
  }
  return entry;
}

function readHeaders(args: Arguments, io: CliIo): Record<string, string> | undefined {
  const given = args.texts("header");
  if (given.length === 0) return undefined;
  const expand = expander(io.env);
  return Object.fromEntries(
    given.map((line, index) => {
      const at = line.indexOf(":");
      if (at < 1) {
        // The text may be a secret that lost its name, so it is not repeated.
        throw new CommandLineError(`--header number ${index + 1} must be written as 'Name: value'`, {
          path: "--header",
        });
      }
      return [line.slice(0, at).trim(), expand(line.slice(at + 1).trim(), "--header")];
    }),
  );
}

/** A token that was given in place of a variable's name must not be repeated. */
const LIKE_A_VARIABLE = /^[A-Z]+(?:_[A-Z0-9]+)*$/;

function readToken(args: Arguments, { env }: CliIo): string | undefined {
  const name = args.text("token-env");
  if (name === undefined) return undefined;
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  if (value === undefined || value === "") {
    throw new CommandLineError(
      `--token-env takes the name of an environment variable, and the one it names is not set${LIKE_A_VARIABLE.test(name) ? `: ${name}` : ""}`,
      { path: "--token-env" },
    );
  }
  return value;
}

/** Makes the transport of a target. `onStderr` gets what a started server writes there. */
export async function openTransport(
  target: ResolvedTarget,
  onStderr?: (text: string) => void,
): Promise<Transport> {
  switch (target.kind) {
    case "http": {
      const { httpTransport } = await import("../../transports/http.ts");
      return httpTransport(target.url, webOptions(target));
    }
    case "websocket": {
      const { webSocketTransport } = await import("../../transports/websocket.ts");
      return webSocketTransport(target.url, webOptions(target));
    }
    case "stdio": {
      const { stdioTransport } = await import("../../transports/stdio.ts");
      const { command, args, env, cwd } = target;
      return stdioTransport({ command, args, env, cwd, onStderr });
    }
  }
}
