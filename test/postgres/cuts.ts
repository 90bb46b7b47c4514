/**
 * The service behind a network that cuts its connections to the database, in the middle of whatever
 * is on its way. What it answers stays true.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { scopes } from '../../src/access.ts';
import { PostgresStorage } from '../../src/postgres/storage.ts';
import { startApp } from '../support/app.ts';
import { ledger } from '../support/ledger.ts';
import { databaseBehindProxy } from '../support/proxy.ts';
import { until } from '../support/until.ts';

/** Connections live for up to so many bytes: some do not even get in, others do some hundred statements. */
const maxBytesToLive = 40_000;
const users = 6;

/** Returns how many answers there were of each kind. */
export async function survivesCuts(t: TestContext, cuts: number): Promise<Record<string, number>> {
  const { url, proxy } = await databaseBehindProxy(t);
  const app = await startApp(t, { open: async () => new PostgresStorage(url) });
  const token = await app.token('maria', { role: 'manager', scopes });

  const book = ledger([app.address], token, { isSharing: true });
  await book.begin();
  proxy.bytesToLive = () => Math.ceil(Math.random() * maxBytesToLive);
  proxy.cutAll();
  const goesOn = () => proxy.cuts < cuts;
  await Promise.all(Array.from({ length: users }, (_, user) => book.work(user + 1, goesOn)));

  proxy.bytesToLive = () => Infinity;
  await until('it is ready again', async () => (await app.call('GET', '/readyz')).status === 200);
  await book.check();
  assert.ok((book.counts['POST 201'] ?? 0) > 0, 'some creates succeeded');
  return book.counts;
}
