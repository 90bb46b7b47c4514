/**
 * A digest of a database: that of a copy on either engine, and of a restored backup, is the same.
 */
import { createHash } from 'node:crypto';
import { changeEvents } from '../log/change-log.ts';
import { copiedColumns, keyPartOf, tables, type Row, type Table, type Target } from './archive.ts';

/** Number of rows that are read into memory, and that `copy` then writes together. */
const batchRows = 2_000;

/** SHA-256 of all rows of all tables in order, in hexadecimal. Calls `handle` with each batch of rows. */
export async function digestOf(
  storage: Pick<Target, 'read'>,
  handle: (table: Table, rows: readonly Row[]) => Promise<void> | void = () => {},
): Promise<string> {
  const digest = createHash('sha256');
  for (const table of tables) {
    digest.update(`${table}\n`);
    for (let after: Row | undefined; ;) {
      const rows = await storage.read(table, after, batchRows);
      const last = rows.at(-1);
      if (last === undefined) break;
      for (const row of rows) {
        // A restore adds such a change, which raises the position of its store.
        if (table === 'changes' && row[eventAt] === restored) continue;
        const kept = table === 'stores' ? row.with(positionAt, null) : row;
        digest.update(`${JSON.stringify(kept.map(comparable))}\n`);
      }
      await handle(table, rows);
      after = keyPartOf(table, last);
    }
  }
  return digest.digest('hex');
}

const eventAt = copiedColumns.changes.indexOf('event');
const restored = changeEvents.indexOf('backup-restored');
const positionAt = copiedColumns.stores.indexOf('position');

/** Bytes become text, because each engine returns them as another class. */
function comparable(value: Row[number]): string | number | null {
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value;
}
