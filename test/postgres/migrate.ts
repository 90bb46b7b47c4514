/**
 * A migration that takes longer than every time limit of the role that runs it.
 */
import assert from 'node:assert/strict';
import { addToken } from '../support/app.ts';
import { query } from '../support/postgres.ts';
import type { TestDatabase } from '../support/storages.ts';

/** The expression is costly, so that the index takes seconds. */
export const index = `
  CREATE INDEX CONCURRENTLY IF NOT EXISTS plants_by_note
  ON plant_store.plants (store, md5(repeat(name, 3000)), id)`;

/** The rows of one table are distributed by another column than those of the other. */
export const statements = `
  ALTER TABLE plant_store.plants ADD COLUMN IF NOT EXISTS note text;
  UPDATE plant_store.plants SET note = name WHERE note IS NULL;
  ${index};
  INSERT INTO plant_store.shares (store, owner, user_name, access, since)
  SELECT id, owner, name, 'read', 0 FROM plant_store.plants ON CONFLICT DO NOTHING;
  DROP INDEX CONCURRENTLY IF EXISTS plant_store.shares_by_user;`;

/** Creates the schema, and many plants of one user. */
export async function createPlants(database: TestDatabase, plants: number): Promise<void> {
  const storage = await database.open();
  await addToken(storage, 'alice');
  await storage[Symbol.asyncDispose]();
  await query(
    database.url,
    `INSERT INTO plant_store.plants (store, id, owner, tag, name)
     SELECT store, plant, id, '', 'plant ' || plant
     FROM plant_store.users, generate_series(1, ${plants}) AS plant`,
  );
}

/** Sets every time limit that a server has for the sessions of this user in this database. */
export async function limitSessions(urls: readonly string[]): Promise<void> {
  for (const url of urls) {
    await query(
      url,
      `DO $$
       DECLARE setting text;
       BEGIN
         FOR setting IN SELECT name FROM pg_settings WHERE name IN (
           'statement_timeout', 'transaction_timeout', 'lock_timeout', 'idle_session_timeout',
           'idle_in_transaction_session_timeout')
         LOOP
           EXECUTE format('ALTER ROLE %I IN DATABASE %I SET %I = %L',
                          current_user, current_database(), setting, '500ms');
         END LOOP;
       END $$`,
    );
    await assert.rejects(
      query(url, 'SELECT pg_sleep(10)'),
      /due to (?:statement|transaction) timeout/,
    );
  }
}

/** Removes the limits again, for queries of the test itself. */
export async function removeLimits(urls: readonly string[]): Promise<void> {
  for (const url of urls) {
    await query(
      url,
      `DO $$
       BEGIN
         EXECUTE format('ALTER ROLE %I IN DATABASE %I RESET ALL', current_user, current_database());
       END $$`,
    );
  }
}

/** Asserts that all statements of the migration were run. */
export async function assertMigrated(url: string, plants: number): Promise<void> {
  const [row] = await query(
    url,
    `SELECT
       (SELECT count(*)::int FROM plant_store.plants WHERE note = name) AS plants,
       (SELECT count(*)::int FROM plant_store.shares) AS shares,
       (SELECT json_agg(relname || ' ' || indisvalid) FROM pg_index JOIN pg_class ON oid = indexrelid
        WHERE relname IN ('plants_by_note', 'shares_by_user')) AS indexes`,
  );
  assert.deepEqual(row, { plants, shares: plants, indexes: ['plants_by_note true'] });
}
