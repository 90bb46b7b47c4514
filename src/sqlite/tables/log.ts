/**
 * Adds changes to the log of changes in SQLite.
 */
import type { LogEntry } from '../../log/change-log.ts';
import { isFirstKnown, logColumns, logSql, valuesOf } from '../../sql/log.ts';
import { changeKey } from '../dialect.ts';
import type { Prepare } from '../driver.ts';
import type { Statements } from './statements.ts';
import type { Stores } from './stores.ts';

export type Log = ReturnType<typeof openLog>;

export function openLog(prepare: Prepare, statements: Statements, stores: Stores) {
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
  };
}
