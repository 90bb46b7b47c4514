/**
 * A circuit breaker: while a server is unavailable, requests fail immediately, and only probes connect to it.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { codeOf } from '../errors.ts';
import { withTimeout } from './timeout.ts';

/** How long a probe has to connect and to read a table. */
const probeTimeoutMs = 1_500;
const probePauseMs = 250;

export class Breaker {
  readonly #probe: () => Promise<void>;
  readonly #onFault: (fault: unknown) => void;
  #fault: { error: unknown } | undefined;
  #isProbing = false;
  #isClosed = false;

  /**
   * `probe` rejects while the server is unavailable. `onFault` gets the error of the first probe that fails, and
   * undefined when the server is back.
   */
  constructor(probe: () => Promise<void>, onFault: (fault: unknown) => void) {
    this.#probe = probe;
    this.#onFault = onFault;
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
    if (!this.#isProbing && !this.#isClosed) void this.#probeUntilBack();
  }

  /** Ends the probes. */
  close(): void {
    this.#isClosed = true;
  }

  async #probeUntilBack(): Promise<void> {
    this.#isProbing = true;
    for (let isReported = false; ; isReported = true) {
      const [error] = await withTimeout(this.#probe(), () => {}, probeTimeoutMs).then(
        () => [],
        (failure: unknown) => [failure],
      );
      if (this.#isClosed) return;
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
