/**
 * A write of `sql/` in a transaction (group.ts).
 */
import type { Row } from '../../sql/statement.ts';
import { outcomeOf, type Write } from '../../sql/write.ts';
import type { WriteSettings } from '../../storage.ts';
import { settled } from '../errors.ts';
import type { Connection } from '../pool/connection.ts';
import { callerNow, findAgain } from '../tables/grants.ts';
import { newGrantsVersion } from '../tables/grants-version.ts';
import { addToLog } from '../tables/log.ts';
import type { Attempt, Effect } from './group.ts';
import { noStore, type StoreRow } from './statements.ts';

export class StoreWrite implements Attempt {
  readonly #store: number;
  readonly #write: Write;
  readonly #hasLog: boolean;
  #callers: readonly Row[] = [];
  #rows: readonly (readonly Row[])[] = [];
  #effect: Effect = { row: noStore, statements: [] };

  constructor(store: number, write: Write, { keepChangesMs }: WriteSettings) {
    this.#store = store;
    this.#write = write;
    this.#hasLog = keepChangesMs !== 0;
  }

  async read(connection: Connection): Promise<void> {
    const { by, reads } = this.#write;
    [this.#callers, this.#rows] = await settled([
      by === undefined ? Promise.resolve([]) : connection.query(...findAgain(this.#store, by)),
      settled(reads.map((query) => connection.query(...query))),
    ]);
  }

  async complete(row: StoreRow): Promise<void> {
    this.#effect = { row, statements: [] };
  }

  decide(): unknown {
    const { by } = this.#write;
    if (by !== undefined) callerNow(this.#store, by, this.#callers);
    const { row } = this.#effect;
    const { result, writes, entries } = outcomeOf(this.#write, this.#rows, row.position);
    const changesGrants = entries.some(({ plant }) => plant === undefined);
    this.#effect = {
      row: {
        ...row,
        position: row.position + entries.length,
        grants: changesGrants ? newGrantsVersion() : row.grants,
      },
      statements: [...writes, ...(this.#hasLog ? addToLog(this.#store, entries) : [])],
    };
    return result;
  }

  effect(): Effect {
    return this.#effect;
  }
}
