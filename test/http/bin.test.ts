/**
 * The list of deleted plants.
 */
import assert from 'node:assert/strict';
import { startApp, type Answer } from '../support/app.ts';
import { it as itOnEach, itOnce as it } from '../support/storages.ts';

interface Deleted {
  id: number;
  name: string;
  tag: string;
  owner: string;
  deletedAt: string;
  deletedBy?: string;
}

const entries = ({ json }: Answer) => json as Deleted[];
const idsOf = (answer: Answer) => entries(answer).map(({ id }) => id);

it('the bin has what the caller can restore, and who deleted it when', async (t) => {
  const beforeMs = Date.now();
  const { call, token } = await startApp(t);
  const [alice, maria] = [await token('alice'), await token('maria', { role: 'manager' })];
  const bin = async (by: string) => call('GET', '/bin', { token: by });
  assert.equal((await bin(alice)).text, '[]');
  await call('POST', '/plants', { token: alice, json: { name: '🌵 "a"', tag: 't' } });
  await call('POST', '/plants', { token: maria, json: { name: 'b' } });
  await call('DELETE', '/plants/1', { token: maria });
  await call('DELETE', '/plants/2', { token: maria });
  assert.deepEqual(idsOf(await bin(alice)), [1]);
  const [, { deletedAt = '', ...others } = {}] = entries(await bin(maria)) as Partial<Deleted>[];
  const expected = { id: 1, name: '🌵 "a"', tag: 't', owner: 'alice', deletedBy: 'maria' };
  assert.deepEqual(others, expected);
  assert.equal(new Date(deletedAt).toISOString(), deletedAt);
  assert.ok(Date.parse(deletedAt) >= beforeMs && Date.parse(deletedAt) <= Date.now());
  await call('POST', '/plants/1/restore', { token: alice });
  assert.deepEqual(idsOf(await bin(maria)), [2]);
  const refused = await bin(await token('bob', { scopes: ['plants:write'] }));
  assert.equal(refused.status, 403);
  assert.match(refused.headers.get('www-authenticate') ?? '', /scope="plants:read"/);
});

it('pages of the bin lead to each other, and each deletion is in one of them', async (t) => {
  const { call, token } = await startApp(t, { baseUrl: 'https://plants.example/x' });
  const alice = await token('alice');
  const ids = Array.from({ length: 30 }, (_, at) => at + 1);
  for (const id of ids) {
    await call('POST', '/plants', { token: alice, json: { name: 'n'.repeat(200) } });
    await call('DELETE', `/plants/${id}`, { token: alice });
  }
  const whole = await call('GET', '/bin', { token: alice });
  assert.deepEqual(idsOf(whole), ids.toReversed());
  assert.equal(whole.headers.get('link'), null);
  for (const limit of [1, 7, 15, 30, 1_000]) {
    const seen: number[] = [];
    for (let target = `/bin?limit=${limit}`; ;) {
      const page = await call('GET', target, { token: alice });
      seen.push(...idsOf(page));
      const link = page.headers.get('link');
      if (link === null) break;
      const [, next = ''] = /^<https:\/\/plants\.example\/x(.*)>; rel="next"$/.exec(link) ?? [];
      assert.equal(idsOf(page).length, limit);
      target = next;
    }
    assert.deepEqual(seen, ids.toReversed(), `limit ${limit}`);
  }
  const head = await call('HEAD', '/bin?limit=1', { token: alice });
  assert.deepEqual([head.status, head.text], [200, '']);
  const link = head.headers.get('link') ?? '';
  assert.match(link, /\/bin\?limit=1&after=\d+-\d+>; rel="next"$/);
});

it('the bin refuses what is no page of it', async (t) => {
  const { call, token } = await startApp(t);
  const alice = await token('alice');
  const at = `after=${'9'.repeat(15)}-${'9'.repeat(9)}`;
  assert.equal((await call('GET', `/bin?${at}`, { token: alice })).status, 200);
  for (const query of [
    'after=',
    'after=1',
    'after=1-',
    'after=-1-1',
    'after=01-1',
    `after=1${'0'.repeat(15)}-1`,
    'after=1-1000000000',
    `${at}&${at}`,
    'limit=0',
    'limit=1001',
    'tag=a',
    'fields=id',
  ]) {
    const { status, json } = await call('GET', `/bin?${query}`, { token: alice });
    assert.equal(status, 400, query);
    const [fault] = (json as { errors: { parameter: string }[] }).errors;
    assert.equal(fault?.parameter, query.split('=')[0]);
  }
  assert.equal((await call('OPTIONS', '/bin')).headers.get('allow'), 'GET, HEAD, OPTIONS');
  assert.equal((await call('DELETE', '/bin', { token: alice })).status, 405);
  assert.equal((await call('GET', '/bin/1', { token: alice })).status, 404);
  assert.equal((await call('GET', '/bin')).status, 401);
});

itOnEach(
  'neither the bin nor a history has an earlier plant with the id, though a clock was ahead',
  async (t) => {
    const { call, token, database, storage } = await startApp(t);
    const [alice, bob] = [await token('alice'), await token('bob')];
    await call('POST', '/plants', { token: alice, json: { name: 'secret', id: 5 } });
    await call('DELETE', '/plants/5', { token: alice });
    await database.run(`UPDATE changes SET at = at + 60000 WHERE event = 'deleted'`);
    await call('POST', '/plants', { token: bob, json: { name: 'b', id: 5 } });
    for (let store: number | undefined = 0; store !== undefined;) {
      store = await storage.log.removeOld(Date.now() + 30_000, store);
    }
    const { text } = await call('GET', '/plants/5/history', { token: bob });
    assert.doesNotMatch(text, /secret|deleted/);
    assert.match(text, /"created"/);
    assert.equal((await call('GET', '/bin', { token: alice })).text, '[]');
    assert.equal((await call('GET', '/plants/5/history', { token: alice })).status, 404);
  },
);
