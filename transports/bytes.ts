import { decodeUtf8 } from "../src/wire.ts";
import { node } from "./node.ts";

let buffer: typeof node.buffer | undefined;

/** Decodes bytes as UTF-8, strictly. ASCII, which most bodies are, is found out and copied in a fifth of the time. */
export function decodeText(bytes: Uint8Array): string {
  buffer ??= node.buffer;
  if (!buffer.isAscii(bytes)) return decodeUtf8(bytes);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}

/**
 * Collects a body of unknown size up to a bound (LIM-01). One chunk is handed back as it came; many small ones are packed
 * together, so that a body that trickles in byte by byte costs about its own size and no more.
 */
export class ByteCollector {
  readonly #limitBytes: number;
  #only: Uint8Array | undefined;
  #chunks: Uint8Array[] | undefined;
  #pack: Uint8Array | undefined;
  #packed = 0;
  #size = 0;

  /** @param limitBytes how many bytes may be collected */
  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** How many bytes have come, the refused ones included. */
  get size(): number {
    return this.#size;
  }

  /** Takes a chunk, which must not be changed afterwards. False when the bound is passed: the chunk is then not kept. */
  push(chunk: Uint8Array): boolean {
    this.#size += chunk.length;
    if (this.#size > this.#limitBytes) return false;
    if (this.#only === undefined && this.#chunks === undefined) {
      this.#only = chunk;
      return true;
    }
    if (this.#chunks === undefined) {
      this.#chunks = [];
      const first = this.#only!;
      this.#only = undefined;
      this.#add(this.#chunks, first);
    }
    this.#add(this.#chunks, chunk);
    return true;
  }

  /** All that was collected, in order. */
  take(): Uint8Array {
    if (this.#only !== undefined) return this.#only;
    if (this.#chunks === undefined) return new Uint8Array(0);
    this.#flush(this.#chunks);
    return this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
  }

  #add(chunks: Uint8Array[], chunk: Uint8Array): void {
    if (chunk.length >= PACK_BYTES / 4) {
      this.#flush(chunks);
      chunks.push(chunk);
      return;
    }
    if (this.#packed + chunk.length > PACK_BYTES) this.#flush(chunks);
    this.#pack ??= new Uint8Array(PACK_BYTES);
    this.#pack.set(chunk, this.#packed);
    this.#packed += chunk.length;
  }

  #flush(chunks: Uint8Array[]): void {
    if (this.#packed === 0) return;
    chunks.push(this.#packed === PACK_BYTES ? this.#pack! : this.#pack!.slice(0, this.#packed));
    // The full array now belongs to the list; a copied one can be filled again.
    if (this.#packed === PACK_BYTES) this.#pack = undefined;
    this.#packed = 0;
  }
}

const PACK_BYTES = 16 * 1024;
