/**
 * Whether a server can be used. Requests rely on a check that is at most a second old. After a failure, a probe decides:
 * until one succeeds, requests fail immediately, and only probes connect (a circuit breaker).
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Schema } from '../../shared/migrations.ts';
import { isStatementError, TimeoutError } from '../errors.ts';
import { checkMs, probeTimeoutMs, withTimeout } from './timeout.ts';

const probePauseMs = 250;

interface HealthOptions {
  /** Reads a table, and checks the settings of the server. */
  check: () => Promise<Schema>;
  /** Does so on a new connection. Rejects while the server is unavailable. */
  probe: () => Promise<void>;
  /** Whether a query has succeeded since then. */
  isServing: (sinceMs: number) => boolean;
  /** The server is unavailable, or available again if `fault` is undefined. */
  onFault: (fault: unknown) => void;
  /** Ends the probes. */
  stop: AbortSignal;
}

export class Health {
  readonly #options: HealthOptions;
  #lastCheck: { schema: Promise<Schema>; startedMs: number } | undefined;
  #fault: { error: unknown } | undefined;
  #isProbing = false;

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  get isAvailable(): boolean {
    return this.#fault === undefined;
  }

  /** Throws the error of the server while it is unavailable. */
  assertAvailable(): void {
    if (this.#fault !== undefined) throw this.#fault.error;
  }

  /** The schema of the server, by a check that began up to `maxAgeMs` ago, or is in progress. Rejects if it fails. */
  async check(maxAgeMs = 0): Promise<Schema> {
    this.assertAvailable();
    const nowMs = performance.now();
    if (this.#lastCheck !== undefined && nowMs < this.#lastCheck.startedMs + maxAgeMs) {
      return this.#lastCheck.schema;
    }
    const schema = withTimeout(this.#options.check(), checkMs);
    const check = { schema, startedMs: Infinity };
    this.#lastCheck = check;
    // Not awaited here: calls get the result in their order, so that requests keep theirs.
    schema.then(
      () => void (check.startedMs = nowMs),
      (error: unknown) => {
        this.#lastCheck = undefined;
        const isOverloaded = error instanceof TimeoutError && this.#options.isServing(nowMs);
        if (!isStatementError(error) && !isOverloaded) this.suspect();
      },
    );
    return schema;
  }

  /** The server may be unavailable: a probe decides. */
  suspect(): void {
    if (!this.#isProbing) void this.#probeUntilBack();
  }

  async #probeUntilBack(): Promise<void> {
    const { probe, onFault, stop } = this.#options;
    this.#isProbing = true;
    while (!stop.aborted) {
      try {
        await withTimeout(probe(), probeTimeoutMs);
        break;
      } catch (error) {
        const isNew = this.isAvailable;
        this.#fault = { error };
        if (isNew && !stop.aborted) onFault(error);
      }
      await pause(probePauseMs, undefined, { ref: false });
    }
    this.#isProbing = false;
    if (this.isAvailable || stop.aborted) return;
    this.#fault = undefined;
    onFault(undefined);
  }
}
