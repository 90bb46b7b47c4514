import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { scopes } from '../../src/access/access.ts';
import type { Problem } from '../../src/problem.ts';
import { PostgresStorage } from '../../src/postgres/storage.ts';
import { hashToken } from '../../src/access/token.ts';
import { addToken, startApp, type TestApp } from '../support/app.ts';
import { ledger } from '../support/ledger.ts';
import { query } from '../support/postgres.ts';
import { databaseBehindProxy } from '../support/proxy.ts';
import { rounds, sizeOf } from '../support/rounds.ts';
import { openPostgres } from '../support/storages.ts';
import { identify, idOf } from '../support/tokens.ts';
import { until } from '../support/until.ts';

/** More bytes than a revocation sends and receives, or a change of shares, and how many cuts there are among those. */
const revocationBytes = 5_000;
const changeBytes = 4_000;
const cuts = 24;

/** Connections live for up to so many bytes: some do not even get in, others do some hundred statements. */
const maxBytesToLive = 40_000;
const users = 6;
const connectionCuts = sizeOf({ usual: 40, long: 300 });
/** So large that no change is refused, but each is counted. */
const quotas = { perUser: 1_000_000, perStore: 1_000_000 };

it('PostgreSQL: every response is correct, and quotas stay exact, while the network cuts connections', (t) =>
  rounds(t, survivesCuts));

it('PostgreSQL: an interrupted revocation applies everywhere or nowhere', async (t) => {
  const { url, proxy, direct } = await databaseBehindProxy(t);
  const app = await startApp(t, { open: () => openPostgres(direct) });
  const outcomes = new Set<string>();
  /** Whether a revocation took place whose connection was cut after so many bytes. */
  const revokesWith = async (bytes: number) => {
    const token = await app.token('alice');
    const status = async () => (await app.call('GET', '/plants', { token })).status;
    assert.equal(await status(), 200); // from now on, the token is cached there

    await using other = await openPostgres(url);
    proxy.bytesLeft = bytes;
    const reported = await other.identity.revokeToken(idOf(token), Date.now()).then(
      () => 'revoked',
      ({ kind }: Problem) => kind,
    );
    proxy.bytesLeft = Infinity;
    const [row] = await query(
      direct,
      `SELECT CASE WHEN revoked_at IS NULL THEN 'valid' ELSE 'revoked' END AS state
       FROM plant_store.tokens WHERE hash = '\\x${hashToken(token).toString('hex')}'`,
    );
    const { state } = row as { state: string }; // the selected column
    assert.equal(await status(), state === 'valid' ? 200 : 401);
    outcomes.add(`${reported}: ${state}`);
    return state === 'revoked';
  };
  let [tooFew, enough] = [0, revocationBytes];
  for (const bytes of [tooFew, enough]) await revokesWith(bytes);
  while (enough - tooFew > 60) {
    const middle = Math.ceil((tooFew + enough) / 2);
    if (await revokesWith(middle)) enough = middle;
    else tooFew = middle;
  }
  // Cuts happened before, during and after the commit.
  const truths = ['storage-unavailable: valid', 'outcome-unknown: revoked', 'revoked: revoked'];
  for (const seen of truths) assert.ok(outcomes.has(seen), seen);
  for (const lie of ['storage-unavailable: revoked', 'revoked: valid']) {
    assert.ok(!outcomes.has(lie), lie);
  }
});

it('PostgreSQL: a change of shares during a cut is never denied', async (t) => {
  const { url, proxy, direct } = await databaseBehindProxy(t);
  await using sound = await openPostgres(direct);
  await addToken(sound, 'alice');
  const { store = 0 } = await sound.users.find('main');
  const ends = { owner: 'alice', user: 'bob' };
  const outcomes = new Set<string>();
  proxy.onCut = () => (proxy.bytesLeft = Infinity); // for the next attempt
  for (let cut = 0; cut < cuts; cut++) {
    const isGiven = cut % 2 === 0;
    if (isGiven) await sound.shares.end(store, [ends]);
    else await sound.shares.set(store, { ...ends, access: 'read' }, 0);

    await using other = await openPostgres(url);
    proxy.bytesLeft = Math.ceil((cut / cuts) * changeBytes);
    const change = isGiven
      ? other.shares.set(store, { ...ends, access: 'read' }, 0)
      : other.shares.end(store, [ends]);
    const reported = await change.catch(({ kind }: Problem) => kind);
    proxy.bytesLeft = Infinity;
    const isDone = (await sound.shares.of(store, 'alice')).given.length === (isGiven ? 1 : 0);
    outcomes.add(`${reported}: ${isDone}`);
  }
  // What became of the first attempt is asked, over the next connection.
  for (const outcome of outcomes)
    assert.match(outcome, /^(?:true: true|storage-unavailable: false)$/);
  assert.ok(outcomes.has('true: true'));
});

async function survivesCuts(t: TestContext): Promise<void> {
  const { url, proxy } = await databaseBehindProxy(t);
  const app = await startApp(t, {
    open: () => openPostgres(url, { create: true, quotas }),
  });
  const token = await app.token('maria', { role: 'manager', scopes });

  const book = ledger([app.address], token, { isSharing: true });
  await book.begin();
  proxy.bytesToLive = () => Math.ceil(Math.random() * maxBytesToLive);
  proxy.cutAll();
  const goesOn = () => proxy.cuts < connectionCuts;
  await Promise.all(Array.from({ length: users }, (_, user) => book.work(user + 1, goesOn)));

  proxy.bytesToLive = () => Infinity;
  await until('it is ready again', async () => (await app.call('GET', '/readyz')).status === 200);
  await book.check();
  await checkCounts(url, app, token);
  assert.ok((book.counts['POST 201'] ?? 0) > 0, 'some creates succeeded');
  t.diagnostic(JSON.stringify(book.counts));
}

/** With a quota that leaves room for one plant, there is room for exactly one. */
async function checkCounts(url: string, { call, storage }: TestApp, token: string): Promise<void> {
  const { json } = await call('GET', '/plants', { token });
  const plants = (json as unknown[]).length; // a list is an array
  const exact = { perUser: undefined, perStore: plants + 1 };
  await using limited = new PostgresStorage(url, { create: true, quotas: exact });
  const grant = await identify(storage, token);
  assert.ok(grant);
  await limited.plants.create(grant.caller, { name: 'the last one' });
  await assert.rejects(limited.plants.create(grant.caller, { name: 'one more' }), {
    kind: 'quota-exceeded',
  });
}
