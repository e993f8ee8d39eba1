/**
 * Server-Sent Events of one response body, as the messages that MCP carries in them (HTTP-01).
 *
 * The grammar is eventsource-parser's. What is added here is what a byte stream of a stranger needs: strict UTF-8 across
 * any chunking, a bound on the size of an event (LIM-01), an event as soon as its last line break is there even when that
 * is a lone CR, and memory that does not grow with the number of chunks.
 * {@link https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream}
 */

import { createParser, type EventSourceParser } from "eventsource-parser";

/** Why a stream cannot be read on: an event above the bound, or bytes that are not UTF-8. */
export type SseFault = "too-large" | "not-utf8";

const LF = 10;
const CR = 13;
/** Chunks without a line break and below this size are gathered: one string for each would cost far more than its bytes. */
const GATHER_BELOW = 1024;
const GATHER_BYTES = 4096;
/** Room for the field name and separator that the parser counts with an unfinished line. */
const LINE_OVERHEAD = 64;

// The mark is stripped by hand: a decoder that does so would also strip one at the start of any later chunk.
const STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Reads one event stream. Only events of the type `message` with data are delivered: other types, comments, `id` and
 * `retry` mean nothing in this revision of MCP.
 */
export class SseReader {
  readonly #parser: EventSourceParser;
  readonly #limitBytes: number;
  readonly #onMessage: (data: string) => void;
  #fault: SseFault | undefined;
  /** Bytes that wait for more: small pieces of a line, or the beginning of a character. */
  #held: Uint8Array | undefined;
  #heldBytes = 0;
  #started = false;
  #skipLf = false;

  /**
   * @param limitBytes the largest data of one event, in bytes
   * @param onMessage called with the data of each message, in order, during `push` and `end`
   */
  constructor(limitBytes: number, onMessage: (data: string) => void) {
    this.#limitBytes = limitBytes;
    this.#onMessage = onMessage;
    this.#parser = createParser({
      maxBufferSize: limitBytes + LINE_OVERHEAD,
      onEvent: (event) => {
        if (event.event === undefined || event.event === "message") this.#message(event.data);
      },
      onError: (error) => {
        if (error.type === "max-buffer-size-exceeded") this.#fault ??= "too-large";
      },
    });
  }

  /** Takes the next bytes. Gives the fault once there is one; nothing is delivered after it. */
  push(chunk: Uint8Array): SseFault | undefined {
    if (this.#fault !== undefined || chunk.length === 0) return this.#fault;
    if (chunk.length < GATHER_BELOW && chunk[chunk.length - 1] !== LF && !hasLineBreak(chunk)) {
      this.#gather(chunk);
    } else {
      this.#decode(this.#heldBytes > 0 ? this.#takeHeld(chunk) : chunk);
    }
    return this.#fault;
  }

  /**
   * Tells that the stream is over. The standard drops an event whose closing blank line never came; here it is still
   * delivered, for the reader of the message to judge: a server that forgot the last line break has answered all the same.
   */
  end(): SseFault | undefined {
    if (this.#fault !== undefined) return this.#fault;
    if (this.#heldBytes > 0) {
      const rest = this.#takeHeld(new Uint8Array(0));
      this.#decode(rest.subarray(0, completeLength(rest)));
    }
    if (this.#fault === undefined) this.#parser.feed("\n\n");
    return this.#fault;
  }

  #message(data: string): void {
    if (data === "" || this.#fault !== undefined) return;
    // A character is at most three bytes per UTF-16 unit, so the exact count is seldom needed.
    if (
      data.length > this.#limitBytes ||
      (data.length * 3 > this.#limitBytes && Buffer.byteLength(data) > this.#limitBytes)
    ) {
      this.#fault = "too-large";
      return;
    }
    this.#onMessage(data);
  }

  #gather(chunk: Uint8Array): void {
    if (this.#heldBytes + chunk.length > GATHER_BYTES) {
      this.#decode(this.#takeHeld(chunk));
      return;
    }
    this.#held ??= new Uint8Array(GATHER_BYTES);
    this.#held.set(chunk, this.#heldBytes);
    this.#heldBytes += chunk.length;
  }

  #takeHeld(chunk: Uint8Array): Uint8Array {
    const all = new Uint8Array(this.#heldBytes + chunk.length);
    all.set(this.#held!.subarray(0, this.#heldBytes));
    all.set(chunk, this.#heldBytes);
    this.#heldBytes = 0;
    return all;
  }

  #decode(bytes: Uint8Array): void {
    const complete = completeLength(bytes);
    let text: string;
    try {
      text = STRICT_UTF8.decode(complete === bytes.length ? bytes : bytes.subarray(0, complete));
    } catch {
      this.#fault = "not-utf8";
      return;
    }
    if (complete < bytes.length) this.#gather(bytes.subarray(complete));
    if (!this.#started && text !== "") {
      this.#started = true;
      if (text.charCodeAt(0) === 0xfeff) text = text.slice(1);
    }
    this.#feed(text);
  }

  #feed(text: string): void {
    if (this.#skipLf && text !== "") {
      this.#skipLf = false;
      if (text.charCodeAt(0) === LF) text = text.slice(1);
    }
    if (text === "") return;
    // The parser holds a CR at the end of a chunk back, to see whether an LF follows. On a stream that uses CR alone that
    // would hold the answer back too, so the pair is completed here and the LF is dropped if it does come.
    if (text.charCodeAt(text.length - 1) === CR) {
      this.#skipLf = true;
      text += "\n";
    }
    this.#parser.feed(text);
  }
}

function hasLineBreak(bytes: Uint8Array): boolean {
  return bytes.includes(LF) || bytes.includes(CR);
}

/** How many of the bytes end on a whole character. */
function completeLength(bytes: Uint8Array): number {
  const length = bytes.length;
  let start = length - 1;
  if (start < 0 || bytes[start]! < 0x80) return length;
  while (start > 0 && start > length - 4 && (bytes[start]! & 0xc0) === 0x80) start--;
  const lead = bytes[start]!;
  const size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return length - start < size ? start : length;
}
