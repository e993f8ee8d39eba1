/**
 * Reads an ECMA-262 regular expression into a small tree, and writes the tree as RE2 syntax.
 *
 * The dialects differ where it hurts: what `.` and `\s` match, how code points are escaped, what an empty class is. So the
 * pattern is not passed on as text; every piece is written anew with the meaning that JSON Schema gives it.
 * {@link https://json-schema.org/draft/2020-12/json-schema-core#section-6.4}
 */

/** A piece of a pattern. */
export type PatternNode =
  /** Matches exactly one code point. */
  | { readonly op: "one"; readonly re2: string }
  /** Matches a position: `^`, `$`, `\b`, `\B`. */
  | { readonly op: "position"; readonly re2: string }
  | { readonly op: "group"; readonly branches: readonly PatternBranch[] }
  | { readonly op: "repeat"; readonly node: PatternNode; readonly min: number; readonly max: number }
  | {
      readonly op: "look";
      readonly ahead: boolean;
      readonly negative: boolean;
      readonly branches: readonly PatternBranch[];
    };

/** One alternative: pieces in a row. */
export type PatternBranch = readonly PatternNode[];

export const BEGIN = "\\A";
export const END = "\\z";

/** A piece of syntax that cannot be matched in linear time, or that this reader does not know. */
export class UnsupportedSyntax extends Error {}

const SPACE =
  "\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}";
const NOT_SPACE =
  "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}";
const ANY = "\\x{0}-\\x{10ffff}";
const DOT = "[^\\x{a}\\x{d}\\x{2028}\\x{2029}]";
const CONTROLS: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, v: 11, f: 12 };

// The long names of general categories, which RE2 knows by their short names only.
const CATEGORIES: ReadonlyMap<string, string> = new Map([
  ["Letter", "L"],
  ["Uppercase_Letter", "Lu"],
  ["Lowercase_Letter", "Ll"],
  ["Titlecase_Letter", "Lt"],
  ["Modifier_Letter", "Lm"],
  ["Other_Letter", "Lo"],
  ["Mark", "M"],
  ["Nonspacing_Mark", "Mn"],
  ["Number", "N"],
  ["Decimal_Number", "Nd"],
  ["Punctuation", "P"],
  ["Symbol", "S"],
  ["Separator", "Z"],
  ["Space_Separator", "Zs"],
  ["Control", "Cc"],
  ["Format", "Cf"],
]);

/** Reads a pattern that `RegExp` has accepted; throws {@link UnsupportedSyntax} for a backreference. */
export function parsePattern(source: string): readonly PatternBranch[] {
  return new Reader(source).readAll();
}

/** Writes branches as RE2 syntax. Capturing, naming and laziness do not matter to a test, and are left out. */
export function writeRe2(branches: readonly PatternBranch[]): string {
  return branches.map((branch) => branch.map(writeNode).join("")).join("|");
}

function writeNode(node: PatternNode): string {
  switch (node.op) {
    case "one":
    case "position":
      return node.re2;
    case "group":
      return `(?:${writeRe2(node.branches)})`;
    case "repeat":
      return writeRepeat(node);
    case "look":
      throw new UnsupportedSyntax("a lookahead or lookbehind at this place");
  }
}

function writeRepeat({ node, min, max }: PatternNode & { op: "repeat" }): string {
  const inner = node.op === "repeat" || node.op === "position" ? `(?:${writeNode(node)})` : writeNode(node);
  if (max === Number.POSITIVE_INFINITY) {
    if (min < 2) return `${inner}${min === 0 ? "*" : "+"}`;
    return `${inner}{${min},}`;
  }
  if (min === 0 && max === 1) return `${inner}?`;
  return min === max ? `${inner}{${min}}` : `${inner}{${min},${max}}`;
}

/** How many single-character steps a pattern has once its counted repetitions are written out. */
export function patternSize(branches: readonly PatternBranch[]): number {
  let size = 0;
  for (const branch of branches) for (const node of branch) size += nodeSize(node);
  return size + branches.length - 1;
}

function nodeSize(node: PatternNode): number {
  switch (node.op) {
    case "one":
    case "position":
      return 1;
    case "group":
    case "look":
      return patternSize(node.branches);
    case "repeat":
      return nodeSize(node.node) * Math.max(1, node.max === Number.POSITIVE_INFINITY ? node.min : node.max);
  }
}

class Reader {
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  readAll(): readonly PatternBranch[] {
    const branches = this.#readBranches();
    if (this.#at < this.#source.length) throw new UnsupportedSyntax("an unmatched parenthesis");
    return branches;
  }

  #readBranches(): readonly PatternBranch[] {
    const branches: PatternBranch[] = [];
    let branch: PatternNode[] = [];
    while (this.#at < this.#source.length && this.#source[this.#at] !== ")") {
      if (this.#take("|")) {
        branches.push(branch);
        branch = [];
        continue;
      }
      const node = this.#readQuantified(this.#readAtom());
      // A plain group of one branch says nothing but its contents.
      if (node.op === "group" && node.branches.length === 1) branch.push(...node.branches[0]!);
      else branch.push(node);
    }
    branches.push(branch);
    return branches;
  }

  #readAtom(): PatternNode {
    if (this.#take("^")) return { op: "position", re2: BEGIN };
    if (this.#take("$")) return { op: "position", re2: END };
    if (this.#take(".")) return { op: "one", re2: DOT };
    if (this.#take("(")) return this.#readGroup();
    if (this.#take("[")) return { op: "one", re2: this.#readClass() };
    if (this.#take("\\")) return this.#readEscape();
    return one(this.#codePoint());
  }

  #readGroup(): PatternNode {
    if (!this.#take("?")) return this.#endGroup();
    if (this.#take(":")) return this.#endGroup();
    if (this.#take("=")) return this.#endLook(true, false);
    if (this.#take("!")) return this.#endLook(true, true);
    if (this.#take("<=")) return this.#endLook(false, false);
    if (this.#take("<!")) return this.#endLook(false, true);
    if (!this.#take("<")) throw new UnsupportedSyntax("a group with flags");
    this.#at = this.#source.indexOf(">", this.#at) + 1;
    return this.#endGroup();
  }

  #endGroup(): PatternNode {
    const branches = this.#readBranches();
    this.#at++;
    return { op: "group", branches };
  }

  #endLook(ahead: boolean, negative: boolean): PatternNode {
    const branches = this.#readBranches();
    this.#at++;
    return { op: "look", ahead, negative, branches };
  }

  #readQuantified(node: PatternNode): PatternNode {
    const bounds = this.#readQuantifier();
    if (bounds === undefined) return node;
    if (node.op === "look") throw new UnsupportedSyntax("a repeated lookahead");
    this.#take("?");
    return { op: "repeat", node, ...bounds };
  }

  #readQuantifier(): { min: number; max: number } | undefined {
    if (this.#take("*")) return { min: 0, max: Number.POSITIVE_INFINITY };
    if (this.#take("+")) return { min: 1, max: Number.POSITIVE_INFINITY };
    if (this.#take("?")) return { min: 0, max: 1 };
    COUNTED.lastIndex = this.#at;
    const counted = COUNTED.exec(this.#source);
    if (counted === null) return undefined;
    this.#at = COUNTED.lastIndex;
    const min = Number(counted[1]);
    if (counted[2] === undefined) return { min, max: min };
    return { min, max: counted[3] === "" ? Number.POSITIVE_INFINITY : Number(counted[3]) };
  }

  #readEscape(): PatternNode {
    const set = this.#readSetEscape();
    if (set !== undefined) return { op: "one", re2: `[${set}]` };
    if (this.#take("b")) return { op: "position", re2: "\\b" };
    if (this.#take("B")) return { op: "position", re2: "\\B" };
    const next = this.#source[this.#at] ?? "";
    if (/[1-9]/.test(next) || this.#source.startsWith("k<", this.#at))
      throw new UnsupportedSyntax("a backreference");
    return one(this.#readCharacterEscape());
  }

  /** `\d`, `\s`, `\p{…}` and their opposites, as the inside of a class. */
  #readSetEscape(): string | undefined {
    if (this.#take("d")) return "0-9";
    if (this.#take("D")) return "\\x{0}-\\x{2f}\\x{3a}-\\x{10ffff}";
    if (this.#take("w")) return "0-9A-Za-z_";
    if (this.#take("W")) return "\\x{0}-\\x{2f}\\x{3a}-\\x{40}\\x{5b}-\\x{5e}\\x{60}\\x{7b}-\\x{10ffff}";
    if (this.#take("s")) return SPACE;
    if (this.#take("S")) return NOT_SPACE;
    PROPERTY.lastIndex = this.#at;
    const property = PROPERTY.exec(this.#source);
    if (property === null) return undefined;
    this.#at = PROPERTY.lastIndex;
    const name = property[2]!.replace(/^(?:General_Category|gc|Script|sc)=/, "");
    if (name === "ASCII") return property[1] === "p" ? "\\x{0}-\\x{7f}" : "\\x{80}-\\x{10ffff}";
    if (name === "Any") return property[1] === "p" ? ANY : "";
    return `\\${property[1]}{${CATEGORIES.get(name) ?? name}}`;
  }

  /** The code point of an escape for one character; the backslash has been read. */
  #readCharacterEscape(): number {
    HEX.lastIndex = this.#at;
    const hex = HEX.exec(this.#source);
    if (hex !== null) {
      this.#at = HEX.lastIndex;
      if (hex[1] !== undefined) {
        return (
          (Number.parseInt(hex[1], 16) - 0xd800) * 0x400 + (Number.parseInt(hex[2]!, 16) - 0xdc00) + 0x10000
        );
      }
      return Number.parseInt(hex[3] ?? hex[4] ?? hex[5]!, 16);
    }
    const control = CONTROLS[this.#source[this.#at] ?? ""];
    if (control !== undefined) {
      this.#at++;
      return control;
    }
    if (this.#take("0")) return 0;
    if (/c[A-Za-z]/y.test(this.#source.slice(this.#at, this.#at + 2))) {
      this.#at += 2;
      return this.#source.charCodeAt(this.#at - 1) % 32;
    }
    return this.#codePoint();
  }

  #readClass(): string {
    const negated = this.#take("^");
    let items = "";
    while (this.#at < this.#source.length && !this.#take("]")) {
      const from = this.#readClassAtom();
      if (this.#source[this.#at] === "-" && this.#source[this.#at + 1] !== "]" && typeof from === "number") {
        const before = this.#at++;
        const to = this.#readClassAtom();
        if (typeof to === "number") {
          items += `${escaped(from)}-${escaped(to)}`;
          continue;
        }
        this.#at = before;
      }
      items += typeof from === "number" ? escaped(from) : from;
    }
    if (items !== "") return `[${negated ? "^" : ""}${items}]`;
    return negated ? `[${ANY}]` : `[^${ANY}]`;
  }

  #readClassAtom(): number | string {
    if (!this.#take("\\")) return this.#codePoint();
    if (this.#take("b")) return 8;
    return this.#readSetEscape() ?? this.#readCharacterEscape();
  }

  #codePoint(): number {
    const point = this.#source.codePointAt(this.#at) ?? 0;
    this.#at += point > 0xffff ? 2 : 1;
    return point;
  }

  #take(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }
}

const COUNTED = /\{(\d+)(,(\d*))?\}/y;
const PROPERTY = /([pP])\{([^}]*)\}/y;
const HEX =
  /u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})/y;

function one(point: number): PatternNode {
  return { op: "one", re2: escaped(point) };
}

function escaped(point: number): string {
  return `\\x{${point.toString(16)}}`;
}
