/**
 * Checks what a tool gave: against the tool's own `outputSchema`, and against a schema of the host's (SCH-01).
 *
 * The call has run when this is done, so an error here carries the result: nothing is lost.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/server/tools#output-schema}
 */

import { SchemaError } from "./errors.ts";
import type { CallToolResult } from "./mcp-types.ts";
import { joinPath } from "./problems.ts";
import { clip } from "./show.ts";
import type { StandardIssue, StandardResult, StandardSchema } from "./standard-schema.ts";
import type { SchemaCheck, SchemaValidator } from "./validate.ts";
import type { JsonObject } from "./wire.ts";

/** What happens when a tool's `outputSchema` cannot be used: the call fails, or its output is handed over unchecked. */
export type UncheckedOutput = "fail" | "allow";

/** One result to check. */
export interface OutputCase {
  readonly tool: string;
  /** The tool's `outputSchema`; undefined when it has none or is not known. */
  readonly schema: unknown;
  readonly result: JsonObject;
  readonly unchecked: UncheckedOutput;
  /** Told why an output is handed over unchecked. */
  readonly onUnchecked: (tool: string, reason: string) => void;
}

type Verdict = SchemaError | undefined;

/**
 * Whether there is anything to check: a tool that failed says so in its content, and whatever else it gives is not
 * checked; neither is a result whose type an extension defines.
 */
export function isCheckable({ isError, resultType }: JsonObject): boolean {
  return isError !== true && (resultType === undefined || resultType === "complete");
}

/**
 * Checks `structuredContent` against the tool's own schema, which is compiled when its first result comes. Gives the
 * error to fail with, or undefined; a promise only while the schema is being compiled. Never throws.
 */
export function checkOutput(validator: SchemaValidator, output: OutputCase): Verdict | Promise<Verdict> {
  if (output.schema === undefined || !isCheckable(output.result)) return undefined;
  if (!Object.hasOwn(output.result, "structuredContent")) {
    return new SchemaError(
      `The tool ${quote(output.tool)} declares an outputSchema, and its result has no structuredContent. The call has run; error.result holds what it gave.`,
      "structuredContent",
      details(output),
    );
  }
  let check: SchemaCheck | Promise<SchemaCheck>;
  try {
    check = validator.compile(output.schema);
  } catch (cause) {
    return unusable(output, cause);
  }
  if (typeof check === "function") return judge(output, check);
  return Promise.resolve(check).then(
    (compiled) => judge(output, compiled),
    (cause) => unusable(output, cause),
  );
}

function judge(output: OutputCase, check: SchemaCheck): Verdict {
  let problem: ReturnType<SchemaCheck>;
  try {
    problem = check(output.result.structuredContent);
  } catch (cause) {
    return notChecked(output, cause, "structuredContent", "its structuredContent could not be checked");
  }
  if (problem === undefined) return undefined;
  const path = under("structuredContent", problem.path);
  return new SchemaError(
    `The tool ${quote(output.tool)} gave output that does not satisfy its outputSchema: ${path} ${problem.message}. The call has run; error.result holds what it gave.`,
    path,
    details(output),
  );
}

function unusable(output: OutputCase, cause: unknown): Verdict {
  const path = under("outputSchema", cause instanceof SchemaError ? cause.path : "");
  return notChecked(output, cause, path, "its outputSchema cannot be used");
}

function notChecked(output: OutputCase, cause: unknown, path: string, what: string): Verdict {
  const why = cause instanceof Error ? cause.message : String(cause);
  if (output.unchecked === "allow") {
    output.onUnchecked(output.tool, `${what}: ${why}`);
    return undefined;
  }
  return new SchemaError(
    `The output of the tool ${quote(output.tool)} was not checked, because ${what} (at ${path}): ${why} The call has run; error.result holds what it gave. Set uncheckedOutput to "allow" to take such output as it is.`,
    path,
    { ...details(output), cause },
  );
}

/**
 * Gives the result with its `structuredContent` as the host's schema made it.
 *
 * @throws {SchemaError} when the schema refuses the value, or fails itself.
 */
export async function applyStandardSchema<T>(
  schema: StandardSchema<T>,
  tool: string,
  result: CallToolResult,
): Promise<CallToolResult<T>> {
  if (!isCheckable(result)) return result as CallToolResult<T>;
  let checked: StandardResult<T>;
  try {
    checked = await schema["~standard"].validate(result.structuredContent);
  } catch (cause) {
    throw new SchemaError(
      `The output schema given with the call of ${quote(tool)} failed by itself; its error is the cause. The call has run; error.result holds what it gave.`,
      "structuredContent",
      { tool, result, cause },
    );
  }
  if (checked.issues === undefined) return { ...result, structuredContent: checked.value };
  const [issue] = checked.issues;
  const path = (issue?.path ?? []).reduce(extendPath, "structuredContent");
  const more = checked.issues.length > 1 ? ` (and ${checked.issues.length - 1} more)` : "";
  throw new SchemaError(
    `The tool ${quote(tool)} gave output that the schema given with the call refuses: ${path}: ${clip(String(issue?.message), 300)}${more}. The call has run; error.result holds what it gave.`,
    path,
    { tool, result, cause: checked.issues },
  );
}

function extendPath(path: string, segment: NonNullable<StandardIssue["path"]>[number]): string {
  const key = typeof segment === "object" ? segment.key : segment;
  return joinPath(path, typeof key === "symbol" ? String(key) : key);
}

/** Puts a path that a check gave under the member that was checked. */
function under(base: string, path: string): string {
  if (path === "") return base;
  return path.startsWith("[") ? base + path : `${base}.${path}`;
}

function details({ tool, result }: OutputCase): { tool: string; result: unknown } {
  return { tool, result };
}

function quote(text: string): string {
  return JSON.stringify(clip(text, 300));
}
