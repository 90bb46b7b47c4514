/**
 * All rows of a storage, in a form that every engine can read: `copy` moves them to another storage.
 */
import { textFields } from '../plants/fields.ts';
import { logColumns } from '../sql/log.ts';
import { webhookColumns } from '../sql/webhooks.ts';

/**
 * The number of columns in the key of each table. Parents come first, so that no row precedes one that it references, and
 * changes before what they have left (verify.ts).
 */
const keyColumns = {
  stores: 1,
  changes: 2,
  users: 2,
  plants: 2,
  idempotency_keys: 3,
  shares: 3,
  tokens: 2,
  webhooks: 3,
};
export type Table = keyof typeof keyColumns;
export const tables = Object.keys(keyColumns) as Table[]; // the object has no other keys

const names = (columns: string): readonly string[] => columns.split(' ');

/**
 * What is copied of each table, key columns first. Stores, users and owners are numbers, and times are in ms.
 * test/archive.test.ts fails if a column of either engine is missing.
 */
export const copiedColumns: Record<Table, readonly string[]> = {
  stores: names('store name last_id last_user position'),
  users: names('store id name role removed_at removed_position'),
  plants: [...names('store id owner position'), ...textFields],
  changes: Object.keys(logColumns),
  idempotency_keys: names('store key_hash user_id fingerprint plant position at'),
  shares: names('store owner user_name access since'),
  tokens: names(
    'store hash user_id scopes label created_at expires_at revoked_at last_used_at family renewable_until salt uses',
  ),
  webhooks: webhookColumns,
};

/** The values of these columns. */
export type Row = readonly (string | number | Uint8Array | null)[];

/** The part of a row, or of its columns, that is the key. */
export function keyPartOf<T>(table: Table, values: readonly T[]): readonly T[] {
  return values.slice(0, keyColumns[table]);
}

/** An open storage with the newest schema. Methods reject with a Problem, a Refusal or an error of the driver. */
export interface Archive extends AsyncDisposable {
  count(table: Table): Promise<number>;
  /** Up to `limit` rows after the one with this key, in the order of the key; from the first row if it is undefined. */
  read(table: Table, after: Row | undefined, limit: number): Promise<Row[]>;
  /** All reads of `work` see the same moment. On a cluster, those of each store do. */
  snapshot<T>(work: (source: Pick<Target, 'read'>) => Promise<T>): Promise<T>;
  /** Changes with every write of another process: compare it before and after. */
  version(): Promise<string>;
  /** Adds rows in one transaction. If `work` rejects or the process ends, none of them remains. */
  fill<T>(work: (target: Target) => Promise<T>): Promise<T>;
}

/** An archive that is being filled. */
export interface Target extends Pick<Archive, 'read'> {
  add(table: Table, rows: readonly Row[]): Promise<void>;
}
