/**
 * Databases of older versions, whose tokens do not name their store.
 */
import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import type { TestContext } from 'node:test';
import { encodeSchema, readMigrations, schemaAfter } from '../src/migrations.ts';
import { parseSteps } from '../src/postgres/migration-steps.ts';
import { applicationId, createSchema } from '../src/sqlite/migrate.ts';
import { credentialOf, hashToken } from '../src/token.ts';
import { addToken } from './support/app.ts';
import { isCitus } from './support/citus.ts';
import { runOk } from './support/command.ts';
import { query } from './support/postgres.ts';
import { emptyDatabase, type TestDatabase } from './support/storages.ts';
import { idOf, makeOldToken } from './support/tokens.ts';

/** The last schemas without routes. */
const lastOnSqlite = 6;
const lastOnPostgres = 4;

const [active, child, revoked] = [makeOldToken(), makeOldToken(), makeOldToken()];

/** The rows of two stores, with the names of the columns on an engine, and how it writes bytes. */
function oldRows(table: string, user: string, id: string, bytes: (hex: string) => string): string {
  const hash = (token: string) => bytes(hashToken(token).toString('hex'));
  return `
    INSERT INTO ${table}stores (store, name) VALUES (7, 'main'), (9, 'north');
    INSERT INTO ${table}users (store, ${id}, name, role)
    VALUES (7, 1, 'alice', 'member'), (9, 1, 'bob', 'manager');
    INSERT INTO ${table}tokens (hash, store, ${user}, scopes, label,
                                created_at, expires_at, revoked_at, last_used_at, family)
    VALUES (${hash(active)}, 7, 1, 'plants:read', 'old', 1, NULL, NULL, 60000, NULL),
           (${hash(child)}, 7, 1, 'plants:read', '', 2, 9000, NULL, NULL, '${idOf(active)}'),
           (${hash(revoked)}, 9, 1, 'plants:write', '', 3, NULL, 4, NULL, NULL);`;
}

export async function oldSqlite(t: TestContext): Promise<TestDatabase> {
  const database = await emptyDatabase(t, 'SQLite');
  using file = new DatabaseSync(database.url.slice('sqlite:'.length));
  createSchema(file, lastOnSqlite);
  file.exec(`PRAGMA application_id = ${applicationId}`);
  file.exec(`PRAGMA user_version = ${numberOf('sqlite', lastOnSqlite)}`);
  file.exec(oldRows('', 'user', 'user', (hex) => `x'${hex}'`));
  return database;
}

/** Also runs the first `steps` statements of the upgrade, as a process that was then killed. */
export async function oldPostgres(t: TestContext, steps: number): Promise<TestDatabase> {
  const database = await emptyDatabase(t, 'PostgreSQL');
  await (await database.open())[Symbol.asyncDispose]();
  await query(database.url, 'DROP TABLE plant_store.store_tokens, plant_store.unrouted_tokens');
  for (const { sql } of migrationsOf('postgres').slice(0, lastOnPostgres)) {
    for (const { text } of parseSteps(sql)) await query(database.url, text);
  }
  if (isCitus)
    await query(database.url, `SELECT create_distributed_table('plant_store.tokens', 'hash')`);
  const rows = oldRows('plant_store.', 'user_id', 'id', (hex) => `'\\x${hex}'`);
  await query(
    database.url,
    `${rows}
     INSERT INTO plant_store.store_names (name, store) VALUES ('main', 7), ('north', 9);
     UPDATE plant_store.stores SET last_user = 1;
     UPDATE plant_store.migrations SET version = ${numberOf('postgres', lastOnPostgres)}`,
  );
  for (const { text } of upgradeSteps.slice(0, steps)) await query(database.url, text);
  return database;
}

function migrationsOf(engine: 'sqlite' | 'postgres') {
  return readMigrations(new URL(`../src/${engine}/migrations/`, import.meta.url));
}

function numberOf(engine: 'sqlite' | 'postgres', version: number): number {
  const applied = migrationsOf(engine).slice(0, version);
  return encodeSchema(applied.reduce(schemaAfter, { version: 0, usableFrom: 0 }));
}

export const upgradeSteps = parseSteps(migrationsOf('postgres')[lastOnPostgres]?.sql ?? '');

export async function assertKept(database: TestDatabase): Promise<void> {
  await runOk(['migrate', '--database', database.url]);
  await using storage = await database.open();
  const grants = await Promise.all(
    [active, child, revoked].map((token) => storage.identity.identify(credentialOf(token))),
  );
  assert.deepEqual(
    grants.map((grant) => [grant?.tokenId, grant?.family, grant?.storeName, grant?.revokedAtMs]),
    [
      [idOf(active), idOf(active), 'main', undefined],
      [idOf(child), idOf(active), 'main', undefined],
      [idOf(revoked), idOf(revoked), 'north', 4],
    ],
  );
  const listed = await storage.identity.listTokens({ limit: 10 });
  const inOrderOfCreation = listed.toSorted((a, b) => a.createdAtMs - b.createdAtMs);
  const common = { format: 1, role: 'member', label: '' };
  const times = { expiresAtMs: undefined, revokedAtMs: undefined, lastUsedAtMs: undefined };
  const alices = { ...common, ...times, store: 'main', user: 'alice', scopes: ['plants:read'] };
  const bobs = { ...common, ...times, store: 'north', user: 'bob', scopes: ['plants:write'] };
  const expected = [
    { ...alices, id: idOf(active), label: 'old', createdAtMs: 1, lastUsedAtMs: 60_000 },
    { ...alices, id: idOf(child), createdAtMs: 2, expiresAtMs: 9_000 },
    { ...bobs, id: idOf(revoked), role: 'manager', createdAtMs: 3, revokedAtMs: 4 },
  ];
  assert.equal(listed.length, expected.length);
  assert.partialDeepStrictEqual(inOrderOfCreation, expected);
  assert.equal((await storage.identity.revokeToken(idOf(active), 5))?.revokedAtMs, 5);
  assert.equal((await storage.identity.identify(credentialOf(active)))?.revokedAtMs, 5);
  const grant = await storage.identity.identify(credentialOf(await addToken(storage, 'alice')));
  assert.deepEqual(grant?.caller.store, 7);
}
