/**
 * Makes text of a server harmless on a terminal: control characters, escape sequences and characters that reorder or hide
 * text are shown as what they are, `\u{1b}`, instead of being obeyed.
 */

// Cc: controls, which begin every escape sequence; Cf: bidi controls and invisible characters; Zl, Zp: line and paragraph
// separators; Cs: lone surrogates. The joiners U+200C and U+200D are needed by scripts and emoji, and move nothing.
const HARMFUL = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
const HARMLESS: ReadonlySet<string> = new Set(["\n", "\t", "\u200c", "\u200d"]);

/** Text of several lines. Line feeds and tabs stay; CRLF becomes a line feed. */
export function sanitise(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replace(HARMFUL, (character) => (HARMLESS.has(character) ? character : escaped(character)));
}

/** Text for one line: line breaks and tabs become a space. */
export function sanitiseLine(text: string): string {
  return sanitise(text.replace(/[\r\n\t\u2028\u2029]+/g, " "));
}

/** As {@link sanitiseLine}, and no longer than `most` characters. */
export function clipLine(text: string, most: number): string {
  const line = sanitiseLine(text.length > most * 2 ? text.slice(0, most * 2) : text);
  const points = [...line];
  return points.length > most ? `${points.slice(0, most - 1).join("")}…` : line;
}

/**
 * JSON text for a terminal: the same document, with the characters that a terminal could obey written as escapes.
 * `JSON.stringify` itself escapes only those below U+0020.
 */
export function sanitiseJson(json: string): string {
  return json.replace(HARMFUL, (character) => {
    if (character === "\n" || HARMLESS.has(character)) return character;
    let text = "";
    for (let index = 0; index < character.length; index++) {
      text += `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`;
    }
    return text;
  });
}

function escaped(character: string): string {
  return `\\u{${character.codePointAt(0)!.toString(16)}}`;
}
