/**
 * A circuit breaker: while a server is unavailable, requests fail immediately, and only probes connect to it.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { codeOf } from '../errors.ts';
import { silentMs, withTimeout } from './timeout.ts';

const probePauseMs = 250;

export class Breaker {
  readonly #probe: () => Promise<void>;
  readonly #onFault: (fault: unknown) => void;
  /** Ends the probes. */
  readonly #stop: AbortSignal;
  #fault: { error: unknown } | undefined;
  #isProbing = false;

  /**
   * `probe` connects and reads a table, and rejects while the server is unavailable. `onFault` gets the error of the first
   * probe that fails, and undefined when the server is back.
   */
  constructor(probe: () => Promise<void>, onFault: (fault: unknown) => void, stop: AbortSignal) {
    this.#probe = probe;
    this.#onFault = onFault;
    this.#stop = stop;
  }

  get isAvailable(): boolean {
    return this.#fault === undefined;
  }

  /** Throws the error of the server while it is unavailable. */
  assertAvailable(): void {
    if (this.#fault !== undefined) throw this.#fault.error;
  }

  /** The server is unavailable until a probe succeeds. */
  trip(error: unknown): void {
    this.#fault ??= { error };
    this.suspect();
  }

  /** The server did not respond in time. If it does not respond to a probe either, it is unavailable. */
  suspect(): void {
    if (!this.#isProbing && !this.#stop.aborted) void this.#probeUntilBack();
  }

  async #probeUntilBack(): Promise<void> {
    this.#isProbing = true;
    for (let isReported = false; ; isReported = true) {
      const [error] = await withTimeout(this.#probe(), silentMs).then(
        () => [],
        (failure: unknown) => [failure],
      );
      if (this.#stop.aborted) return;
      // A server that refuses a connection, because it has too many for example, still responds.
      const isBack = error === undefined || (this.isAvailable && codeOf(error) !== undefined);
      this.#fault = isBack ? undefined : { error };
      if (isReported === isBack) this.#onFault(error);
      if (isBack) break;
      await pause(probePauseMs, undefined, { ref: false });
    }
    this.#isProbing = false;
  }
}
