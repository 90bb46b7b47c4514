/**
 * Time limits that a role can have.
 */
import assert from 'node:assert/strict';
import { query } from '../support/postgres.ts';

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
