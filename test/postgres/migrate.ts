/**
 * Time limits that a role can have.
 */
import assert from 'node:assert/strict';
import { query } from '../support/postgres.ts';

const limits = `'statement_timeout', 'transaction_timeout', 'lock_timeout', 'idle_session_timeout',
  'idle_in_transaction_session_timeout'`;

/** Sets every time limit that a server has for the sessions of this user in this database. */
export async function limitSessions(urls: readonly string[]): Promise<void> {
  for (const url of urls) {
    const rows = await query(url, `SELECT name FROM pg_settings WHERE name IN (${limits})`);
    const names = (rows as { name: string }[]).map(({ name }) => name); // the selected column
    await query(url, names.map((name) => `${ofRole(url)} SET ${name} = '500ms'`).join(';'));
    await assert.rejects(
      query(url, 'SELECT pg_sleep(10)'),
      /due to (?:statement|transaction) timeout/,
    );
  }
}

/** Removes the limits again, for queries of the test itself. */
export async function removeLimits(urls: readonly string[]): Promise<void> {
  for (const url of urls) await query(url, `${ofRole(url)} RESET ALL`);
}

function ofRole(url: string): string {
  return `ALTER ROLE CURRENT_USER IN DATABASE ${new URL(url).pathname.slice(1)}`;
}
