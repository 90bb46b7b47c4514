/**
 * The size of a database file, and of its tables. SQLite has no estimate of their rows, so they are counted in short
 * steps.
 */
import { realpath, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { sql } from '../sql/statement.ts';
import type { Engine } from '../sql/write.ts';
import type { StorageFigures } from '../storage.ts';
import { changeKey } from './dialect.ts';

/** A step takes less than 1 ms. */
const maxStep = 1_000;
const turn = 'figures'; // among what else is read in steps
/** Counting takes at most this part of the time. */
const maxShare = 1 / 1_000;

/** The rows after the last row of a step, by their first two columns, and how much each counts. */
const countSql = {
  plants: rowsOf('plants', 'id'),
  tokens: rowsOf('tokens', 'hash'),
  // The positions of a store have no gaps, and its oldest changes are removed first.
  changes: sql<CountRow>`
    SELECT number, NULL, coalesce(stores.position + 1 - (
      SELECT changes.position FROM changes
      WHERE key BETWEEN ${changeKey('number', '0')} AND ${changeKey('number', 'stores.position')}
      ORDER BY key LIMIT 1), 0)
    FROM stores WHERE (number, $2) > ($1, $2) ORDER BY number LIMIT ${maxStep}`,
};

type CountRow = readonly [number, unknown, count: number];

function rowsOf(table: string, column: string) {
  return sql<CountRow>`
    SELECT store, ${column}, 1 FROM plant_store.${table}
    WHERE (store, ${column}) > ($1, $2) ORDER BY store, ${column} LIMIT ${maxStep}`;
}

/** Returns a function that returns the figures, with counts that began with an earlier call. */
export function openFigures(path: string, engine: Engine): () => Promise<StorageFigures> {
  const counts: Partial<Record<keyof typeof countSql, number>> = {};
  let dueMs = 0;

  async function countRows(statement: typeof countSql.plants): Promise<number> {
    let total = 0;
    for (let last: CountRow | undefined = [-1, null, 0]; last !== undefined;) {
      const rows: readonly CountRow[] = await engine.read(
        undefined,
        statement,
        last.slice(0, 2),
        turn,
      );
      for (const [, , rowCount] of rows) total += rowCount;
      last = rows.at(-1);
    }
    return total;
  }

  async function count(): Promise<void> {
    const startedMs = performance.now();
    dueMs = Infinity;
    counts.plants = await countRows(countSql.plants);
    counts.tokens = await countRows(countSql.tokens);
    counts.changes = await countRows(countSql.changes);
    const endedMs = performance.now();
    dueMs = endedMs + (endedMs - startedMs) / maxShare;
  }

  return async () => {
    if (performance.now() >= dueMs) void count().catch(() => (dueMs = 0));
    const file = await realpath(path);
    const [{ size: databaseBytes }, { size: walBytes }, { bavail, bsize }] = await Promise.all([
      stat(file),
      stat(`${file}-wal`),
      statfs(dirname(file)),
    ]);
    const version = process.versions['sqlite'] ?? '';
    const freeBytes = bavail * bsize;
    return { engine: 'sqlite', version, walBytes, databaseBytes, freeBytes, ...counts };
  };
}
