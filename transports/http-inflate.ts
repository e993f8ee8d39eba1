/**
 * Decodes compressed bodies. This transport does not ask for compression, but a server or a proxy may compress all the
 * same. zlib is reached only then.
 */

import type { Transform } from "node:stream";
import { node } from "./node.ts";

/** Where decoded bytes go. */
export interface InflateSink {
  inflated(chunk: Uint8Array): void;
  inflateEnded(): void;
  inflateFailed(cause: Error): void;
  /** The decoder has caught up: more may be written. */
  inflateReady(): void;
}

/** A running decoder. */
export interface Inflater {
  /** False when the writer should pause until `inflateReady`. */
  write(chunk: Uint8Array): boolean;
  end(): void;
  /** Stops at once; the sink hears nothing more. */
  stop(): void;
}

/** Whether a `Content-Encoding` value means that there is nothing to decode. */
export function isIdentity(encoding: string): boolean {
  return encoding.trim() === "" || encoding.trim().toLowerCase() === "identity";
}

/** Starts a decoder for a `Content-Encoding` value; undefined when the encoding is not known. */
export function startInflater(encoding: string, sink: InflateSink): Inflater | undefined {
  const stream = openDecoder(encoding.trim().toLowerCase());
  if (stream === undefined) return undefined;
  let stopped = false;
  stream.on("data", (chunk: Buffer) => {
    if (!stopped) sink.inflated(chunk);
  });
  stream.on("end", () => {
    if (!stopped) sink.inflateEnded();
  });
  stream.on("error", (error) => {
    if (!stopped) sink.inflateFailed(error);
  });
  stream.on("drain", () => {
    if (!stopped) sink.inflateReady();
  });
  return {
    write: (chunk) => stream.write(chunk),
    end: () => {
      stream.end();
    },
    stop: () => {
      stopped = true;
      stream.destroy();
    },
  };
}

function openDecoder(encoding: string): Transform | undefined {
  const zlib = node.zlib;
  // Every flush of the sender is given out at once, or an event would wait in the decoder for the next one.
  const flush = { flush: zlib.constants.Z_SYNC_FLUSH, finishFlush: zlib.constants.Z_SYNC_FLUSH };
  switch (encoding) {
    case "gzip":
    case "x-gzip":
      return zlib.createGunzip(flush);
    case "deflate":
      return zlib.createInflate(flush);
    case "br":
      return zlib.createBrotliDecompress({
        flush: zlib.constants.BROTLI_OPERATION_FLUSH,
        finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH,
      });
    default:
      return undefined;
  }
}
