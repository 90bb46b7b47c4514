/**
 * One transaction of the writes to several stores, which are all on the same machine (decision 15).
 *
 * It takes two round trips: the first one locks the stores and learns everything that the outcomes depend on, and the
 * second one writes and commits. So the outcomes are known before COMMIT is sent, and until then, nothing has changed.
 */
import { defect } from '../../problem.ts';
import type { Connection } from '../pool/connection.ts';
import type { Pool } from '../pool/pool.ts';
import { jitter } from '../pool/retries.ts';
import { changeSql } from './statements.ts';
import { outcomeTimeoutMs, type Group } from './group.ts';
import { settled } from '../errors.ts';

export class Transaction {
  /** Unique. If the row of a store has it as its writer, the transaction was committed. */
  readonly #id: string;
  /** The groups whose stores this transaction has locked. Others are left out. */
  groups: readonly Group[];
  /** Whether a COMMIT of changes was sent, and the server has not responded with ROLLBACK. */
  canBeCommitted = false;

  constructor(id: string, groups: readonly Group[]) {
    this.#id = id;
    this.groups = groups;
  }

  /** Leaves out stores that are locked, unless `canWait`. Rejects with the error of the server. */
  async commit(connection: Connection, canWait: boolean): Promise<void> {
    try {
      const [, ...areLocked] = await settled([
        connection.command('BEGIN'),
        ...this.groups.map((group) => group.learn(connection, canWait)),
      ]);
      this.groups = this.groups.filter((_, at) => areLocked[at]);
      await settled(this.groups.map((group) => group.decide(connection)));
    } catch (error) {
      // Not awaited: what is sent next on the connection runs after it.
      connection.command('ROLLBACK').catch(() => {});
      throw error;
    }
    this.canBeCommitted = this.groups.some(({ hasChanged }) => hasChanged);
    // Sent before COMMIT, because the server runs what it gets in order.
    const writes = this.groups.map((group) => group.write(connection, this.#id));
    const [tag] = await settled([this.#end(connection), ...writes]);
    if (tag !== 'COMMIT') throw defect(new Error(`the server responded to COMMIT with ${tag}`));
  }

  async #end(connection: Connection): Promise<string> {
    const tag = await connection.command('COMMIT');
    if (tag === 'ROLLBACK') this.canBeCommitted = false;
    return tag;
  }

  /** Finds out whether it was committed, after its response was lost. Undefined if that takes too long for all changes. */
  async isCommitted(server: Pool): Promise<boolean | undefined> {
    const lastMs = Math.max(...this.groups.map(({ queued }) => queued.at(-1)?.sinceMs ?? 0));
    for (; performance.now() - lastMs < outcomeTimeoutMs; await jitter()) {
      try {
        return await server.withConnection((connection) => this.#isWriter(connection));
      } catch {
        // The server is not back yet, or another transaction has locked the row.
      }
    }
    return undefined;
  }

  async #isWriter(connection: Connection): Promise<boolean | undefined> {
    for (const { store, position, hasChanged } of this.groups) {
      if (!hasChanged) continue; // it has not become the writer
      // Waits until this transaction has ended, because it had locked the row.
      const [row] = await connection.query(changeSql.lock, [store]);
      if (row === undefined) continue;
      const [, current, writer] = row;
      if (writer === this.#id) return true;
      if (current <= position) return false;
      // Other groups have followed: another store may show more.
    }
    return undefined;
  }
}
