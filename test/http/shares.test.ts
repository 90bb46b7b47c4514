import assert from 'node:assert/strict';
import { inNewStore, startApp, type Answer } from '../support/app.ts';
import { fileScope, itOnce as it } from '../support/storages.ts';

const scopes = ['plants:read', 'plants:write', 'shares:write'] as const;
const app = await startApp(fileScope());

it('responds alike about users who exist, who do not, and who belong to another store', async () => {
  const { user, token } = inNewStore(app);
  const alice = await user('alice', { scopes });
  await token('bob');
  await inNewStore(app).token('carol');
  const answersFor = async (other: string) => {
    const answers: Answer[] = [];
    for (const [method, json] of [
      ['DELETE', undefined],
      ['PUT', { access: 'read' }],
      ['PUT', { access: 'write' }],
      ['DELETE', undefined],
    ] as const) {
      answers.push(await alice(method, `/shares/${other}`, { json }));
    }
    return answers.map(({ status, text, headers }) => {
      const named = text.replaceAll(other, '<user>');
      const names = [...headers.keys()].filter((each) => each !== 'content-length');
      return { status, named, names };
    });
  };
  const expected = await answersFor('bob');
  const statuses = expected.map(({ status }) => status);
  assert.deepEqual(statuses, [404, 201, 200, 204]);
  assert.deepEqual(await answersFor('nobody'), expected);
  assert.deepEqual(await answersFor('carol'), expected);
});

it('requires shares:write to share, and that or plants:read to see shares', async () => {
  const { user } = inNewStore(app);
  for (const [granted, lacking, methods] of [
    [['plants:read', 'plants:write'], 'shares:write', ['PUT', 'DELETE']],
    [['plants:write'], 'plants:read', ['GET']],
    [['shares:write'], undefined, ['PUT', 'GET', 'DELETE']],
    [['plants:read'], undefined, ['GET']],
  ] as const) {
    const alice = await user('alice', { scopes: granted });
    for (const method of methods) {
      const target = method === 'GET' ? '/shares' : '/shares/bob';
      const json = method === 'PUT' ? { access: 'read' } : undefined;
      const { status, headers } = await alice(method, target, { json });
      const challenge = lacking && `Bearer error="insufficient_scope", scope="${lacking}"`;
      assert.equal(status === 403, lacking !== undefined, `${method}: ${status}`);
      assert.equal(headers.get('www-authenticate'), challenge ?? null);
    }
  }
});

it('takes any name that a user can have', async () => {
  const alice = await inNewStore(app).user('alice', { scopes });
  const names = ['a/b', 'ä?&=%', ' spaced ', '𝒳'.repeat(200), 'a+b', '__proto__'];
  for (const user of names) {
    const target = `/shares/${encodeURIComponent(user)}`;
    const { status, json } = await alice('PUT', target, { json: { access: 'read' } });
    assert.deepEqual([status, json], [201, { user, access: 'read' }], user);
  }
  const { json } = await alice('GET', '/shares');
  const shown = (json as { given: { user: string }[] }).given.map(({ user }) => user);
  assert.deepEqual(new Set(shown), new Set(names));
});

it('refuses oneself, bad names and bad bodies, and names each fault', async () => {
  const alice = await inNewStore(app).user('alice', { scopes });
  const read = { access: 'read' };
  for (const [user, json, faults] of [
    ['alice', read, ['user']],
    ['%20', read, ['user']],
    ['%00', read, ['user']],
    ['x'.repeat(201), read, ['user']],
    ['bob', {}, ['/access']],
    ['bob', { access: 'all' }, ['/access']],
    ['bob', { access: ['read'] }, ['/access']],
    ['%20', { acces: 'read' }, ['user', '/access', '/acces']],
  ] as const) {
    const answer = await alice('PUT', `/shares/${user}`, { json });
    assert.equal(answer.status, 400, answer.text);
    const { errors } = answer.json as { errors: { parameter?: string; pointer?: string }[] };
    const named = errors.map(({ parameter, pointer }) => parameter ?? pointer);
    assert.deepEqual(named, faults);
  }
  const headers = { 'content-type': 'application/json' };
  const malformed = await alice('PUT', '/shares/bob', { body: '{', headers });
  assert.match(malformed.text, /an object like {\\"access\\":\\"read\\"}\./);
  assert.deepEqual((await alice('GET', '/shares')).json, { given: [], received: [] });
});

it('shares with everyone, which neither side takes for a share with one user', async () => {
  const { user } = inNewStore(app);
  const [alice, bob] = [await user('alice', { scopes }), await user('bob', { scopes })];
  await alice('POST', '/plants', { json: { name: 'Fern' } });
  const kindOf = ({ json }: Answer) => (json as { type: string }).type;
  assert.equal(kindOf(await alice('GET', '/team-share')), '/problems/share-not-found');
  for (const status of [201, 200]) {
    const answer = await alice('PUT', '/team-share', { json: { access: 'read' } });
    assert.deepEqual([answer.status, answer.json], [status, { access: 'read' }]);
  }
  assert.deepEqual((await alice('GET', '/team-share')).json, { access: 'read' });
  assert.equal((await bob('GET', '/plants')).text, '[{"name":"Fern","tag":""}]');
  assert.deepEqual((await alice('GET', '/shares')).json, { given: [], received: [] });
  const received = [{ user: 'alice', access: 'read', team: true }];
  assert.deepEqual((await bob('GET', '/shares')).json, { given: [], received });
  assert.equal((await bob('DELETE', '/shares/alice')).status, 404);
  for (const status of [204, 404])
    assert.equal((await alice('DELETE', '/team-share')).status, status);
  assert.equal((await bob('GET', '/plants')).text, '[]');
});
