/** Finds where a text stops being JSON: `JSON.parse` says so only for some faults, and in other words on every version. */

/** The first fault of a text. */
export interface JsonFault {
  /** The index of the character at fault; the text's length when it ends too early. */
  readonly position: number;
  /** What should stand there. */
  readonly expected: string;
}

/** The fault of a text that `JSON.parse` refuses; undefined for one that it takes. */
export function findJsonFault(text: string): JsonFault | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch {
    try {
      new Scanner(text).document();
    } catch (error) {
      if (error instanceof Fault) return error;
      throw error;
    }
    return { position: text.length, expected: "JSON" };
  }
}

/** A line and a mark under the fault: at most `width` characters of the text around it. */
export function excerpt(text: string, position: number, width = 60): string {
  const lineStart = text.lastIndexOf("\n", position - 1) + 1;
  const newline = text.indexOf("\n", position);
  const lineEnd = newline === -1 ? text.length : newline;
  const from = Math.max(lineStart, Math.min(position - Math.floor(width / 2), lineEnd - width));
  const to = Math.min(lineEnd, from + width);
  const before = from > lineStart ? "…" : "";
  const after = to < lineEnd ? "…" : "";
  // Every character is one column wide here, so that the mark stands where the fault is.
  const shown = [...text.slice(from, to)].map((character) =>
    /[\p{C}\p{Z}]/u.test(character) ? " " : character,
  );
  const column = [...text.slice(from, position)].length + before.length;
  return `  ${before}${shown.join("")}${after}\n  ${" ".repeat(column)}^`;
}

class Fault implements JsonFault {
  readonly position: number;
  readonly expected: string;

  constructor(position: number, expected: string) {
    this.position = position;
    this.expected = expected;
  }
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const SPACE = /[ \t\n\r]*/y;
const WORDS = ["true", "false", "null"];

/** A JSON reader that keeps nothing but its place. Deep nesting is kept in a list, so that it cannot overflow the stack. */
class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): void {
    const open: ("[" | "{")[] = [];
    this.#value(open);
    for (;;) {
      this.#space();
      const inside = open.at(-1);
      if (inside === undefined) {
        if (this.#at < this.#text.length) this.#fail("nothing more after the value");
        return;
      }
      const end = inside === "[" ? "]" : "}";
      if (this.#take(end)) {
        open.pop();
        continue;
      }
      if (!this.#take(",")) this.#fail(`"," or "${end}"`);
      this.#space();
      if (inside === "{") this.#name();
      this.#value(open);
    }
  }

  /** Reads a scalar, or the beginning of an array or object up to its first scalar or its empty end. */
  #value(open: ("[" | "{")[]): void {
    for (;;) {
      this.#space();
      if (this.#take("[")) {
        this.#space();
        open.push("[");
        if (this.#peek("]")) return;
      } else if (this.#take("{")) {
        this.#space();
        open.push("{");
        if (this.#peek("}")) return;
        this.#name();
      } else {
        this.#scalar();
        return;
      }
    }
  }

  #name(): void {
    if (!this.#peek('"')) this.#fail("a name in double quotes");
    this.#string();
    this.#space();
    if (!this.#take(":")) this.#fail('":"');
  }

  #scalar(): void {
    if (this.#peek('"')) return this.#string();
    for (const word of WORDS) if (this.#take(word)) return;
    NUMBER.lastIndex = this.#at;
    const number = NUMBER.exec(this.#text);
    if (number === null)
      this.#fail(this.#at < this.#text.length ? "a JSON value (text needs double quotes)" : "a JSON value");
    this.#at += number[0].length;
  }

  #string(): void {
    this.#at++;
    for (; ; this.#at++) {
      const character = this.#text[this.#at];
      if (character === undefined) this.#fail("a closing double quote");
      if (character === '"') {
        this.#at++;
        return;
      }
      if (character < " ") this.#fail("an escape such as \\n in place of this control character");
      if (character === "\\") this.#escape();
    }
  }

  #escape(): void {
    const next = this.#text[this.#at + 1];
    if (next === "u") {
      if (!/^[0-9a-fA-F]{4}$/.test(this.#text.slice(this.#at + 2, this.#at + 6))) {
        this.#fail("four hexadecimal digits after \\u");
      }
      this.#at += 5;
    } else if (next !== undefined && '"\\/bfnrt'.includes(next)) this.#at++;
    else this.#fail('a JSON escape; a backslash itself is written as "\\\\"');
  }

  #space(): void {
    SPACE.lastIndex = this.#at;
    this.#at += SPACE.exec(this.#text)![0].length;
  }

  #peek(token: string): boolean {
    return this.#text.startsWith(token, this.#at);
  }

  #take(token: string): boolean {
    if (!this.#peek(token)) return false;
    this.#at += token.length;
    return true;
  }

  #fail(expected: string): never {
    throw new Fault(this.#at, expected);
  }
}
