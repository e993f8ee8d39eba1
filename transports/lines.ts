/**
 * Newline framing: bytes in, one decoded line out, in time linear in the bytes for any chunking (STD-01).
 *
 * Sockets and pipes cut where they like: in the middle of a message, of a UTF-8 character, between `\r` and `\n`. A line
 * that lies whole in one chunk is decoded from that chunk without a copy; only what is left over is kept.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio}
 */

import { LimitError } from "../src/errors.ts";
import { node } from "./node.ts";

/** What a {@link LineReader} delivers to. */
export interface LineReaderOptions {
  /** The most bytes a line may have, its ending aside. */
  readonly messageBytes: number;
  /**
   * One line, without its `\n` or `\r\n`. Blank lines are left out. `isWhole` is false for what the stream ended in the
   * middle of: a line that lacks its ending, and perhaps more.
   */
  readonly onLine: (text: string, isWhole: boolean) => void;
  /** A line that is not UTF-8: what is wrong, and how many bytes it had. The reader goes on with the next line. */
  readonly onBadLine: (fault: string, bytes: number) => void;
  /** A line went over `messageBytes`. The reader has let go of everything and reads no further. */
  readonly onOversize: (error: LimitError) => void;
}

const LF = 0x0a;
const CR = 0x0d;
const BOM = 0xfeff;

/** Pieces below this are gathered in a block, so that a line sent byte by byte costs bytes, not a Buffer object each. */
const SMALL_PIECE = 4096;
const BLOCK_BYTES = 16_384;

/** Cuts a byte stream into lines. Feed it with `push`, and `end` when the stream has ended. */
export class LineReader {
  readonly #options: LineReaderOptions;
  readonly #allowed: number;
  readonly #buffer = node.buffer;
  /**
   * The beginning of a line whose end has not come yet: decoded as it comes for as long as it is ASCII, because a string
   * that grows by appending is copied once, when it is parsed.
   */
  #text = "";
  /** The rest of it, from the first piece that is not ASCII: such pieces may be cut inside a character. */
  #pieces: Buffer[] = [];
  /** How many bytes of that line there are, in all forms. */
  #held = 0;
  /** Where small pieces are gathered: `#block[#blockStart, #blockEnd)` is the end of that line. */
  #block: Buffer | undefined;
  #blockStart = 0;
  #blockEnd = 0;
  #stopped = false;
  #ending = false;

  constructor(options: LineReaderOptions) {
    this.#options = options;
    // No limit of the host's can make a string longer than the platform allows.
    this.#allowed = Math.min(options.messageBytes, this.#buffer.constants.MAX_STRING_LENGTH);
  }

  /** Takes the next bytes. The reader keeps no view of `chunk` that would keep a much larger buffer alive. */
  push(chunk: Uint8Array): void {
    if (this.#stopped) return;
    const bytes = Buffer.isBuffer(chunk)
      ? chunk
      : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let end = bytes.indexOf(LF);
    if (end === -1) {
      this.#keep(bytes);
      return;
    }
    let start = 0;
    if (this.#held > 0) {
      this.#finishHeld(bytes.subarray(0, end));
      start = end + 1;
      end = bytes.indexOf(LF, start);
    }
    if (end !== -1 && !this.#stopped) {
      // One look at the whole chunk tells how all its lines are decoded; line by line it would cost a view each.
      const ascii = this.#buffer.isAscii(bytes);
      do {
        if (ascii) this.#line(bytes.toString("latin1", start, end), end - start);
        else this.#decode("", bytes.subarray(start, end), end - start);
        start = end + 1;
        end = bytes.indexOf(LF, start);
      } while (end !== -1 && !this.#stopped);
    }
    if (start < bytes.length && !this.#stopped) this.#keep(start === 0 ? bytes : bytes.subarray(start));
  }

  /** The stream ended: a last line without a newline is delivered as it is, and as not whole. */
  end(): void {
    this.#ending = true;
    if (this.#held > 0 && !this.#stopped) this.#finishHeld(Buffer.alloc(0));
    this.stop();
  }

  /** Reads no further and lets go of what is held. */
  stop(): void {
    this.#stopped = true;
    this.#release();
    this.#block = undefined;
  }

  #keep(piece: Buffer): void {
    this.#held += piece.length;
    // One more than allowed may be the \r of the line's ending.
    if (this.#held > this.#allowed + 1) {
      this.#oversize();
    } else if (piece.length < SMALL_PIECE) {
      this.#gather(piece);
    } else {
      this.#closeBlock();
      if (!this.#append(piece))
        this.#pieces.push(piece.length * 2 < piece.buffer.byteLength ? Buffer.from(piece) : piece);
    }
  }

  #gather(piece: Buffer): void {
    if (this.#block === undefined || this.#blockEnd + piece.length > BLOCK_BYTES) {
      this.#closeBlock();
      if (this.#block === undefined || this.#blockEnd > 0) this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
      this.#blockStart = 0;
      this.#blockEnd = 0;
    }
    this.#block.set(piece, this.#blockEnd);
    this.#blockEnd += piece.length;
  }

  /** Adds what was gathered to the line. As a piece it stays where it is, and what is gathered next goes behind it. */
  #closeBlock(): void {
    if (this.#block === undefined || this.#blockStart === this.#blockEnd) return;
    const gathered = this.#block.subarray(this.#blockStart, this.#blockEnd);
    if (this.#append(gathered)) {
      this.#blockEnd = this.#blockStart;
    } else {
      this.#pieces.push(gathered);
      this.#blockStart = this.#blockEnd;
    }
  }

  /** Decodes a piece at once, if all before it was ASCII and it is too. */
  #append(piece: Buffer): boolean {
    if (this.#pieces.length > 0 || !this.#buffer.isAscii(piece)) return false;
    this.#text += piece.toString("latin1");
    return true;
  }

  #finishHeld(last: Buffer): void {
    this.#closeBlock();
    const size = this.#held + last.length;
    const isText = this.#append(last);
    const text = this.#text;
    const pieces = this.#pieces;
    this.#release();
    if (isText) this.#line(text, size);
    else this.#decode(text, pieces.length === 0 ? last : Buffer.concat([...pieces, last]), size);
  }

  #release(): void {
    this.#text = "";
    if (this.#pieces.length > 0) this.#pieces = [];
    this.#held = 0;
    // The pieces were views of the block, and they are gone: it can be filled from the front again.
    this.#blockStart = 0;
    this.#blockEnd = 0;
  }

  #decode(text: string, rest: Buffer, size: number): void {
    // Too much is too much before it is decoded, though its \r may yet be taken off.
    if (size > this.#allowed + 1) this.#oversize();
    else if (!this.#buffer.isUtf8(rest)) this.#options.onBadLine("the line is not UTF-8", size);
    else this.#line(text + rest.toString("utf8"), size);
  }

  /** @param size the line's bytes, with the `\r` of its ending if it has one */
  #line(ended: string, size: number): void {
    const last = ended.length - 1;
    const cr = ended.charCodeAt(last) === CR;
    if (size - (cr ? 1 : 0) > this.#allowed) {
      this.#oversize();
      return;
    }
    let text = cr ? ended.slice(0, last) : ended;
    if (text.charCodeAt(0) === BOM) text = text.slice(1);
    const first = text.charCodeAt(0);
    // A message begins with a character that is ASCII and no space: for all else it is worth a look.
    if (!(first > 0x20 && first < 0x7f) && text.trim() === "") return;
    this.#options.onLine(text, !this.#ending);
  }

  #oversize(): void {
    this.stop();
    const allowed = this.#allowed;
    this.#options.onOversize(
      new LimitError(
        `the peer sent a line of more than ${allowed} bytes. If answers of that size are expected, raise limits.messageBytes`,
        "messageBytes",
        allowed,
      ),
    );
  }
}
