import { PlantStoreError } from './client.ts';
import { isTemporary, pause } from './retry.ts';

const retryMs = 1_000;
const maxPauseMs = 60_000;
const maxOutageMs = 600_000;

/** Repeats calls while the service is not available, for much longer than the client retries a call. */
export class Patience {
  readonly #signal: AbortSignal;
  readonly #onWait: (problem: PlantStoreError) => void;
  #lastReplyMs = performance.now();

  constructor(signal: AbortSignal, onWait: (problem: PlantStoreError) => void) {
    this.#signal = signal;
    this.#onWait = onWait;
  }

  /** `onProblem` is called before each repetition. Throws the last error if no call succeeds for 10 minutes. */
  async repeat<T>(
    call: () => Promise<T>,
    onProblem: (problem: PlantStoreError) => void = () => {},
  ): Promise<T> {
    for (;;) {
      try {
        const result = await call();
        this.#lastReplyMs = performance.now();
        return result;
      } catch (error) {
        if (!(error instanceof PlantStoreError)) throw error;
        if (!isOutage(error)) {
          this.#lastReplyMs = performance.now();
          throw error;
        }
        if (performance.now() - this.#lastReplyMs > maxOutageMs) throw error;
        onProblem(error);
        this.#onWait(error);
        const pauseMs = Math.max((error.retryAfterSeconds ?? 0) * 1_000, retryMs);
        await pause(Math.min(pauseMs, maxPauseMs), this.#signal);
      }
    }
  }
}

function isOutage(error: PlantStoreError): boolean {
  return isTemporary(error) || error.kind === 'timeout' || error.kind === 'request-timeout';
}
