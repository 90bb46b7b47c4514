import { createHash } from 'node:crypto';
import { keyColumnCounts, type Archive, type Row, type Table } from '../copy/archive.ts';
import { parseAddress } from './pool/address.ts';
import { runUnlimited } from './citus/citus.ts';
import { Cluster } from './citus/cluster.ts';
import { prepared } from './pool/connection.ts';
import { problemOf, refusalFor } from './errors.ts';
import { refuseNewerSchema } from './schema/migrate.ts';
import { keyOf } from './tables/names.ts';
import type { BoundStatement } from './pool/pool.ts';
import { migrateCluster } from './schema/readiness.ts';
import { Refusal } from '../refusal.ts';

type Column = readonly [name: string, type: 'bigint' | 'text' | 'bytea'];

/** All columns except those that are useless in another database (test/archive.test.ts). */
export const columns: Record<Table, readonly Column[]> = {
  stores: [
    ['store', 'bigint'],
    ['name', 'text'],
    ['last_id', 'bigint'],
  ],
  users: [
    ['store', 'bigint'],
    ['id', 'bigint'],
    ['name', 'text'],
    ['role', 'text'],
    ['removed_at', 'bigint'],
  ],
  tokens: [
    ['store', 'bigint'],
    ['hash', 'bytea'],
    ['user_id', 'bigint'],
    ['scopes', 'text'],
    ['label', 'text'],
    ['created_at', 'bigint'],
    ['expires_at', 'bigint'],
    ['revoked_at', 'bigint'],
    ['last_used_at', 'bigint'],
    ['family', 'text'],
  ],
  plants: [
    ['store', 'bigint'],
    ['id', 'bigint'],
    ['owner', 'bigint'],
    ['tag', 'text'],
    ['name', 'text'],
  ],
  shares: [
    ['store', 'bigint'],
    ['owner', 'bigint'],
    ['user_name', 'text'],
    ['access', 'text'],
    ['since', 'bigint'],
  ],
};

export class PostgresArchive implements Archive {
  readonly #cluster: Cluster;

  private constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Throws Refusal if the database cannot be used, and a Problem if it does not respond. */
  static async open(url: string, options: { create: boolean }): Promise<PostgresArchive> {
    const cluster = new Cluster(parseAddress(url));
    try {
      await migrateCluster(cluster, options);
      await cluster.any.withConnection(refuseNewerSchema);
    } catch (error) {
      await cluster.close();
      throw error instanceof Refusal ? error : (refusalFor(error) ?? problemOf(error));
    }
    return new PostgresArchive(cluster);
  }

  /** One statement, however long it takes: in steps, every machine would send its keys. */
  async count(table: Table): Promise<number> {
    const sql = `SELECT count(*) FROM plant_store.${table}`;
    try {
      const { rows } = await this.#cluster.any.withConnection((connection) =>
        runUnlimited(connection, sql, 0),
      );
      return Number(rows[0]?.[0]);
    } catch (error) {
      throw problemOf(error);
    }
  }

  async read(table: Table, after: Row | undefined, limit: number): Promise<Row[]> {
    const key = keyColumnsOf(table).join();
    const parameters = after?.map((_, at) => `$${at + 1}`).join();
    const sql = `
      SELECT ${namesOf(table)} FROM plant_store.${table}
      ${parameters === undefined ? '' : `WHERE (${key}) > (${parameters})`} ORDER BY ${key} LIMIT ${limit}`;
    const name = `rows_of_${table}_${parameters === undefined ? 'from_first' : 'after'}_${limit}`;
    return this.#cluster.any.read(prepared<Row>(name, sql), after ?? []);
  }

  /**
   * Adds all rows or none, so that the last row shows what was copied. Plants take one statement for each store:
   * on distributed engines, it runs on one node.
   */
  async add(table: Table, rows: readonly Row[]): Promise<void> {
    const parts =
      table === 'plants' ? Object.values(Object.groupBy(rows, ([store]) => String(store))) : [rows];
    const statements = [
      ...(table === 'stores' ? [addStoreNames(rows)] : []),
      ...(table === 'users' ? [raiseLastUsers(rows)] : []),
      ...parts.map((part) => insert(table, part ?? [])),
    ];
    await this.#cluster.any.transact(statements);
  }

  async lastKey(table: Table): Promise<Row | undefined> {
    const descending = keyColumnsOf(table).map((column) => `${column} DESC`);
    const sql = `
      SELECT ${keyColumnsOf(table).join()} FROM plant_store.${table}
      ORDER BY ${descending.join()} LIMIT 1`;
    const [row] = await this.#cluster.any.read(prepared<Row>(`last_${table}`, sql), []);
    return row;
  }

  /** A digest of the versions and the last users of all stores. */
  async version(): Promise<string> {
    const digest = createHash('sha256');
    for (let after: unknown = 0; ;) {
      const rows = await this.#cluster.any.read(versionSql, [after]);
      if (rows.length === 0) return digest.digest('hex');
      digest.update(JSON.stringify(rows));
      after = rows.at(-1)?.[0];
    }
  }

  async unfinishedSource(): Promise<string | undefined> {
    const [row] = await this.#cluster.any.read(unfinishedSql, []);
    return row?.[0] ?? undefined;
  }

  async beginCopy(source: string): Promise<void> {
    await this.#cluster.any.write(setCopySourceSql, [source]);
  }

  async finishCopy(): Promise<void> {
    await this.#cluster.any.write(setCopySourceSql, [null]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cluster.close();
  }
}

const versionSql = prepared(
  'versions',
  `
    SELECT store, version, writer, grants, last_user
    FROM plant_store.stores WHERE store > $1 ORDER BY store LIMIT 1000`,
);

const unfinishedSql = prepared<readonly [copyOf: string | null]>(
  'unfinished',
  'SELECT copy_of FROM plant_store.migrations WHERE id = 1',
);

const setCopySourceSql = prepared(
  'set_copy_source',
  'UPDATE plant_store.migrations SET copy_of = $1::text WHERE id = 1',
);

function insert(table: Table, rows: readonly Row[]): BoundStatement {
  const names = namesOf(table);
  const arrays = columns[table].map(([, type], at) => `$${at + 1}::${type}[]`).join();
  return [
    prepared(
      `add_${table}`,
      `
        INSERT INTO plant_store.${table} (${names})
        SELECT ${names} FROM unnest(${arrays}) AS new (${names}) ON CONFLICT DO NOTHING`,
    ),
    columns[table].map((_, at) => rows.map((row) => row[at])),
  ];
}

function addStoreNames(rows: readonly Row[]): BoundStatement {
  return [
    {
      name: 'name_stores',
      text: `
        INSERT INTO plant_store.named_stores (key, name, store)
        SELECT key, name, store FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS new (key, name, store)
        ON CONFLICT DO NOTHING`,
    },
    [
      rows.map(([, name]) => keyOf(String(name))),
      rows.map(([, name]) => name),
      rows.map(([store]) => store),
    ],
  ];
}

/** Users that are created later get numbers above these. */
function raiseLastUsers(rows: readonly Row[]): BoundStatement {
  return [
    {
      name: 'raise_last_users',
      text: `
        UPDATE plant_store.stores SET last_user = greatest(last_user, new.last)
        FROM (SELECT store, max(id) AS last FROM unnest($1::bigint[], $2::bigint[]) AS new (store, id)
              GROUP BY store) AS new
        WHERE stores.store = new.store`,
    },
    [rows.map(([store]) => store), rows.map(([, id]) => id)],
  ];
}

function namesOf(table: Table): string {
  return columns[table].map(([name]) => name).join();
}

function keyColumnsOf(table: Table): readonly string[] {
  return columns[table].slice(0, keyColumnCounts[table]).map(([name]) => name);
}
