/**
 * What is needed once a server asks for input: forms, their formats, and the checks of every kind of answer. That is a good
 * part of the engine, and most calls are never asked anything, so it is loaded apart from the rest.
 */

type InputCode = typeof import("./input-parts.ts");

let loaded: InputCode | undefined;
let loading: Promise<InputCode> | undefined;

/** Loads it; once, however often it is called. Rejects when its file is not there (any more). */
export function loadInputCode(): Promise<InputCode> {
  loading ??= import("./input-parts.ts").then((parts) => {
    loaded = parts;
    return parts;
  });
  return loading;
}

/** What was loaded; undefined until then. */
export function loadedInputCode(): InputCode | undefined {
  return loaded;
}
