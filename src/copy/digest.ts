/**
 * A digest of a database: that of a copy on either engine, and of a restored backup, is the same.
 */
import { createHash } from 'node:crypto';
import { changeEvents } from '../log/change-log.ts';
import { copiedColumns, keyPartOf, tables, type Row, type Table, type Target } from './archive.ts';

/** Number of rows that are read into memory at once. */
const batchRows = 2_000;

const eventAt = copiedColumns.changes.indexOf('event');
const restored = changeEvents.indexOf('backup-restored');
const positionAt = copiedColumns.stores.indexOf('position');

export class Digest {
  /** One of each table, so that rows can come table by table or store by store. */
  readonly #hashes = tables.map((table) => [table, createHash('sha256')] as const);
  readonly #ofTable = new Map(this.#hashes);

  /** The rows of a table come in the order of its key. */
  add(table: Table, rows: readonly Row[]): void {
    for (const row of rows) {
      if (table === 'changes' && row[eventAt] === restored) continue;
      this.#ofTable.get(table)?.update(`${JSON.stringify(kept(table, row))}\n`);
    }
  }

  /** SHA-256 in hexadecimal. */
  finish(): string {
    const digest = createHash('sha256');
    for (const [table, hash] of this.#hashes) digest.update(`${table} ${hash.digest('hex')}\n`);
    return digest.digest('hex');
  }
}

/**
 * What a restore keeps of a row: it adds changes, so the position of a store differs. Bytes become text, because each
 * engine returns them as another class.
 */
function kept(table: Table, row: Row): Row {
  return row.map((value, at) => {
    if (table === 'stores' && at === positionAt) return null;
    return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value;
  });
}

/** All rows of a table, in the order of its key. */
export async function* batchesOf(
  storage: Pick<Target, 'read'>,
  table: Table,
): AsyncGenerator<readonly Row[]> {
  for (let after: Row | undefined; ;) {
    const rows = await storage.read(table, after, batchRows);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    after = keyPartOf(table, last);
  }
}

/** Reads all rows, and calls `handle` with each batch. Returns their digest. */
export async function digestOf(
  storage: Pick<Target, 'read'>,
  handle?: (table: Table, rows: readonly Row[]) => Promise<void>,
): Promise<string> {
  const digest = new Digest();
  for (const table of tables) {
    for await (const rows of batchesOf(storage, table)) {
      digest.add(table, rows);
      await handle?.(table, rows);
    }
  }
  return digest.finish();
}
