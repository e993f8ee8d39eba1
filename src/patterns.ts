/**
 * Patterns of a peer's schema, matched in bounded time (SCH-01).
 *
 * `RegExp` backtracks, and a pattern such as `^(a+)+$` can hold the event loop for minutes. So a pattern runs on `RegExp`
 * only where its form leaves nothing to backtrack over, and on a linear-time engine (RE2, loaded when first needed)
 * otherwise. A lookahead at the beginning or a lookbehind at the end, which RE2 lacks, is the same as one more
 * pattern that must, or must not, match; that is how those are run.
 */

import {
  BEGIN,
  END,
  type PatternBranch,
  type PatternNode,
  parsePattern,
  patternSize,
  UnsupportedSyntax,
  writeRe2,
} from "./pattern-syntax.ts";

/** Anything with a `test`: a `RegExp`, or a pattern of the linear-time engine. */
interface Matcher {
  test(text: string): boolean;
}

/** The linear-time engine: compiles RE2 syntax. */
export type LinearEngine = (re2: string) => Matcher;

/** A pattern that is ready to be tested. */
export interface Pattern extends Matcher {
  /** The cost of testing a text of `length` code units, in steps of the engine; an upper bound. */
  work(length: number): number;
  /** Steps that one test may take at most. */
  readonly mostWork: number;
  /** The size of the program of the linear engine; 0 when it is not used. */
  readonly linearSize: number;
}

/** Why a pattern cannot be used, as the rest of a sentence: "it is …". */
export class PatternFault extends Error {}

/** The pattern needs the linear-time engine, which has not been loaded yet. */
export class LinearEngineNeeded extends Error {}

// Measured: the linear engine needs up to 0.2 µs a step in its worst case, RegExp about 1 ns. One test stays under 0.1 s.
const MOST_LINEAR_WORK = 600_000;
const MOST_NATIVE_WORK = 50_000_000;
// Compiling a pattern of this size takes the linear engine about 20 ms.
const LARGEST_PATTERN = 1_000;
const LONGEST_SOURCE = 4_096;

/**
 * Compiles a pattern. Throws a {@link PatternFault} when the pattern is no regular expression or has no linear-time form,
 * and {@link LinearEngineNeeded} when `engine` is undefined and the pattern wants it.
 */
export function compilePattern(source: string, engine: LinearEngine | undefined): Pattern {
  if (source.length > LONGEST_SOURCE)
    throw new PatternFault(`it is longer than ${LONGEST_SOURCE} characters`);
  const native = compileNative(source);
  try {
    const branches = parsePattern(source);
    const tail = tameSize(branches);
    if (tail !== undefined) return pattern(native, tail, false);
    const size = patternSize(branches);
    if (size > LARGEST_PATTERN)
      throw new PatternFault(`its counted repetitions come to more than ${LARGEST_PATTERN} steps`);
    if (engine === undefined) throw new LinearEngineNeeded();
    return pattern(compileLinear(branches, engine), size, true);
  } catch (error) {
    if (error instanceof PatternFault || error instanceof LinearEngineNeeded) throw error;
    const what = error instanceof UnsupportedSyntax ? error.message : (error as Error).message;
    throw new PatternFault(`it cannot be matched in linear time: ${what}`);
  }
}

function pattern(matcher: Matcher, size: number, linear: boolean): Pattern {
  return {
    test: (text) => matcher.test(text),
    work: (length) => (length + 1) * (size + 1),
    mostWork: linear ? MOST_LINEAR_WORK : MOST_NATIVE_WORK,
    linearSize: linear ? size : 0,
  };
}

function compileNative(source: string): RegExp {
  try {
    return new RegExp(source, "u");
  } catch {
    try {
      // JSON Schema asks for Unicode patterns, but many a server's pattern escapes what needs no escape: `\-`, `\_`.
      return new RegExp(source);
    } catch (error) {
      throw new PatternFault(
        `it is no regular expression: ${(error as Error).message.replace(/^.*\/: /, "")}`,
      );
    }
  }
}

/**
 * How many steps `RegExp` may take from each position of the text; undefined when that has no such bound. It has one when
 * there is one branch, where at most one piece varies, and none if there is no anchor, since each position is then a
 * further start.
 */
function tameSize(branches: readonly PatternBranch[]): number | undefined {
  const [branch] = branches;
  if (branch === undefined || branches.length > 1) return undefined;
  let choices = 0;
  let size = 0;
  for (const node of branch) {
    if (node.op === "one" || node.op === "position") size++;
    else if (node.op === "repeat" && node.node.op === "one") {
      if (node.min === node.max) size += node.min;
      else choices++;
    } else if (node.op === "group" && node.branches.every(isFixed)) {
      choices++;
      size += patternSize(node.branches);
    } else return undefined;
  }
  return choices === 0 || (choices === 1 && isPosition(branch[0], BEGIN)) ? size : undefined;
}

function isFixed(branch: PatternBranch): boolean {
  return branch.every((node) => node.op === "one" || node.op === "position");
}

function isPosition(node: PatternNode | undefined, re2: string): boolean {
  return node?.op === "position" && node.re2 === re2;
}

/** One test that must come out as `wanted`. */
interface Clause {
  readonly matcher: Matcher;
  readonly wanted: boolean;
}

function compileLinear(branches: readonly PatternBranch[], engine: LinearEngine): Matcher {
  const [first] = branches;
  if (first === undefined || branches.length > 1 || !first.some(({ op }) => op === "look")) {
    return engine(writeRe2(branches));
  }
  const clauses: Clause[] = [];
  let rest = [...first];
  if (isPosition(rest[0], BEGIN)) {
    let at = 1;
    for (; rest[at]?.op === "look"; at++) {
      const node = rest[at] as PatternNode & { op: "look" };
      if (!node.ahead) break;
      clauses.push({ matcher: engine(`${BEGIN}(?:${writeRe2(node.branches)})`), wanted: !node.negative });
    }
    rest = [rest[0]!, ...rest.slice(at)];
  }
  if (isPosition(rest.at(-1), END)) {
    let at = rest.length - 2;
    for (; rest[at]?.op === "look"; at--) {
      const node = rest[at] as PatternNode & { op: "look" };
      if (node.ahead) break;
      clauses.push({ matcher: engine(`(?:${writeRe2(node.branches)})${END}`), wanted: !node.negative });
    }
    rest = [...rest.slice(0, at + 1), rest.at(-1)!];
  }
  clauses.push({ matcher: engine(writeRe2([rest])), wanted: true });
  return { test: (text) => clauses.every(({ matcher, wanted }) => matcher.test(text) === wanted) };
}

let loading: Promise<LinearEngine> | undefined;

/** Loads the linear-time engine; once, however often it is called. */
export function loadLinearEngine(): Promise<LinearEngine> {
  loading ??= import("re2js").then(
    ({ RE2JS }) =>
      (re2: string) =>
        RE2JS.compile(re2),
  );
  return loading;
}
