import { createHash } from 'node:crypto';
import { copiedColumns, keyPartOf, type Archive, type Row, type Table } from '../copy/archive.ts';
import { parseAddress } from './pool/address.ts';
import { runUnlimited } from './schema/unlimited.ts';
import { Servers } from './servers.ts';
import { sql } from '../sql/statement.ts';
import { problemOf, refusalFor } from './errors.ts';
import { migrate, refuseNewerSchema } from './schema/migrate.ts';
import { newGrantsVersion } from './tables/grants-version.ts';
import { keyOf } from './tables/names.ts';
import type { BoundStatement } from './pool/pool.ts';
import { Refusal } from '../refusal.ts';

/** The columns of text. All others are numbers. */
const textColumns = 'name role scopes label family tag user_name access key_hash fingerprint'.split(
  ' ',
);

export class PostgresArchive implements Archive {
  readonly #servers: Servers;

  private constructor(servers: Servers) {
    this.#servers = servers;
  }

  /** Throws Refusal if the database cannot be used, and a Problem if it does not respond. */
  static async open(url: string, options: { create: boolean }): Promise<PostgresArchive> {
    const servers = new Servers(parseAddress(url));
    try {
      await migrate(servers, options);
      await servers.any.withConnection(refuseNewerSchema);
    } catch (error) {
      await servers.close();
      throw error instanceof Refusal ? error : (refusalFor(error) ?? problemOf(error));
    }
    return new PostgresArchive(servers);
  }

  /** Counts in one statement, however long it takes: in steps, every machine would have to send all keys. */
  async count(table: Table): Promise<number> {
    const text = `SELECT count(*) FROM plant_store.${table}`;
    try {
      const { rows } = await this.#servers.any.withConnection((connection) =>
        runUnlimited(connection, text, 0),
      );
      return Number(rows[0]?.[0]);
    } catch (error) {
      throw problemOf(error);
    }
  }

  async read(table: Table, after: Row | undefined, limit: number): Promise<Row[]> {
    const key = keyPartOf(table, copiedColumns[table]).join();
    const parameters = after?.map((_, at) => `$${at + 1}`).join();
    const range = parameters === undefined ? '' : `WHERE (${key}) > (${parameters})`;
    const statement = sql<Row>`
      SELECT ${copiedColumns[table].join()} FROM plant_store.${table}
      ${range} ORDER BY ${key} LIMIT ${limit}`;
    return this.#servers.any.read(statement, after ?? []);
  }

  /** Adds all rows or none, so that the last row shows what was copied. */
  async add(table: Table, rows: readonly Row[]): Promise<void> {
    await this.#servers.any.transact(...statementsFor(table, rows));
  }

  async lastKey(table: Table): Promise<Row | undefined> {
    const key = keyPartOf(table, copiedColumns[table]);
    const descending = key.map((column) => `${column} DESC`).join();
    const statement = sql<Row>`
      SELECT ${key.join()} FROM plant_store.${table} ORDER BY ${descending} LIMIT 1`;
    const [row] = await this.#servers.any.read(statement, []);
    return row;
  }

  /** A digest of the versions and the last users of all stores. */
  async version(): Promise<string> {
    const digest = createHash('sha256');
    for (let after: unknown = 0; ;) {
      const rows = await this.#servers.any.read(versionSql, [after]);
      if (rows.length === 0) return digest.digest('hex');
      digest.update(JSON.stringify(rows));
      after = rows.at(-1)?.[0];
    }
  }

  async unfinishedSource(): Promise<string | undefined> {
    const [row] = await this.#servers.any.read(unfinishedSql, []);
    return row?.[0] ?? undefined;
  }

  async beginCopy(source: string): Promise<void> {
    await this.#servers.any.transact([setCopySourceSql, [source]]);
  }

  async finishCopy(): Promise<void> {
    await this.#servers.any.transact([setCopySourceSql, [null]]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#servers.close();
  }
}

const versionSql = sql`
  SELECT store, position, writer, grants, last_user
  FROM plant_store.stores WHERE store > $1 ORDER BY store LIMIT 1000`;

const unfinishedSql = sql<readonly [copyOf: string | null]>`
  SELECT copy_of FROM plant_store.migrations WHERE id = 1`;

const setCopySourceSql = sql`UPDATE plant_store.migrations SET copy_of = $1::text WHERE id = 1`;

function statementsFor(table: Table, rows: readonly Row[]): BoundStatement[] {
  if (table === 'stores') return addStores(rows);
  if (table !== 'plants' && table !== 'changes') return [insert(table, copiedColumns[table], rows)];
  // One statement for each store, so that each runs on one node of a distributed engine.
  const parts = Object.groupBy(rows, ([store]) => String(store));
  return Object.values(parts).map((part = []) => insert(table, copiedColumns[table], part));
}

function addStores(rows: readonly Row[]): BoundStatement[] {
  const names = rows.map(([store = 0, name]) => [keyOf(String(name)), String(name), store]);
  // No cached grant of another database, such as an earlier copy, has this version.
  const grants = newGrantsVersion();
  return [
    insert('named_stores', ['key', 'name', 'store'], names),
    insert(
      'stores',
      [...copiedColumns.stores, 'grants'],
      rows.map((row) => [...row, grants]),
    ),
  ];
}

function insert(table: string, into: readonly string[], rows: readonly Row[]): BoundStatement {
  const all = into.join();
  const arrays = into.map((column, at) => `$${at + 1}::${typeOf(column)}[]`).join();
  return [
    sql`
      INSERT INTO plant_store.${table} (${all})
      SELECT ${all} FROM unnest(${arrays}) AS new (${all}) ON CONFLICT DO NOTHING`,
    into.map((_, at) => rows.map((row) => row[at])),
  ];
}

function typeOf(column: string): string {
  if (['hash', 'token', 'request'].includes(column)) return 'bytea';
  return textColumns.includes(column) ? 'text' : 'bigint';
}
