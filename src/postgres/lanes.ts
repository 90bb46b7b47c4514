/**
 * The transactions of a server run in lanes, so that stores in trouble, whose rows are locked for example, harm no
 * others (decision 15). A store that makes a transaction fail changes lane until one of its transactions succeeds.
 */

/**
 * - `shared`: stores that are not in trouble, many in a transaction
 * - `suspect`: stores that failed in a transaction with others, each alone: most of them succeed at once
 * - `patient`: stores that failed alone twice, each alone and with a long time limit
 */
export type Lane = 'shared' | 'suspect' | 'patient';

/** Maximum number of transactions in progress, and of those in each lane. */
export const maxTransactions = 4;
const maxInLane: Readonly<Record<Lane, number>> = {
  shared: maxTransactions,
  suspect: 1,
  patient: 1,
};
/** How long a transaction waits for the lock of a store. Without a limit of the lane, that of the session applies. */
const lockTimeoutsMs = { shared: 300, suspect: 100, patient: undefined } as const;
/** The same in the shared lane for some time after a failure: more stores can be in trouble. */
const troubledLockTimeoutMs = 50;
const troubleMs = 5_000;
/** Once is not enough: another replica can have locked the row while it waited for a store that is really in trouble. */
const failuresUntilPatient = 2;
/** Maximum number of stores in trouble that are known. */
const maxTroubled = 1_000;

export class Lanes {
  /** How often each store in trouble has failed alone. */
  readonly #troubled = new Map<number, number>();
  #lastFailureMs = -Infinity;
  readonly #inProgress: Record<Lane, number> = { shared: 0, suspect: 0, patient: 0 };

  get inProgress(): number {
    const { shared, suspect, patient } = this.#inProgress;
    return shared + suspect + patient;
  }

  of(store: number): Lane {
    const failures = this.#troubled.get(store);
    if (failures === undefined) return 'shared';
    return failures < failuresUntilPatient ? 'suspect' : 'patient';
  }

  hasRoomFor(store: number): boolean {
    const lane = this.of(store);
    return this.#inProgress[lane] < maxInLane[lane];
  }

  lockTimeoutMs(lane: Lane): number | undefined {
    const isTroubled = performance.now() < this.#lastFailureMs + troubleMs;
    return isTroubled && lane === 'shared' ? troubledLockTimeoutMs : lockTimeoutsMs[lane];
  }

  begin(lane: Lane): void {
    this.#inProgress[lane]++;
  }

  end(lane: Lane): void {
    this.#inProgress[lane]--;
  }

  /** `wasAlone` if its transaction began without other stores. */
  onFailed(store: number, wasAlone: boolean): void {
    this.#lastFailureMs = performance.now();
    this.#troubled.set(store, (this.#troubled.get(store) ?? 0) + (wasAlone ? 1 : 0));
    const [oldest = store] = this.#troubled.keys();
    if (this.#troubled.size > maxTroubled) this.#troubled.delete(oldest);
  }

  onCommitted(store: number): void {
    this.#troubled.delete(store);
  }
}
