/**
 * The service behind a network that cuts its connections to the database, in the middle of whatever
 * is on its way. What it answers stays true.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { scopes } from '../../src/access/access.ts';
import type { Quotas } from '../../src/plants/quota.ts';
import { PostgresStorage } from '../../src/postgres/storage.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { ledger } from '../support/ledger.ts';
import { databaseBehindProxy } from '../support/proxy.ts';
import { openPostgres } from '../support/storages.ts';
import { until } from '../support/until.ts';
import { identify } from '../support/tokens.ts';

/** Connections live for up to so many bytes: some do not even get in, others do some hundred statements. */
const maxBytesToLive = 40_000;
const users = 6;

/** Returns how many answers there were of each kind. */
export async function survivesCuts(
  t: TestContext,
  cuts: number,
  quotas?: Quotas,
): Promise<Record<string, number>> {
  const { url, proxy } = await databaseBehindProxy(t);
  const app = await startApp(t, {
    open: () => openPostgres(url, { create: true, quotas }),
  });
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
  if (quotas !== undefined) await checkCounts(url, app, token);
  assert.ok((book.counts['POST 201'] ?? 0) > 0, 'some creates succeeded');
  return book.counts;
}

/** With a quota that leaves room for one plant, there is room for exactly one. */
async function checkCounts(url: string, { call, storage }: TestApp, token: string): Promise<void> {
  const { json } = await call('GET', '/plants', { token });
  const plants = (json as unknown[]).length; // a list is an array
  const quotas = { perUser: undefined, perStore: plants + 1 };
  await using limited = new PostgresStorage(url, { create: true, quotas });
  const grant = await identify(storage, token);
  assert.ok(grant);
  await limited.plants.create(grant.caller, { name: 'the last one' });
  await assert.rejects(limited.plants.create(grant.caller, { name: 'one more' }), {
    kind: 'quota-exceeded',
  });
}
