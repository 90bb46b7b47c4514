/**
 * All that a storage holds, row by row, to be carried to another: what `copy` reads and writes. Each
 * table is in ascending order of its key, so that its last row tells how far a copy has come.
 */

/**
 * Parents first: no row comes before one that it names. Tokens last: where somebody serves what is being
 * copied to, nobody gets in before all the plants are there.
 */
export const tables = ['stores', 'users', 'plants', 'tokens'] as const;
export type Table = (typeof tables)[number];

/**
 * The columns of a row, those of its key first:
 *   stores  store number, name, the largest id that it has ever held
 *   users   store, user number, name, role
 *   plants  store, id, owner, tag, name
 *   tokens  hash, store, user, scopes, label, and when it was made, ends and was revoked, in ms
 */
export type Row = readonly (string | number | Uint8Array | null)[];

/** How many of its first columns are the key of a table. */
export const keyColumns: Record<Table, number> = { stores: 1, users: 2, tokens: 1, plants: 2 };

/** Of a storage with the newest schema. Methods reject with what the driver reports. */
export interface Archive extends AsyncDisposable {
  count(table: Table): Promise<number>;
  /** Up to `limit` rows after the one with this key, or from the first. */
  read(table: Table, after: Row | undefined, limit: number): Promise<Row[]>;
  /** Adds rows and returns when they are on disk; those that are there already stay as they are. */
  add(table: Table, rows: readonly Row[]): Promise<void>;
  /** The key of the last row; undefined where there is none. */
  lastKey(table: Table): Promise<Row | undefined>;
  /** Changes with every change that others make. */
  version(): Promise<string>;
  /** What is being copied to here since begin(); undefined where nothing is. */
  unfinished(): Promise<string | undefined>;
  /** Writes down that this is a copy of `source` that is not whole. */
  begin(source: string): Promise<void>;
  /** Writes down that it is whole. */
  finish(): Promise<void>;
}
