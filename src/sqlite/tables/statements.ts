/**
 * Runs the statements of `sql/`, and the writes that consist of them, which add to the log of changes.
 */
import type { LogEntry } from '../../log/change-log.ts';
import { isFirstKnown, logColumns, logSql, valuesOf } from '../../sql/log.ts';
import type { Query, Row, Statement } from '../../sql/statement.ts';
import { outcomeOf, type Write } from '../../sql/write.ts';
import { changeKey, toSqlite, toSqliteValue } from '../dialect.ts';
import type { Prepare, Statement as Prepared } from '../driver.ts';
import type { Grants } from './grants.ts';
import type { PlantCounts } from './plant-counts.ts';
import type { Stores } from './stores.ts';

export type Statements = ReturnType<typeof openStatements>;

export function openStatements(prepare: Prepare) {
  const prepared = new Map<Statement, Prepared<Row>>();

  function preparedOf(statement: Statement): Prepared<Row> {
    const known = prepared.get(statement) ?? prepare<Row>(toSqlite(statement.text));
    prepared.set(statement, known);
    return known;
  }

  return {
    all<R extends Row>(...[statement, values]: Query<R>): R[] {
      return preparedOf(statement).all(...values.map(toSqliteValue)) as R[]; // as it declares
    },

    run(...[statement, values]: Query): void {
      preparedOf(statement).run(...values.map(toSqliteValue));
    },
  };
}

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

interface Parts {
  statements: Statements;
  grants: Grants;
  counts: PlantCounts;
  stores: Stores;
  log: Log;
  hasLog: boolean;
}

/** Runs a write in the transaction of the writer. Throws its Problem before anything has changed. */
export function perform<Result>(
  { statements, grants, counts, stores, log, hasLog }: Parts,
  write: Write<Result>,
): Result {
  const { store, by, reads } = write;
  if (by !== undefined && store !== undefined) grants.callerSince(store, by);
  const rows = reads.map((query) => statements.all(...query));
  const { position = 0 } = (store === undefined ? undefined : stores.find(store)) ?? {};
  const { result, writes, entries } = outcomeOf(write, rows, position);
  for (const query of writes) statements.run(...query);
  if (entries.some(({ plant }) => plant !== undefined)) counts.clear();
  if (store === undefined || entries.length === 0) return result;
  const { lastId } = stores.of(store);
  stores.set(store, { lastId, position: position + entries.length });
  if (hasLog) for (const entry of entries) log.add(store, entry);
  return result;
}
