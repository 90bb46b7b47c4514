/**
 * Adds changes to the log of changes in PostgreSQL.
 */
import type { LogEntry } from '../../log/change-log.ts';
import { isFirstKnown, logColumns, logSql, valuesOf } from '../../sql/log.ts';
import { sql, type Query } from '../../sql/statement.ts';

const [, ...types] = Object.values(logColumns);
const arrays = types.map((type, at) => `unnest($${at + 2}::${type}[])`);

export const addToLogSql = sql`
  INSERT INTO plant_store.changes (${Object.keys(logColumns).join()})
  VALUES ($1, ${arrays.join()})`; // the form that Citus plans fastest (writer/statements.ts)

/** Adds changes, and ends the deletions at these positions, which can be among the changes. */
export function addToLog(
  store: number,
  entries: readonly LogEntry[],
  endedDeletions: ReadonlySet<number> = new Set(),
): Query[] {
  const nowMs = Date.now();
  const rows = entries.map((entry) =>
    valuesOf(entry, nowMs, entry.event === 'deleted' && !endedDeletions.has(entry.position)),
  );
  const columns = types.map((type, at) => rows.map((row) => valueFor(type, row[at])));
  const add: Query[] = rows.length === 0 ? [] : [[addToLogSql, [store, ...columns]]];
  const first = entries.filter(isFirstKnown).map(({ plant }) => plant);
  const endOf: Query[] = first.length === 0 ? [] : [[logSql.endDeletionsOf, [store, first]]];
  const end: Query[] =
    endedDeletions.size === 0 ? [] : [[logSql.endDeletions, [store, [...endedDeletions]]]];
  return [...endOf, ...end, ...add];
}

/** Bytes are in the entry already, or are a request id. */
function valueFor(type: string, value: unknown): unknown {
  const isId = type === 'bytea' && typeof value === 'string';
  return isId ? Buffer.from(value.replaceAll('-', ''), 'hex') : value;
}
