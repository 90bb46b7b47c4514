/**
 * A circuit breaker: while a server is unavailable, requests fail immediately, and only probes connect to it.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { codeOf } from './errors.ts';
import { withTimeout } from './timeout.ts';

/** How long a server that stopped responding has to accept a new connection, and to read a table. */
const suspectTimeoutMs = 1_500;
/** A server that responds slowly is probed at most this often. */
const suspectIntervalMs = 2_000;
/** How long requests are still accepted after a failure, because most are brief. */
const graceMs = 250;
/** The pauses between probes: each is twice as long as the one before. */
const minPauseMs = 50;
const maxPauseMs = 500;

export interface BreakerServer {
  /** Rejects while the server is unavailable. */
  probe: () => Promise<void>;
  /** Called before the first probe of an unavailable server. */
  onTrip: () => void;
  /** Gets the error of the first probe that fails, and undefined when the server is back. */
  onFault: (fault: unknown) => void;
}

interface Fault {
  /** The latest one. */
  error: unknown;
  sinceMs: number;
}

export class Breaker {
  readonly #server: BreakerServer;
  readonly #stop = new AbortController();
  #fault: Fault | undefined;
  #suspectedAtMs = -Infinity;

  constructor(server: BreakerServer) {
    this.#server = server;
  }

  get isOpen(): boolean {
    return this.#fault !== undefined;
  }

  /** Throws the error of the server if no connection can be opened. */
  assertClosed(): void {
    if (this.#fault !== undefined) throw this.#fault.error;
  }

  /** The same, but not in the first moments of a failure. */
  assertAvailable(): void {
    if (this.#fault === undefined) return;
    if (performance.now() >= this.#fault.sinceMs + graceMs) throw this.#fault.error;
  }

  /** The server is unavailable: probes it until it is back. */
  trip(error: unknown): void {
    if (this.isOpen || this.#stop.signal.aborted) return;
    this.#fault = { error, sinceMs: performance.now() };
    this.#server.onTrip();
    void this.#probeUntilBack(this.#fault);
  }

  /** The server did not respond in time. If it does not respond to a probe either, it is unavailable. */
  suspect(error: unknown): void {
    const nowMs = performance.now();
    if (this.isOpen || nowMs < this.#suspectedAtMs + suspectIntervalMs) return;
    this.#suspectedAtMs = nowMs;
    void this.#tripUnlessProbed(error);
  }

  /** Ends the probes. */
  close(): void {
    this.#stop.abort();
  }

  async #tripUnlessProbed(error: unknown): Promise<void> {
    try {
      await withTimeout(this.#server.probe(), () => {}, suspectTimeoutMs);
    } catch (failure) {
      // A server that refuses a connection, because it has too many for example, still responds.
      if (codeOf(failure) === undefined) this.trip(error);
    }
  }

  async #probeUntilBack(fault: Fault): Promise<void> {
    const { signal } = this.#stop;
    let isReported = false;
    for (let pauseMs = minPauseMs; ; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
      try {
        await pause(pauseMs, undefined, { signal });
        await this.#server.probe();
        break;
      } catch (error) {
        if (signal.aborted) return;
        fault.error = error;
        if (!isReported) this.#server.onFault(error);
        isReported = true;
      }
    }
    this.#fault = undefined;
    if (isReported) this.#server.onFault(undefined);
  }
}
