/**
 * Adds changes to the log of changes in SQLite.
 */
import { keptSince, type LogEntry } from '../../log/change-log.ts';
import type { DeletionInLog } from '../../plants/decide.ts';
import { deletionOf, isFirstKnown, logColumns, logSql, valuesOf } from '../../sql/log.ts';
import type { Prepare } from '../driver.ts';
import type { Statements } from './statements.ts';

export type Log = ReturnType<typeof openLog>;

/** `keepMs` as in `WriteSettings`. */
export function openLog(prepare: Prepare, statements: Statements, keepMs: number | undefined) {
  const columns = Object.keys(logColumns);
  const insert = prepare(`
    INSERT INTO changes (${columns.join()}) VALUES (${columns.map(() => '?').join()})`);
  const endDeletion = prepare(
    'UPDATE changes SET is_restorable = 0 WHERE store = ? AND position = ?',
  );

  return {
    /** `position` is that of this change in this transaction. */
    add(store: number, entry: LogEntry): void {
      if (isFirstKnown(entry)) statements.run(logSql.endDeletionsOf, [store, [entry.plant]]);
      insert.run(store, ...valuesOf(entry, Date.now(), entry.event === 'deleted'));
    },

    findDeletion(store: number, plant: number): DeletionInLog | undefined {
      const [row] = statements.all(logSql.findDeletions, [store, [plant]]);
      return row && deletionOf(row, keptSince(keepMs));
    },

    endDeletion(store: number, position: number): void {
      endDeletion.run(store, position);
    },
  };
}
