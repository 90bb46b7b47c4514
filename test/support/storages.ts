/**
 * Runs tests once for each storage, or once on one of them.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test, type TestContext } from 'node:test';
import type { Plant } from '../../src/plants/plant.ts';
import { codeOf } from '../../src/postgres/errors.ts';
import { PostgresStorage } from '../../src/postgres/storage.ts';
import { isProblem } from '../../src/problem.ts';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import type { Storage, WriteSettings } from '../../src/storage.ts';
import { joinCluster, onWorkers } from './citus.ts';
import { query } from './postgres.ts';
import { postgresTemplate, postgresUrl } from './postgres-for-all.ts';
import { tempFolder } from './temp.ts';
import { until } from './until.ts';

/** SQLSTATE of a database that has sessions. */
const objectInUse = '55006';
const dropTimeoutMs = 60_000;

export const storageNames = ['SQLite', 'PostgreSQL'] as const;
export type StorageName = (typeof storageNames)[number];

export interface TestDatabase {
  /** The value for --database. */
  url: string;
  /** Opens it as another process would. The caller disposes it. */
  open(settings?: WriteSettings): Promise<Storage>;
  /** Inserts plants of the only user directly. */
  fill(plants: readonly Plant[]): Promise<void>;
  /** Runs a statement as another program would. */
  run(sql: string): Promise<void>;
}

type Scope = Pick<TestContext, 'after'>;

const storageOfTest = new WeakMap<Scope, StorageName>();

/** Registers a test for each storage. testDatabase(t) then returns a database of that storage. */
export function it(name: string, work: (t: TestContext) => Promise<void> | void): void {
  for (const storage of storageNames) register(name, work, storage);
}

/** Registers a test of what lies above the storages, for one: SQLite, or that of PLANT_STORE_TEST_STORAGE. */
export function itOnce(name: string, work: (t: TestContext) => Promise<void> | void): void {
  register(name, work, chosenStorage());
}

/** The scope of a file whose tests `itOnce` registers, for what they share. */
export function fileScope(): Scope {
  const scope = { after } as Scope; // no hook here uses its context
  storageOfTest.set(scope, chosenStorage());
  return scope;
}

function register(
  name: string,
  work: (t: TestContext) => Promise<void> | void,
  storage: StorageName,
): void {
  void test(`${name} (${storage})`, (t) => {
    storageOfTest.set(t, storage);
    return work(t);
  });
}

function chosenStorage(): StorageName {
  const chosen = process.env['PLANT_STORE_TEST_STORAGE'] ?? 'SQLite';
  const storage = storageNames.find((name) => name === chosen);
  if (storage === undefined) {
    throw new Error(`PLANT_STORE_TEST_STORAGE is ${storageNames.join(' or ')}, not ${chosen}.`);
  }
  return storage;
}

/** The storage of this test: SQLite unless `it` or `itOnce` registered it. */
export function storageOf(t: Scope): StorageName {
  return storageOfTest.get(t) ?? 'SQLite';
}

/** A database without plants and stores that is deleted after the test. On PostgreSQL, it can have the schema. */
export async function testDatabase(
  t: Scope,
  storage: StorageName = storageOf(t),
): Promise<TestDatabase> {
  return storage === 'SQLite' ? sqliteDatabase(t) : postgresDatabase(t, true);
}

/** A storage, opened until the end of the test, and the address of its database. */
export async function openedOn(
  t: Scope,
  name: StorageName,
): Promise<{ storage: Storage; url: string }> {
  const database = await testDatabase(t, name);
  const storage = await database.open();
  t.after(() => storage[Symbol.asyncDispose]());
  return { storage, url: database.url };
}

/** An empty database without the schema, for tests of what creates or changes it. */
export async function emptyDatabase(
  t: Scope,
  storage: StorageName = storageOf(t),
): Promise<TestDatabase> {
  return storage === 'SQLite' ? sqliteDatabase(t) : postgresDatabase(t, false);
}

function sqliteDatabase(t: Scope): TestDatabase {
  const path = join(tempFolder(t), 'plants.db');
  return {
    url: `sqlite:${path}`,
    open: async (settings) => new SqliteStorage(path, { create: true, ...settings }),
    async fill(plants) {
      using database = new DatabaseSync(path);
      database.exec('BEGIN');
      const insert = database.prepare(
        'INSERT INTO plants (store, owner, id, tag, name) SELECT store, id, ?, ?, ? FROM users',
      );
      for (const { id, tag, name } of plants) insert.run(id, tag, name);
      database.exec('UPDATE stores SET last_id = (SELECT max(id) FROM plants)');
      database.exec('COMMIT');
    },
    async run(sql) {
      using database = new DatabaseSync(path);
      database.exec(sql);
    },
  };
}

async function postgresDatabase(t: Scope, canHaveSchema: boolean): Promise<TestDatabase> {
  const server = await postgresUrl();
  const template = canHaveSchema ? postgresTemplate() : undefined;
  const name = `plant_store_test_${randomBytes(8).toString('hex')}`;
  const servers = [server, ...onWorkers(server)];
  const onAll = (sql: string) => Promise.all(servers.map((address) => query(address, sql)));
  // Copying files costs two thirds of copying pages through the WAL.
  await onAll(
    `CREATE DATABASE ${name} TEMPLATE ${template ?? 'template0'} ENCODING 'UTF8' STRATEGY FILE_COPY`,
  );
  t.after(() => Promise.all(servers.map((address) => drop(address, name))));
  const url = new URL(server);
  url.pathname = `/${name}`;
  await joinCluster(url.href);
  if (template !== undefined) {
    await query(url.href, 'UPDATE plant_store.migrations SET cluster = md5(random()::text)');
  }
  return {
    url: url.href,
    open: (settings) => openPostgres(url.href, { create: true, ...settings }),
    async fill(plants) {
      const rows = JSON.stringify(plants).replaceAll("'", "''");
      await query(
        url.href,
        `INSERT INTO plant_store.plants (store, owner, id, tag, name)
         SELECT users.store, users.id, new.id, new.tag, new.name
         FROM plant_store.users,
              json_to_recordset('${rows}') AS new (id bigint, tag text, name text);
         UPDATE plant_store.stores
         SET position = position + 1, last_id = (SELECT max(id) FROM plant_store.plants)`,
      );
    },
    async run(sql) {
      await query(url.href, `SET search_path = plant_store; ${sql}`);
    },
  };
}

/** A daemon of Citus that connects to a node which was cut off ends its session only after up to 30 seconds. */
async function drop(address: string, name: string): Promise<void> {
  const isDropped = () =>
    query(address, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`).then(
      () => true,
      (error: unknown) => {
        if (codeOf(error) !== objectInUse) throw error;
        return false;
      },
    );
  await until(`${name} is dropped`, isDropped, dropTimeoutMs);
}

/** With its schema, however long creating it takes: a service would answer 503 meanwhile. */
export async function openPostgres(
  ...address: ConstructorParameters<typeof PostgresStorage>
): Promise<PostgresStorage> {
  const storage = new PostgresStorage(...address);
  const isOpen = () =>
    storage.open().then(
      () => true,
      (error: unknown) => {
        if (isProblem(error, 'storage-unavailable')) return false;
        throw error;
      },
    );
  try {
    await until('the database is open', isOpen);
    return storage;
  } catch (error) {
    await storage[Symbol.asyncDispose](); // otherwise it keeps the test process running
    throw error;
  }
}
