/**
 * One transaction of the groups of several stores, which are all on the same machine.
 */
import { defect } from '../problem.ts';
import type { Connection } from './connection.ts';
import { isConnectionLost, isInternalError } from './errors.ts';
import type { Group } from './group.ts';
import { settled } from './settled.ts';

/** Where one is undefined, that of the session applies. */
export interface StatementTimeouts {
  /** How long each statement waits for each lock. */
  lock?: number | undefined;
  /** How long each statement takes, with all the locks that it waits for. */
  statement?: number | undefined;
}

export class Transaction {
  /** In ascending order of store, so that transactions of several replicas do not deadlock. */
  readonly groups: readonly Group[];
  /** Whether it has certainly changed nothing: COMMIT was not sent, or the server responded to it with ROLLBACK. */
  isRolledBack = true;
  /** The group whose statement failed in the last attempt; undefined if something else did, such as the connection. */
  failed: Group | undefined;

  /** Each group has another store. */
  constructor(groups: readonly Group[]) {
    this.groups = groups.toSorted((a, b) => a.store - b.store);
  }

  /**
   * Takes one round trip, or two with quotas and on Citus, and one more to identify callers again. Rejects with the error of
   * the server. If a store does not exist, only its group fails (`outcomes`).
   */
  async commit(
    connection: Connection,
    attemptId: string,
    timeoutsMs: StatementTimeouts,
  ): Promise<void> {
    this.isRolledBack = true;
    this.failed = undefined;
    for (const group of this.groups) group.reset();
    const settings = Object.entries(timeoutsMs)
      .filter(([, ms]) => ms !== undefined)
      .map(([name, ms]) => `; SET LOCAL ${name}_timeout = ${ms}`);
    const begun = connection.command(`BEGIN${settings.join('')}`);
    const mustCheck = this.groups.filter((group) => group.mustCheck);
    if (mustCheck.length > 0) {
      const checked = mustCheck.map((group) => group.check(connection));
      await this.#step(connection, mustCheck, checked, begun);
    }
    let left = this.groups;
    if (left.some(({ isInTwoSteps }) => isInTwoSteps)) {
      // Locks all stores in their order.
      const locked = left.map((group) =>
        group.isInTwoSteps
          ? group.lock(connection, attemptId)
          : group.change(connection, attemptId),
      );
      await this.#step(connection, left, locked, begun);
      left = left.filter(({ isInTwoSteps }) => isInTwoSteps);
    }
    const changed = left.map((group) => group.change(connection, attemptId));
    const ended = this.#end(connection);
    await this.#settled(left, changed, begun, ended);
    const tag = await ended;
    if (tag !== 'COMMIT') throw defect(new Error(`the server responded to COMMIT with ${tag}`));
  }

  async #end(connection: Connection): Promise<string> {
    this.isRolledBack = false;
    const tag = await connection.command('COMMIT');
    this.isRolledBack = tag === 'ROLLBACK';
    return tag;
  }

  /** Rolls back if a statement fails, and waits for no more responses. `responses` are those of `groups`. */
  async #step(
    connection: Connection,
    groups: readonly Group[],
    responses: readonly Promise<void>[],
    begun: Promise<unknown>,
  ): Promise<void> {
    await this.#settled(groups, responses, begun).catch((error: unknown) => {
      // Not awaited: what is sent next on the connection runs after it.
      connection.command('ROLLBACK').catch(() => {});
      throw error;
    });
  }

  /** `responses` are those of `groups`. */
  async #settled(
    groups: readonly Group[],
    responses: readonly Promise<void>[],
    ...others: Promise<unknown>[]
  ): Promise<void> {
    try {
      await settled([...responses, ...others]);
    } catch (error) {
      if (isConnectionLost(error) && !isInternalError(error)) throw error;
      const results = await Promise.allSettled(responses);
      const at = results.findIndex((result) => 'reason' in result && result.reason === error);
      this.failed = groups[at];
      throw error;
    }
  }
}
