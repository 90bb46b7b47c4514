import { tooManyWrites } from '../problem.ts';

/** Maximum number of pending writes; more are refused immediately. */
export const maxPending = 4_096;

interface PendingWrite<Result> {
  sinceMs: number;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

/**
 * Writes without an outcome, by sequence number. An outcome for a number that is not pending is ignored.
 */
export class Pending<Result> {
  /** In ascending order of number. */
  readonly #waiting = new Map<number, PendingWrite<Result>>();
  #lastNumber = 0;

  /** The first number is 1. Throws the Problem `overloaded` if too many writes are pending. */
  add(): readonly [number: number, outcome: Promise<Result>] {
    if (this.#waiting.size >= maxPending) throw tooManyWrites();
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    this.#waiting.set(++this.#lastNumber, { sinceMs: performance.now(), resolve, reject });
    return [this.#lastNumber, promise];
  }

  numbers(): Iterable<number> {
    return this.#waiting.keys();
  }

  /** When the write was added, on the clock of performance.now(). */
  sinceMs(number: number): number | undefined {
    return this.#waiting.get(number)?.sinceMs;
  }

  resolve(number: number, result: Result): void {
    this.#waiting.get(number)?.resolve(result);
    this.#waiting.delete(number);
  }

  reject(number: number, error: unknown): void {
    this.#waiting.get(number)?.reject(error);
    this.#waiting.delete(number);
  }

  /**
   * Rejects writes that were added before this time. They still count as pending until their outcomes arrive, so
   * that a storage that hangs does not accumulate writes.
   */
  rejectBefore(beforeMs: number, error: unknown): void {
    for (const { sinceMs, reject } of this.#waiting.values()) {
      if (sinceMs >= beforeMs) return;
      reject(error);
    }
  }
}
