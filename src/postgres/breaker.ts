/**
 * A circuit breaker: while a server is unavailable, requests fail immediately, and only probes connect to it.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { codeOf } from './errors.ts';
import { withTimeout } from './timeout.ts';

/** How long a probe has to connect and to read a table. */
const probeTimeoutMs = 1_500;
/** The pauses between probes: each is twice as long as the one before. */
const minPauseMs = 50;
const maxPauseMs = 500;

export interface BreakerServer {
  /** Rejects while the server is unavailable. */
  probe: () => Promise<void>;
  /** Gets the error of the first probe that fails, and undefined when the server is back. */
  onFault: (fault: unknown) => void;
}

export class Breaker {
  readonly #server: BreakerServer;
  readonly #stop = new AbortController();
  #isProbing = false;
  #fault: { error: unknown } | undefined;

  constructor(server: BreakerServer) {
    this.#server = server;
  }

  get isOpen(): boolean {
    return this.#fault !== undefined;
  }

  /** Throws the error of the server while it is unavailable. */
  assertClosed(): void {
    if (this.#fault !== undefined) throw this.#fault.error;
  }

  /** The server is unavailable: probes it until it is back. */
  trip(error: unknown): void {
    this.#fault ??= { error };
    this.suspect();
  }

  /** The server did not respond in time. If it does not respond to a probe either, it is unavailable. */
  suspect(): void {
    if (!this.#isProbing && !this.#stop.signal.aborted) void this.#probeUntilBack();
  }

  /** Ends the probes. */
  close(): void {
    this.#stop.abort();
  }

  async #probeUntilBack(): Promise<void> {
    this.#isProbing = true;
    let isReported = false;
    for (let pauseMs = minPauseMs; ; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
      try {
        await withTimeout(this.#server.probe(), () => {}, probeTimeoutMs);
        break;
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        // A server that refuses a connection, because it has too many for example, still responds.
        if (this.#fault === undefined && codeOf(error) !== undefined) break;
        this.#fault = { error };
        if (!isReported) this.#server.onFault(error);
        isReported = true;
      }
      await pause(pauseMs, undefined, { ref: false });
    }
    this.#isProbing = false;
    this.#fault = undefined;
    if (isReported) this.#server.onFault(undefined);
  }
}
