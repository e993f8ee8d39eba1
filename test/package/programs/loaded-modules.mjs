/** `--import` this file: the URL of every module that is then resolved becomes a line of the file $LOADED_MODULES. */

import { appendFileSync } from "node:fs";
import { register } from "node:module";
import { isMainThread } from "node:worker_threads";

if (isMainThread) register(import.meta.url);

export async function resolve(specifier, context, next) {
  const resolved = await next(specifier, context);
  appendFileSync(process.env.LOADED_MODULES, `${resolved.url}\n`);
  return resolved;
}
