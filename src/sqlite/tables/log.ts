/**
 * Adds changes to the log of changes in SQLite.
 */
import { keptSince, type LogEntry } from '../../log/change-log.ts';
import type { DeletionInLog } from '../../plants/decide.ts';
import { deletionOf, isFirstKnown, logColumns, logSql, valuesOf } from '../../sql/log.ts';
import { changeKey } from '../dialect.ts';
import type { Prepare } from '../driver.ts';
import type { Statements } from './statements.ts';
import type { Stores } from './stores.ts';

export type Log = ReturnType<typeof openLog>;

/** `keepMs` as in `WriteSettings`. */
export function openLog(
  prepare: Prepare,
  statements: Statements,
  stores: Stores,
  keepMs: number | undefined,
) {
  const columns = Object.keys(logColumns);
  const values = columns.map((name) => (name === 'request' ? "unhex(?, '-')" : '?'));
  const insert = prepare(`
    INSERT INTO changes (key, ${columns.join()}) VALUES (${changeKey('?', '?')}, ${values.join()})`);

  return {
    /** `position` is that of this change in this transaction. */
    add(store: number, entry: LogEntry): void {
      if (isFirstKnown(entry)) statements.run(logSql.endDeletionsOf, [store, [entry.plant]]);
      const { number } = stores.of(store);
      insert.run(
        number,
        entry.position,
        store,
        ...valuesOf(entry, Date.now(), entry.event === 'deleted'),
      );
    },

    findDeletion(store: number, plant: number): DeletionInLog | undefined {
      const [row] = statements.all(logSql.findDeletions, [store, [plant]]);
      return row && deletionOf(row, keptSince(keepMs));
    },

    endDeletion(store: number, position: number): void {
      statements.run(logSql.endDeletions, [store, [position]]);
    },
  };
}
