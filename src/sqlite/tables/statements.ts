/**
 * Runs the statements of `sql/`, and the writes that consist of them.
 */
import type { Query, Row, Statement } from '../../sql/statement.ts';
import type { Write } from '../../sql/write.ts';
import { toSqlite, toSqliteValue } from '../dialect.ts';
import type { Prepare, Statement as Prepared } from '../driver.ts';
import type { Grants } from './grants.ts';
import type { Log } from './log.ts';
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
  { store, by, request, reads, decide }: Write<Result>,
): Result {
  if (by !== undefined && store !== undefined) grants.callerSince(store, by);
  const rows = reads.map((query) => statements.all(...query));
  const { position = 0 } = (store === undefined ? undefined : stores.find(store)) ?? {};
  const { result, writes = [], entries = [] } = decide(rows, position);
  for (const query of writes) statements.run(...query);
  if (entries.some(({ plant }) => plant !== undefined)) counts.clear();
  if (store === undefined || entries.length === 0) return result;
  const { lastId } = stores.of(store);
  stores.set(store, { lastId, position: position + entries.length });
  if (!hasLog) return result;
  for (const [at, added] of entries.entries()) {
    log.add(store, { ...added, position: position + 1 + at, by, request });
  }
  return result;
}
