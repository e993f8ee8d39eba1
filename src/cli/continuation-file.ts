/** Files that keep a suspended call. They hold the server's state and the call's arguments: for their owner alone. */

import { randomBytes } from "node:crypto";
import { link, open, readFile, rename, stat, unlink } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Continuation } from "../continuation.ts";
import type { CliIo } from "./io.ts";
import { CommandLineError } from "./usage.ts";
import { parseJson } from "./values.ts";

/** A place for a continuation, found fit before the call is made: afterwards would be too late to say no. */
export interface ContinuationFile {
  /** The name as the user gave it. */
  readonly name: string;
  readonly path: string;
  readonly overwrite: boolean;
}

/** Looks whether `name` can be written to. @throws {CommandLineError} when it exists, unless it may be overwritten */
export async function planFile(name: string, overwrite: boolean, io: CliIo): Promise<ContinuationFile> {
  const path = resolve(io.cwd, name);
  if (!overwrite && (await stat(path).catch(() => undefined)) !== undefined) throw exists(name);
  const folder = await stat(dirname(path)).catch(() => undefined);
  if (folder?.isDirectory() !== true) {
    throw new CommandLineError(`--suspend: ${dirname(path)} is not a directory; make it first`, {
      path: "--suspend",
    });
  }
  return { name, path, overwrite };
}

/** Writes the file whole or not at all, readable by its owner alone. */
export async function writeContinuationFile(
  file: ContinuationFile,
  continuation: Continuation,
): Promise<void> {
  const { path, overwrite, name } = file;
  const draft = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  const handle = await open(draft, "wx", 0o600);
  try {
    await handle.writeFile(`${JSON.stringify(continuation)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  try {
    // A link does not replace a file that came into being meanwhile; a rename does.
    if (overwrite) return await rename(draft, path);
    await link(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") throw exists(name);
    if (overwrite) throw error;
    // A file system without links.
    await (await open(path, "wx", 0o600)).close();
    await rename(draft, path);
  } finally {
    await unlink(draft).catch(() => undefined);
  }
}

function exists(name: string): CommandLineError {
  return new CommandLineError(
    `--suspend: ${name} exists already; choose another name, or overwrite it with --force`,
    {
      path: "--suspend",
    },
  );
}

/** Reads a file of {@link writeContinuationFile}. Whether what it holds is whole is the client's to check. */
export async function readContinuationFile(name: string, io: CliIo): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(resolve(io.cwd, name), "utf8");
  } catch (cause) {
    throw new CommandLineError(`cannot read ${name}: ${(cause as Error).message}`, { path: "FILE", cause });
  }
  return parseJson(text, { option: name, showText: false });
}
