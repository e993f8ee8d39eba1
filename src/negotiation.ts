/**
 * Which revision is spoken, and whether the peer speaks a modern one at all (VER-01, VER-02).
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning}
 */

import {
  HttpStatusError,
  LegacyPeerError,
  type RallyError,
  RpcError,
  type TransportError,
  UnsupportedVersionError,
} from "./errors.ts";
import { CODE, isLegacyCode, isModernCode, PROTOCOL_VERSION } from "./protocol.ts";
import { clip, showJson } from "./show.ts";
import type { ErrorFrame, JsonObject } from "./wire.ts";
import { isObject } from "./wire.ts";

/** The part of a `server/discover` result that negotiation reads. */
export interface Discovery {
  readonly supportedVersions: readonly string[];
  readonly [key: string]: unknown;
}

/** Statuses that never tell of an old server: they speak of credentials, time or load (VER-02, HTTP-03). */
const NO_TELL: ReadonlySet<number> = new Set([401, 403, 407, 408, 429]);

/** The version in use and what is known of the peer's era. One per client. */
export class Negotiation {
  readonly #versions: readonly string[];
  #version: string;
  #modern = false;

  /** @param versions What this client speaks, the preferred first. */
  constructor(versions: readonly string[] = [PROTOCOL_VERSION]) {
    this.#versions = versions;
    this.#version = versions[0]!;
  }

  /** The version that the next attempt declares. */
  get version(): string {
    return this.#version;
  }

  /** The peer gave an answer that only a server of a modern revision gives. */
  sawModern(): void {
    this.#modern = true;
  }

  /** Takes a discovery: picks the best mutual version, or says why there is none. */
  adopt(discovery: Discovery): RallyError | undefined {
    const { supportedVersions } = discovery;
    const mutual = this.#versions.find((version) => supportedVersions.includes(version));
    if (mutual === undefined) return this.#noMutual(supportedVersions, undefined);
    this.#version = mutual;
    return undefined;
  }

  /**
   * After -32022 in answer to a request that declared `rejected`: picks another version, or gives the error that names
   * both lists. A list that holds only the rejected version is a server that contradicts itself, and fails.
   */
  renegotiate(error: RpcError, rejected: string): RallyError | undefined {
    const data = isObject(error.data) ? error.data : {};
    const supported = Array.isArray(data.supported)
      ? data.supported.filter((version): version is string => typeof version === "string")
      : [];
    const mutual = this.#versions.find((version) => version !== rejected && supported.includes(version));
    if (mutual === undefined) return this.#noMutual(supported, error.status);
    this.#version = mutual;
    return undefined;
  }

  /** Reads an error answer over a binding that has no handshake: an old server's answer becomes a LegacyPeerError. */
  judgeErrorFrame(
    frame: ErrorFrame,
    status: number | undefined,
    isOurs: boolean,
  ): LegacyPeerError | undefined {
    const { code, message } = frame.error;
    if (isModernCode(code)) this.#modern = true;
    if (this.#modern || status === undefined || status < 400 || status > 499 || NO_TELL.has(status))
      return undefined;
    if (isOurs && !isLegacyCode(code)) return undefined;
    return legacyPeer(`it answered HTTP ${status} with the error ${code} "${clip(message, 300)}"`, {
      status,
      body: showJson(frame.error, 300),
    });
  }

  /** Reads a failed exchange the same way. */
  judgeFailure(error: TransportError): LegacyPeerError | undefined {
    if (this.#modern || !(error instanceof HttpStatusError)) return undefined;
    const { status, body } = error;
    if (status < 400 || status > 499 || NO_TELL.has(status)) return undefined;
    return legacyPeer(`it answered HTTP ${status} without a JSON-RPC error of a modern revision`, {
      status,
      body,
      cause: error,
    });
  }

  /** Reads the failure of the probe on a shared channel: anything but a modern error or a loss is an old server. */
  judgeProbe(error: RallyError, probeMs: number): RallyError {
    if (error.code === "timeout") {
      return legacyPeer(
        `it gave no answer to server/discover within ${probeMs} ms (a server that takes longer to start needs a longer probeMs)`,
        { cause: error },
      );
    }
    if (error instanceof RpcError && !isModernCode(error.rpcCode)) {
      return legacyPeer(
        `it answered server/discover with the error ${error.rpcCode} "${clip(error.message, 300)}"`,
        {
          cause: error,
        },
      );
    }
    if (error.code === "protocol-violation" || error.code === "frame") {
      return legacyPeer("its answer to server/discover is no discovery", { cause: error });
    }
    return error;
  }

  #noMutual(supported: readonly string[], status: number | undefined): UnsupportedVersionError {
    return new UnsupportedVersionError(
      `No common protocol version: this client speaks ${list(this.#versions)}, the server ${list(supported)}. Set protocolVersions to one that the server speaks, if this package supports it.`,
      supported,
      this.#versions,
      status,
    );
  }
}

/** The error for a server of the older revisions. */
export function legacyPeer(
  how: string,
  details: { status?: number; body?: string; cause?: unknown },
): LegacyPeerError {
  return new LegacyPeerError(
    `The server does not speak a modern revision of MCP: ${how}. It probably speaks only the older revisions that begin with initialize; this client speaks ${PROTOCOL_VERSION}. Update the server, or check the address.`,
    details,
  );
}

/** Whether a JSON-RPC error can be recovered from, and how. */
export function recoveryFor(method: string, rpcCode: number): "version" | "headers" | undefined {
  if (rpcCode === CODE.unsupportedProtocolVersion) return "version";
  return rpcCode === CODE.headerMismatch && method === "tools/call" ? "headers" : undefined;
}

/** Reads a discovery that a host or a server gave. */
export function readDiscovery(result: JsonObject): Discovery | undefined {
  const { supportedVersions } = result;
  return Array.isArray(supportedVersions) && supportedVersions.every((version) => typeof version === "string")
    ? (result as unknown as Discovery)
    : undefined;
}

function list(versions: readonly string[]): string {
  return versions.length === 0 ? "none that it named" : clip(versions.join(", "), 300);
}
