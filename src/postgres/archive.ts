import {
  copiedColumns,
  keyPartOf,
  type Archive,
  type Row,
  type Table,
  type Target,
} from '../copy/archive.ts';
import { parseAddress } from './pool/address.ts';
import { runUnlimited, unlimitedSettings } from './schema/unlimited.ts';
import { Servers } from './servers.ts';
import { sql, type Statement, type Query } from '../sql/statement.ts';
import type { Connection } from './pool/connection.ts';
import { problemOf, settled } from './errors.ts';
import { refuseNewerSchema, refuseOlderSchema, type MigrateOptions } from './schema/migrate.ts';
import { newGrantsVersion } from './tables/grants.ts';
import { keyOf } from './tables/names.ts';
import { outcomeUnknown } from '../problem.ts';
import { Refusal } from '../refusal.ts';

/** The server ends the transaction of a process that is paused for so long, for example because its machine has failed. */
const maxIdleMs = 60_000;

/** Throws Refusal if the database cannot be used, and a Problem if it does not respond. */
export async function openPostgresArchive(
  url: string,
  { isUnchanged, ...options }: Pick<MigrateOptions, 'create'> & { isUnchanged?: boolean },
): Promise<Archive> {
  const servers = new Servers(parseAddress(url), options);

  const withSession = <T>(work: (session: Connection) => Promise<T>): Promise<T> =>
    servers.any.withConnection(work).catch((error: unknown) => {
      throw error instanceof Refusal ? error : problemOf(error);
    });

  /** In one statement, however long it takes: in steps, every machine of a cluster would have to send all keys. */
  const aggregate = async (text: string) => {
    const { rows } = await withSession((session) => runUnlimited(session, text, 0));
    return rows[0]?.[0];
  };

  try {
    if (isUnchanged) await withSession(refuseOlderSchema);
    await servers.readiness.open();
    await withSession(refuseNewerSchema);
  } catch (error) {
    await servers.close();
    throw error;
  }
  return {
    count: async (table) => Number(await aggregate(`SELECT count(*) FROM plant_store.${table}`)),
    read: (table, after, limit) => servers.any.read(readSql(table, after, limit), after ?? []),
    version: async () => String(await aggregate(versionSql)),
    snapshot: (work) => withSession((session) => transact(session, snapshotIsolation, work)),
    fill: (work) => withSession((session) => transact(session, 'READ COMMITTED', work)),
    [Symbol.asyncDispose]: () => servers.close(),
  };
}

/** With one connection to each node of a cluster, so that all statements about a store see the same snapshot. */
const snapshotIsolation =
  'REPEATABLE READ READ ONLY; SET LOCAL citus.max_adaptive_executor_pool_size = 1';

/** Changes with the version or the last user of any store. */
const versionSql = `
  SELECT sum(hashtextextended(row(store, position, writer, grants, last_user)::text, 0))
  FROM plant_store.stores`;

function readSql(table: Table, after: Row | undefined, limit: number): Statement<Row> {
  const key = keyPartOf(table, copiedColumns[table]).join();
  const parameters = after?.map((_, at) => `$${at + 1}`).join();
  const range = parameters === undefined ? '' : `WHERE (${key}) > (${parameters})`;
  return sql`
    SELECT ${copiedColumns[table].join()} FROM plant_store.${table}
    ${range} ORDER BY ${key} LIMIT ${limit}`;
}

async function transact<T>(
  session: Connection,
  isolation: string,
  work: (target: Target) => Promise<T>,
): Promise<T> {
  const run = async ([{ text }, values]: Query) =>
    (await session.commandWithoutDeadline(text, values)).rows;
  const target: Target = {
    read: async (table, after, limit) => run([readSql(table, after, limit), after ?? []]),
    add: async (table, rows) => {
      await settled(statementsFor(table, rows).map(run));
    },
  };
  const settings = await unlimitedSettings(session, 0);
  try {
    await session.command(
      `BEGIN ISOLATION LEVEL ${isolation}; ${settings}; SET LOCAL idle_in_transaction_session_timeout = ${maxIdleMs}`,
    );
    const result = await work(target);
    await session.commandWithoutDeadline('COMMIT').catch((error: unknown) => {
      throw session.isLost ? outcomeUnknown(error) : error;
    });
    return result;
  } catch (error) {
    session.destroy(); // the server rolls back
    throw error;
  }
}

function statementsFor(table: Table, rows: readonly Row[]): Query[] {
  if (table === 'stores') return addStores(rows);
  if (table !== 'plants' && table !== 'changes') return [insert(table, copiedColumns[table], rows)];
  // One statement for each store, so that each runs on one node of a distributed engine.
  const parts = Object.groupBy(rows, ([store]) => String(store));
  return Object.values(parts).map((part = []) => insert(table, copiedColumns[table], part));
}

function addStores(rows: readonly Row[]): Query[] {
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

/** As JSON, because its members get the types of the columns. */
function insert(table: string, into: readonly string[], rows: readonly Row[]): Query {
  const all = into.join();
  const objects = rows.map((row) =>
    Object.fromEntries(into.map((column, at) => [column, jsonOf(row[at] ?? null)])),
  );
  return [
    sql`
      INSERT INTO plant_store.${table} (${all})
      SELECT ${all} FROM json_populate_recordset(NULL::plant_store.${table}, $1)`,
    [JSON.stringify(objects)],
  ];
}

function jsonOf(value: Row[number]): Row[number] {
  return value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : value;
}
