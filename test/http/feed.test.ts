/**
 * Following changes over HTTP. test/log.test.ts has what a reader sees of which change.
 */
import assert from 'node:assert/strict';
import { inNewStore, nextOf, startApp, type Answer, type Send } from '../support/app.ts';
import { findUser } from '../support/scene.ts';
import { fileScope, it as itOnEach, itOnce as it } from '../support/storages.ts';
import { until } from '../support/until.ts';

interface Change {
  id: number;
  event: string;
  at: string;
  user?: string;
  plant?: object;
}

const app = await startApp(fileScope());
const changesIn = ({ json }: Answer) => json as Change[];
const positionIn = ({ headers }: Answer) => Number(headers.get('change-position'));

/** The target that waits for the next changes. */
function waitFor(answer: Answer, seconds = 25): string {
  return `${nextOf(answer).replace(/&wait=\d+/, '')}&wait=${seconds}`;
}

async function createdBy(send: Send, name: string): Promise<Answer> {
  return send('POST', '/plants', { json: { name } });
}

itOnEach('shows each change since the cursor, with the plant as it is now', async (t) => {
  const { user } = await startApp(t);
  const [alice, bob] = [await user('alice', { role: 'manager' }), await user('bob')];
  await createdBy(alice, 'before');
  const begin = await alice('GET', '/changes');
  assert.deepEqual([begin.status, begin.text], [200, '[]']);
  await createdBy(bob, 'Fern');
  await alice('PATCH', '/plants/2', { json: { tag: 'indoor' } });
  const deleted = await alice('DELETE', '/plants/1');
  const target = `${nextOf(begin)}&fields=id,owner,tag`;
  const followed = await alice('GET', target);
  const [updated, gone] = changesIn(followed);
  assert.deepEqual(changesIn(followed), [
    {
      id: 2,
      event: 'updated',
      at: updated?.at,
      user: 'alice',
      plant: { id: 2, owner: 'bob', tag: 'indoor' },
    },
    { id: 1, event: 'deleted', at: gone?.at, user: 'alice' },
  ]);
  assert.ok(positionIn(followed) >= positionIn(deleted), 'the receipt of the deletion is passed');
  const end = await alice('GET', nextOf(followed));
  assert.deepEqual([end.text, positionIn(end)], ['[]', positionIn(followed)]);
  assert.match(
    nextOf(followed),
    /^\/changes\?limit=1000&after=[\w.]+&fields=id&fields=owner&fields=tag$/,
  );
  const ids: number[] = [];
  let page = await alice('GET', target.replace('limit=1000', 'limit=1'));
  for (; page.text !== '[]'; page = await alice('GET', nextOf(page))) {
    ids.push(...changesIn(page).map(({ id }) => id));
  }
  assert.deepEqual(ids, [2, 2, 1], 'each page has a plant once');
});

it('has the last change to each plant, in the order of these changes', async () => {
  const { user } = inNewStore(app);
  const alice = await user('alice');
  const begin = await alice('GET', '/changes');
  const names = Array.from({ length: 130 }, (_, at) => `n${at}`); // more than one read has
  await Promise.all(names.map((name) => createdBy(alice, name)));
  await alice('PATCH', '/plants/7', { json: { name: 'last' } });
  const ids = changesIn(await alice('GET', nextOf(begin))).map(({ id }) => id);
  assert.equal(ids.length, 130);
  assert.deepEqual(
    ids.filter((id) => [6, 7, 8].includes(id)),
    [6, 8, 7],
  );
});

it('shows nothing of plants that the user could never see, not even their deletion', async () => {
  const { user } = inNewStore(app);
  const [alice, bob] = [await user('alice'), await user('bob')];
  await createdBy(bob, 'before');
  const begin = await alice('GET', '/changes');
  await bob('DELETE', '/plants/1');
  await createdBy(bob, 'after');
  await bob('DELETE', '/plants/2');
  const followed = await alice('GET', nextOf(begin));
  assert.equal(followed.text, '[]');
  assert.ok(positionIn(followed) > positionIn(begin));
});

itOnEach('a later user of a name does not continue from a cursor of the former one', async (t) => {
  const { user, storage } = await startApp(t);
  const [alice, maria] = [await user('alice'), await user('maria', { role: 'manager' })];
  const begin = await alice('GET', '/changes');
  await createdBy(alice, 'hers');
  await maria('DELETE', '/plants/1');
  await storage.users.remove(await findUser(storage, 'main', 'alice'), Date.now());
  const next = await user('alice');
  for (const target of [nextOf(begin), nextOf(begin).replace('limit=1000', 'limit=1')]) {
    const { status, json } = await next('GET', target);
    assert.deepEqual([status, (json as { reason: string }).reason], [410, 'access-changed']);
  }
  assert.equal((await next('GET', nextOf(await next('GET', '/changes')))).text, '[]');
});

itOnEach('each change has a receipt, which a repeated request has too', async (t) => {
  const { user } = await startApp(t);
  const alice = await user('alice');
  const headers = { 'idempotency-key': '"a"' };
  const create = async () => alice('POST', '/plants', { json: { name: 'Fern' }, headers });
  const receipts = [
    await create(),
    await alice('PATCH', '/plants/1', { json: { name: 'Ficus' } }),
    await alice('PATCH', '/plants/1', { json: { name: 'Ficus' } }), // changes nothing
    await alice('DELETE', '/plants/1'),
    await alice('POST', '/plants/1/restore'),
    await create(),
  ].map(positionIn);
  const first = receipts[0] ?? 0;
  assert.deepEqual(
    receipts.map((position) => position - first),
    [0, 1, 1, 2, 3, 3],
  );
  assert.equal(positionIn(await alice('GET', '/changes')), first + 3);
});

itOnEach('a share, its end and another role end the cursor of whom they concern', async (t) => {
  const { user, token } = await startApp(t);
  const everything = { scopes: ['plants:read', 'plants:write', 'shares:write'] } as const;
  const [alice, bob, carol] = [
    await user('alice', everything),
    await user('bob'),
    await user('carol'),
  ];
  const ofAll = await Promise.all([alice, bob, carol].map((each) => each('GET', '/changes')));
  let [ofAlice, ofBob, ofCarol] = ofAll as [Answer, Answer, Answer];
  const steps = [
    () => alice('PUT', '/shares/bob', { json: { access: 'read' } }),
    () => alice('PUT', '/shares/bob', { json: { access: 'write' } }),
    () => alice('DELETE', '/shares/bob'),
    () => token('bob', { role: 'manager' }),
    () => token('bob', { role: 'member' }),
    // What he has listed in between has plants that no later change takes away.
    async () => {
      await token('bob', { role: 'manager' });
      return token('bob', { role: 'member' });
    },
  ];
  for (const step of steps) {
    await step();
    const { status, json } = await bob('GET', nextOf(ofBob));
    const { type, reason } = json as { type: string; reason: string };
    assert.deepEqual([status, type, reason], [410, '/problems/cursor-ended', 'access-changed']);
    ofBob = await bob('GET', '/changes');
    assert.equal((await bob('GET', nextOf(ofBob))).text, '[]', 'a new cursor works');
    ofCarol = await carol('GET', nextOf(ofCarol));
    assert.equal(ofCarol.text, '[]', 'nothing changes for others');
  }
  await alice('PUT', '/team-share', { json: { access: 'read' } });
  assert.equal((await bob('GET', nextOf(ofBob))).status, 410);
  assert.equal((await carol('GET', nextOf(ofCarol))).status, 410);
  ofAlice = await alice('GET', nextOf(ofAlice));
  assert.equal(ofAlice.text, '[]', 'the owner sees what she saw');
});

it('a request waits for a change that its user can see', async () => {
  const { user } = inNewStore(app);
  const [alice, bob] = [await user('alice'), await user('bob')];
  const waiting = alice('GET', waitFor(await alice('GET', '/changes')));
  await createdBy(bob, 'not hers');
  await createdBy(alice, 'hers');
  assert.deepEqual(
    changesIn(await waiting).map(({ id, user: who }) => [id, who]),
    [[2, 'alice']],
  );
});

itOnEach('a change of another process wakes those who wait', async (t) => {
  const { user, database } = await startApp(t);
  const alice = await user('alice');
  const waiting = alice('GET', waitFor(await alice('GET', '/changes')));
  const other = await startApp(t, { open: () => database.open() });
  await createdBy(await other.user('alice'), 'Fern');
  assert.equal(changesIn(await waiting).length, 1);
});

it('without a change, the response is empty when the time is over', async () => {
  const { user } = inNewStore(app);
  const alice = await user('alice');
  const begin = await alice('GET', '/changes');
  const startedMs = performance.now();
  const { status, text, headers } = await alice('GET', waitFor(begin, 1));
  assert.ok(performance.now() - startedMs >= 990);
  assert.deepEqual(
    [status, text, headers.get('change-position')],
    [200, '[]', String(positionIn(begin))],
  );
});

it('a waiting request ends with its token', async () => {
  const { user, token, as } = inNewStore(app);
  const alice = await user('alice');
  const revoked = as(await token('alice'));
  const expiring = as(await token('alice', { expiresAtMs: Date.now() + 1_500 }));
  const target = waitFor(await alice('GET', '/changes'));
  const waiting = [revoked('GET', target), expiring('GET', target)];
  await revoked('DELETE', '/token');
  for (const answer of await Promise.all(waiting)) assert.equal(answer.status, 401);
});

it('limits the requests of a family of tokens that wait, and counts none of them as in progress', async (t) => {
  const { user } = await startApp(t, { limits: { maxRequestsInProgress: 2 } });
  const alice = await user('alice');
  const target = waitFor(await alice('GET', '/changes'), 2);
  const waiting: Promise<Answer>[] = [];
  for (let at = 0; at < 16; at++) {
    const answer = alice('GET', target);
    waiting.push(answer);
    await until('the request waits', async () => (await alice('GET', '/plants')).status === 200);
  }
  const refused = await alice('GET', target);
  assert.equal(refused.status, 429);
  assert.equal(refused.headers.get('ratelimit-policy'), '"waiting";q=16;qu="concurrent-requests"');
  for (const answer of await Promise.all(waiting)) assert.equal(answer.status, 200);
  assert.equal((await alice('GET', target)).status, 200);
});

it('a shutdown answers those who wait', async (t) => {
  const stopping = new AbortController();
  const { user } = await startApp(t, { stopping: stopping.signal });
  const alice = await user('alice');
  const target = waitFor(await alice('GET', '/changes'));
  const waiting = alice('GET', target);
  await alice('GET', '/plants');
  stopping.abort();
  const { status, text } = await waiting;
  assert.deepEqual([status, text], [200, '[]']);
});

itOnEach('changes that are too old end a cursor, unless there were none since', async (t) => {
  const { database } = await startApp(t);
  const keepChangesMs = 5 * 60_000;
  const { user } = await startApp(t, { open: () => database.open({ keepChangesMs }) });
  const alice = await user('alice');
  const begin = await alice('GET', '/changes');
  await createdBy(alice, 'old');
  const afterOld = await alice('GET', nextOf(begin));
  await database.run(`UPDATE ${await tableOf(database.url, 'changes')} SET at = at - 600000`);
  const expired = await alice('GET', nextOf(begin));
  assert.deepEqual([expired.status, (expired.json as { reason: string }).reason], [410, 'expired']);
  const renewed = await alice('GET', '/changes');
  for (const one of [renewed]) assert.equal((await alice('GET', nextOf(one))).text, '[]');
  await createdBy(alice, 'new');
  assert.deepEqual(
    changesIn(await alice('GET', nextOf(renewed))).map(({ id }) => id),
    [2],
  );
  assert.equal((await alice('GET', nextOf(afterOld))).status, 410, 'the log is another one');
});

it('without a log, there is nothing to follow', async (t) => {
  const { user } = await startApp(t, { keepChangesMs: 0 });
  const { status, json } = await (await user('alice'))('GET', '/changes');
  assert.deepEqual([status, (json as { type: string }).type], [404, '/problems/changes-not-kept']);
});

it('refuses what is no cursor, and other parameters', async () => {
  const alice = await inNewStore(app).user('alice');
  for (const query of [
    'after=1',
    'after=',
    'after=a.b.c.d',
    'wait=26',
    'wait=-1',
    'limit=0',
    'tag=a',
  ]) {
    assert.equal((await alice('GET', `/changes?${query}`)).status, 400, query);
  }
});

async function tableOf(url: string, name: string): Promise<string> {
  return url.startsWith('sqlite:') ? name : `plant_store.${name}`;
}
