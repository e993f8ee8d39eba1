/** Keeps the end of what a process wrote to stderr, in a fixed amount of memory (STD-01). */

const TAIL_BYTES = 8192;

/** A ring of the last 8 KiB. Writing costs the bytes written, however they were cut. */
export class StderrTail {
  readonly #ring = Buffer.alloc(TAIL_BYTES);
  #written = 0;

  /** Takes the next bytes. */
  push(chunk: Buffer): void {
    const kept = chunk.length > TAIL_BYTES ? chunk.subarray(chunk.length - TAIL_BYTES) : chunk;
    const at = (this.#written + chunk.length - kept.length) % TAIL_BYTES;
    const untilEdge = Math.min(kept.length, TAIL_BYTES - at);
    kept.copy(this.#ring, at, 0, untilEdge);
    kept.copy(this.#ring, 0, untilEdge);
    this.#written += chunk.length;
  }

  /** The tail as text. A process may write any bytes to stderr; what is not UTF-8 becomes U+FFFD. */
  text(): string {
    if (this.#written <= TAIL_BYTES) return this.#ring.toString("utf8", 0, this.#written);
    const edge = this.#written % TAIL_BYTES;
    const bytes = Buffer.concat([this.#ring.subarray(edge), this.#ring.subarray(0, edge)]);
    // The first character may have lost its beginning: its continuation bytes mean nothing.
    let start = 0;
    while (start < 3 && (bytes[start]! & 0xc0) === 0x80) start++;
    return bytes.toString("utf8", start);
  }
}
