/**
 * What happens to a plant after it was created: changes with and without conditions, restores, and its history.
 */
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { startApp, type Answer, type CallOptions, type TestApp } from '../support/app.ts';
import { itOnce as it } from '../support/storages.ts';

const entityTag = /^"[\w-]{22}"$/;
const all = '?fields=id,name,tag';

/** Alice has the plant 1. */
async function startWithPlant(t: Parameters<typeof startApp>[0]) {
  const app = await startApp(t);
  const alice = await app.token('alice');
  const json = { name: 'Monstera', tag: 'indoor' };
  const created = await app.call('POST', '/plants', { token: alice, json });
  return { ...app, alice, created };
}

function kindOf({ json }: Answer): string | undefined {
  return (json as { type?: string } | undefined)?.type?.replace('/problems/', '');
}

function refusal(answer: Answer): [number, string | undefined] {
  return [answer.status, kindOf(answer)];
}

describe('PATCH', () => {
  it('changes the fields that it names, and null clears the tag', async (t) => {
    const { call, alice } = await startWithPlant(t);
    const patch = (json: object) => call('PATCH', `/plants/1${all}`, { token: alice, json });
    const plant = { id: 1, name: 'Monstera', tag: 'indoor' };
    assert.deepEqual((await patch({ name: 'Ficus' })).json, { ...plant, name: 'Ficus' });
    assert.deepEqual((await patch({ tag: 'x' })).json, { ...plant, name: 'Ficus', tag: 'x' });
    assert.deepEqual((await patch({ tag: null })).json, { ...plant, name: 'Ficus', tag: '' });
    assert.deepEqual((await patch({ name: 'Palm', tag: 'y' })).json, {
      id: 1,
      name: 'Palm',
      tag: 'y',
    });
    const unchanged = await patch({});
    assert.deepEqual([unchanged.status, unchanged.json], [200, { id: 1, name: 'Palm', tag: 'y' }]);
    const { text } = await call('GET', '/plants/1', { token: alice });
    assert.equal(text, '{"name":"Palm","tag":"y"}');
    const byDefault = await call('PATCH', '/plants/1', { token: alice, json: { name: 'Palm' } });
    assert.equal(byDefault.text, text);
    assert.equal(
      (await call('GET', `/plants${all}`, { token: alice })).text,
      `[${unchanged.text}]`,
    );
  });

  it('accepts JSON of two media types, which Accept-Patch names', async (t) => {
    const { call, alice } = await startWithPlant(t);
    const send = (type: string, body = '{"tag":"a"}') =>
      call('PATCH', '/plants/1', { token: alice, body, headers: { 'content-type': type } });
    for (const type of ['application/merge-patch+json', 'application/json; charset=utf-8']) {
      assert.equal((await send(type)).status, 200, type);
    }
    const accepted = 'application/merge-patch+json, application/json';
    for (const type of [
      'application/json-patch+json',
      'text/plain',
      'application/merge-patch+xml',
    ]) {
      const refused = await send(type);
      assert.deepEqual(refusal(refused), [415, 'unsupported-media-type'], type);
      assert.equal(refused.headers.get('accept-patch'), accepted);
    }
    const options = await call('OPTIONS', '/plants/1');
    assert.equal(options.headers.get('allow'), 'DELETE, GET, HEAD, OPTIONS, PATCH');
    assert.equal(options.headers.get('accept-patch'), accepted);
    assert.equal((await call('OPTIONS', '/plants')).headers.get('accept-patch'), null);
    const create = { token: alice, body: '{"name":"a"}' };
    const headers = { 'content-type': 'application/merge-patch+json' };
    assert.equal((await call('POST', '/plants', { ...create, headers })).status, 415);
  });

  it('refuses what it cannot change, and changes nothing', async (t) => {
    const { call, alice, created } = await startWithPlant(t);
    const bodies: [body: string, pointers: readonly string[]][] = [
      ['{"id":1}', ['/id']],
      ['{"owner":"bob","name":"b"}', ['/owner']],
      ['{"name":null}', ['/name']],
      ['{"name":" ","tag":1}', ['/name', '/tag']],
      [`{"tag":"${'a'.repeat(101)}"}`, ['/tag']],
      ['{"tag":"a","tag":"b"}', ['/tag']],
      ['[]', ['']],
      ['null', ['']],
      ['', ['']],
    ];
    for (const [body, pointers] of bodies) {
      const headers = { 'content-type': 'application/json' };
      const answer = await call('PATCH', '/plants/1', { token: alice, body, headers });
      assert.deepEqual(refusal(answer), [400, 'invalid-request'], body);
      const { errors = [] } = answer.json as { errors?: { pointer: string }[] };
      assert.deepEqual(
        errors.map(({ pointer }) => pointer),
        pointers,
        body,
      );
    }
    assert.equal((await call('PATCH', '/plants/1?x=1', { token: alice, json: {} })).status, 400);
    assert.equal((await call('PATCH', '/plants/0', { token: alice, json: {} })).status, 400);
    const { text, headers } = await call('GET', '/plants/1', { token: alice });
    assert.equal(text, '{"name":"Monstera","tag":"indoor"}');
    assert.equal(headers.get('etag'), created.headers.get('etag'));
  });

  it('is for those who can write the plant, whose owner stays', async (t) => {
    const { call, token, alice } = await startWithPlant(t);
    const sharing = await token('alice', { scopes: ['shares:write'] });
    for (const [user, access] of [
      ['bob', 'write'],
      ['carol', 'read'],
    ] as const) {
      await call('PUT', `/shares/${user}`, { token: sharing, json: { access } });
    }
    const tokens = {
      alice,
      bob: await token('bob'),
      eve: await token('eve', { role: 'manager' }),
    };
    for (const [name, writer] of Object.entries(tokens)) {
      const { status, json } = await call('PATCH', '/plants/1', { token: writer, json: { name } });
      assert.deepEqual([status, json], [200, { name, tag: 'indoor' }]);
    }
    const others = [
      await token('carol'),
      await token('dave'),
      await token('alice', { store: 'elsewhere' }),
    ];
    for (const other of others) {
      const answer = await call('PATCH', '/plants/1', { token: other, json: { name: 'x' } });
      assert.deepEqual(refusal(answer), [404, 'plant-not-found']);
    }
    const reading = await token('alice', { scopes: ['plants:read'] });
    const refused = await call('PATCH', '/plants/1', { token: reading, json: { name: 'x' } });
    assert.deepEqual(refusal(refused), [403, 'insufficient-scope']);
    await call('DELETE', '/shares/bob', { token: sharing });
    assert.equal((await call('GET', '/plants/1', { token: tokens.bob })).status, 404);
    assert.equal(
      (await call('GET', '/plants/1', { token: alice })).text,
      '{"name":"eve","tag":"indoor"}',
    );
  });
});

describe('entity tags', () => {
  it('are strong, and change with the plant alone', async (t) => {
    const { call, alice, created } = await startWithPlant(t);
    const token = alice;
    const etagOf = async (method: string, path: string, json?: object) =>
      (await call(method, path, { token, json })).headers.get('etag') ?? '';
    const first = created.headers.get('etag') ?? '';
    assert.match(first, entityTag);
    for (const path of ['/plants/1', '/plants/1?fields=id']) {
      assert.equal(await etagOf('GET', path), first);
      assert.equal(await etagOf('HEAD', path), first);
    }
    assert.equal(await etagOf('PATCH', '/plants/1', {}), first);
    const second = await etagOf('PATCH', '/plants/1', { name: 'Ficus' });
    assert.match(second, entityTag);
    assert.notEqual(second, first);
    assert.equal(await etagOf('GET', '/plants/1'), second);
    const moved = await etagOf('PATCH', '/plants/1', { name: 'Monsterai', tag: 'ndoor' });
    assert.ok(![first, second].includes(moved));
    assert.equal(await etagOf('PATCH', '/plants/1', { name: 'Monstera', tag: 'indoor' }), first);
    await call('DELETE', '/plants/1', { token });
    assert.equal(await etagOf('POST', '/plants/1/restore'), first);
    assert.equal(await etagOf('GET', '/plants'), '');
    assert.equal(await etagOf('DELETE', '/plants/1'), '');
  });

  /** Values of a header, with `E` for the present entity tag, and what they are compared with it. */
  const values: [value: string, strongly: boolean, weakly: boolean][] = [
    ['E', true, true],
    [' E ', true, true],
    ['*', true, true],
    ['"x", E', true, true],
    ['E,"x"', true, true],
    [', ,E,', true, true],
    ['"a,b" , E', true, true],
    ['W/E', false, true],
    ['W/"x", W/E', false, true],
    ['W/"x", E', true, true],
    ['"x"', false, false],
    ['""', false, false],
    ['W/"x"', false, false],
  ];
  const malformed = ['x', 'E E', 'w/E', 'W/ E', '"x', "'x'", '*, E', 'E; x', '"a b"', '**'];

  const headersOf = (name: string, value: string, etag: string) => ({
    [name]: value.replaceAll('E', etag),
  });

  it('satisfy If-Match only by strong comparison', async (t) => {
    const { call, alice, created } = await startWithPlant(t);
    let etag = created.headers.get('etag') ?? '';
    for (const [value, isSatisfied] of values) {
      const send = async (method: string, path: string, json?: object) =>
        call(method, path, { token: alice, json, headers: headersOf('if-match', value, etag) });
      assert.equal((await send('GET', '/plants/1')).status, isSatisfied ? 200 : 412, value);
      assert.equal((await send('HEAD', '/plants/1')).status, isSatisfied ? 200 : 412, value);
      const patched = await send('PATCH', '/plants/1', { name: `after ${value}` });
      if (isSatisfied) {
        assert.equal(patched.status, 200, value);
        etag = patched.headers.get('etag') ?? '';
      } else {
        assert.deepEqual(refusal(patched), [412, 'precondition-failed'], value);
        assert.match(patched.text, value.startsWith('W/') ? /weak.*proxy/ : /Get it again/);
      }
      const deleted = await send('DELETE', '/plants/1');
      assert.equal(deleted.status, isSatisfied ? 204 : 412, value);
      if (isSatisfied) await call('POST', '/plants/1/restore', { token: alice });
    }
    assert.match((await call('GET', '/plants/1', { token: alice })).text, /after W\/\\"x\\", E/);
    const headers = { 'if-match': etag.replace(/"$/, '-gzip"') };
    const suffixed = await call('DELETE', '/plants/1', { token: alice, headers });
    assert.match(suffixed.text, /precondition-failed.*with a suffix, .*proxy/);
  });

  it('give 304 without content by weak comparison with If-None-Match', async (t) => {
    const { call, alice, created } = await startWithPlant(t);
    const etag = created.headers.get('etag') ?? '';
    for (const [value, , isCurrent] of values) {
      const headers = headersOf('if-none-match', value, etag);
      for (const method of ['GET', 'HEAD']) {
        const answer = await call(method, '/plants/1', { token: alice, headers });
        assert.equal(answer.status, isCurrent ? 304 : 200, value);
        assert.equal(answer.headers.get('etag'), etag);
        assert.equal(answer.headers.get('cache-control'), 'no-store');
        assert.equal(answer.text === '', isCurrent || method === 'HEAD');
        if (!isCurrent) continue;
        for (const name of ['content-type', 'content-length', 'transfer-encoding'])
          assert.equal(answer.headers.get(name), null);
      }
    }
    const headers = { 'if-match': '"x"', 'if-none-match': etag };
    assert.equal((await call('GET', '/plants/1', { token: alice, headers })).status, 412);
  });

  it('refuse a change by weak comparison with If-None-Match, after If-Match', async (t) => {
    const { call, alice, created } = await startWithPlant(t);
    let etag = created.headers.get('etag') ?? '';
    for (const [value, , isExcluded] of values) {
      const headers = headersOf('if-none-match', value, etag);
      const options = { token: alice, headers };
      const patched = await call('PATCH', '/plants/1', { ...options, json: { name: value } });
      assert.equal(patched.status, isExcluded ? 412 : 200, value);
      if (isExcluded) assert.match(patched.text, /precondition-failed.*If-None-Match/);
      else etag = patched.headers.get('etag') ?? '';
      const deletion = { token: alice, headers: headersOf('if-none-match', value, etag) };
      const deleted = await call('DELETE', '/plants/1', deletion);
      assert.equal(deleted.status, isExcluded ? 412 : 204, value);
      if (!isExcluded) await call('POST', '/plants/1/restore', { token: alice });
    }
    const both = { token: alice, headers: { 'if-match': '"x"', 'if-none-match': etag } };
    assert.match((await call('DELETE', '/plants/1', both)).text, /Get it again/);
    const create = { token: alice, json: { name: 'a' }, headers: { 'if-none-match': '*' } };
    assert.equal((await call('POST', '/plants', create)).status, 201);
  });

  it('are refused if they are malformed', async (t) => {
    const { call, alice, created } = await startWithPlant(t);
    const etag = created.headers.get('etag') ?? '';
    for (const value of malformed) {
      const requests: [method: string, name: string, json?: object][] = [
        ['GET', 'if-match'],
        ['GET', 'if-none-match'],
        ['PATCH', 'if-match', { name: 'x' }],
        ['PATCH', 'if-none-match', { name: 'x' }],
        ['DELETE', 'if-match'],
        ['DELETE', 'if-none-match'],
      ];
      for (const [method, name, json] of requests) {
        const headers = headersOf(name, value, etag);
        const answer = await call(method, '/plants/1', { token: alice, json, headers });
        assert.deepEqual(refusal(answer), [400, 'invalid-request'], `${method} ${value}`);
        assert.match(answer.text, new RegExp(name, 'i'));
      }
    }
  });

  it('do not reveal a plant: without access, the response is 404', async (t) => {
    const { call, token, created } = await startWithPlant(t);
    const bob = await token('bob');
    const etag = created.headers.get('etag') ?? '';
    for (const value of [etag, `W/${etag}`, '*', '"x"']) {
      for (const path of ['/plants/1', '/plants/2']) {
        for (const [method, name, json] of [
          ['GET', 'if-match', undefined],
          ['GET', 'if-none-match', undefined],
          ['PATCH', 'if-match', { name: 'x' }],
          ['PATCH', 'if-none-match', { name: 'x' }],
          ['DELETE', 'if-match', undefined],
          ['DELETE', 'if-none-match', undefined],
        ] as const) {
          const options: CallOptions = { token: bob, json, headers: { [name]: value } };
          const answer = await call(method, path, options);
          assert.deepEqual(refusal(answer), [404, 'plant-not-found'], `${method} ${value}`);
        }
      }
    }
  });

  it('let one of 32 concurrent updates through', async (t) => {
    const { call, alice, created } = await startWithPlant(t);
    const headers = { 'if-match': created.headers.get('etag') ?? '' };
    const answers = await Promise.all(
      Array.from({ length: 32 }, (_, at) =>
        call('PATCH', '/plants/1', { token: alice, json: { name: `n${at}` }, headers }),
      ),
    );
    const statuses = Map.groupBy(answers, ({ status }) => status);
    assert.deepEqual([statuses.get(200)?.length, statuses.get(412)?.length], [1, 31]);
    const { text } = await call('GET', '/plants/1', { token: alice });
    assert.equal(text, statuses.get(200)?.[0]?.text);
  });
});

describe('restore', () => {
  it('brings a deleted plant back as it was', async (t) => {
    const { call, token, alice } = await startWithPlant(t);
    await call('PATCH', '/plants/1', { token: alice, json: { tag: 'x' } });
    const eve = await token('eve', { role: 'manager' });
    assert.equal((await call('DELETE', '/plants/1', { token: eve })).status, 204);
    const restored = await call('POST', `/plants/1/restore${all}`, { token: eve });
    assert.equal(restored.status, 200);
    assert.equal(restored.text, '{"id":1,"name":"Monstera","tag":"x"}');
    assert.equal((await call('GET', `/plants/1${all}`, { token: alice })).text, restored.text);
    assert.equal((await call('GET', `/plants${all}`, { token: alice })).text, `[${restored.text}]`);
    const next = await call('POST', '/plants', { token: alice, json: { name: 'next' } });
    assert.equal(next.headers.get('location'), '/plants/2');
    assert.equal(
      (await call('OPTIONS', '/plants/1/restore')).headers.get('allow'),
      'OPTIONS, POST',
    );
    const withBody = await call('POST', '/plants/1/restore', { token: alice, json: {} });
    assert.deepEqual(refusal(withBody), [400, 'invalid-request']);
  });

  it('returns 409 if the plant exists, and 404 if there was none within reach', async (t) => {
    const { call, token, alice } = await startWithPlant(t);
    const restore = async (by: string, id = 1) =>
      refusal(await call('POST', `/plants/${id}/restore`, { token: by }));
    const bob = await token('bob');
    const eve = await token('eve', { role: 'manager' });
    const stranger = await token('alice', { store: 'elsewhere' });
    for (const one of [alice, eve]) assert.deepEqual(await restore(one), [409, 'id-taken']);
    for (const one of [bob, stranger])
      assert.deepEqual(await restore(one), [404, 'plant-not-found']);
    assert.deepEqual(await restore(alice, 2), [404, 'plant-not-found']);
    await call('DELETE', '/plants/1', { token: alice });
    for (const one of [bob, stranger])
      assert.deepEqual(await restore(one), [404, 'plant-not-found']);
    const reading = await token('alice', { scopes: ['plants:read'] });
    assert.deepEqual(await restore(reading), [403, 'insufficient-scope']);
    const answers = await Promise.all(Array.from({ length: 8 }, async () => restore(alice)));
    assert.deepEqual(answers.filter(([status]) => status === 200).length, 1);
    assert.deepEqual(answers.filter(([status]) => status === 409).length, 7);
  });

  it('is for those who share with write access, not with read access', async (t) => {
    const { call, token, alice } = await startWithPlant(t);
    const sharing = await token('alice', { scopes: ['shares:write'] });
    const bob = await token('bob');
    await call('PUT', '/shares/bob', { token: sharing, json: { access: 'read' } });
    await call('DELETE', '/plants/1', { token: alice });
    assert.equal((await call('POST', '/plants/1/restore', { token: bob })).status, 404);
    assert.equal((await call('GET', '/plants/1/history', { token: bob })).status, 200);
    await call('PUT', '/shares/bob', { token: sharing, json: { access: 'write' } });
    assert.equal((await call('POST', '/plants/1/restore', { token: bob })).status, 200);
    assert.equal((await call('GET', '/plants/1', { token: alice })).status, 200);
    await call('DELETE', '/shares/bob', { token: sharing });
    assert.equal((await call('GET', '/plants/1', { token: bob })).status, 404, 'it stays hers');
  });

  it('restores the last plant with an id only, and only for those who had access to it', async (t) => {
    const { call, token, alice } = await startWithPlant(t);
    const bob = await token('bob');
    await call('DELETE', '/plants/1', { token: alice });
    await call('POST', '/plants', { token: bob, json: { name: 'his', id: 1 } });
    const restore = (by: string) => call('POST', '/plants/1/restore', { token: by });
    assert.deepEqual(refusal(await restore(alice)), [404, 'plant-not-found']);
    assert.deepEqual(refusal(await restore(bob)), [409, 'id-taken']);
    assert.equal((await call('GET', '/plants/1/history', { token: alice })).status, 404);
    await call('DELETE', '/plants/1', { token: bob });
    assert.deepEqual(refusal(await restore(alice)), [404, 'plant-not-found']);
    assert.equal((await call('GET', '/plants/1/history', { token: alice })).status, 404);
    assert.equal((await restore(bob)).text, '{"name":"his","tag":""}');
    assert.equal((await call('GET', '/plants/1', { token: alice })).status, 404);
    const { json } = await call('GET', '/plants/1/history', { token: bob });
    assert.deepEqual(eventsOf(json), ['restored bob', 'deleted bob', 'created bob']);
  });

  it('gives a new user nothing of a removed one with the same name', async (t) => {
    const { call, token, alice, storage } = await startWithPlant(t);
    await call('DELETE', '/plants/1', { token: alice });
    await removeUser(storage, 'alice');
    const again = await token('alice');
    const eve = await token('eve', { role: 'manager' });
    for (const one of [again, eve]) {
      const restored = await call('POST', '/plants/1/restore', { token: one });
      assert.deepEqual(refusal(restored), [404, 'plant-not-found']);
      const history = await call('GET', '/plants/1/history', { token: one });
      assert.deepEqual(refusal(history), [404, 'plant-not-found']);
    }
    await call('POST', '/plants', { token: again, json: { name: 'new', id: 1 } });
    await call('DELETE', '/plants/1', { token: again });
    assert.equal(
      (await call('POST', '/plants/1/restore', { token: again })).text,
      '{"name":"new","tag":""}',
    );
  });

  it('counts for the quota of the owner', async (t) => {
    const app = await startApp(t, { quotas: { perUser: 1, perStore: undefined } });
    const alice = await app.token('alice');
    await app.call('POST', '/plants', { token: alice, json: { name: 'a' } });
    await app.call('DELETE', '/plants/1', { token: alice });
    await app.call('POST', '/plants', { token: alice, json: { name: 'b' } });
    const restore = () => app.call('POST', '/plants/1/restore', { token: alice });
    assert.deepEqual(refusal(await restore()), [403, 'quota-exceeded']);
    await app.call('DELETE', '/plants/2', { token: alice });
    assert.equal((await restore()).status, 200);
    const more = await app.call('POST', '/plants', { token: alice, json: { name: 'c' } });
    assert.deepEqual(refusal(more), [403, 'quota-exceeded']);
  });
});

interface Entry {
  event: string;
  at: string;
  user?: string;
  before?: { name: string; tag: string; owner: string };
}

function eventsOf(json: unknown): string[] {
  return (json as Entry[]).map(({ event, user = 'operator' }) => `${event} ${user}`);
}

/** As an operator does it, without plants. */
async function removeUser(storage: TestApp['storage'], name: string): Promise<void> {
  const user = await storage.users.find('main', name);
  assert.ok(user);
  while ((await storage.users.endAccess(user, Date.now(), 10)) > 0);
  assert.ok(await storage.users.remove(user, Date.now()));
}

describe('history', () => {
  it('shows who did what and when, newest first, with what was there before', async (t) => {
    const beforeMs = Date.now();
    const { call, token, alice, storage } = await startWithPlant(t);
    const eve = await token('eve', { role: 'manager' });
    const bob = await token('bob');
    await call('PATCH', '/plants/1', { token: eve, json: { name: 'Ficus', tag: null } });
    await call('PATCH', '/plants/1', { token: alice, json: { name: 'Ficus' } });
    await call('DELETE', '/plants/1', { token: alice });
    await call('POST', '/plants/1/restore', { token: eve });
    const [owner, heir] = [
      await storage.users.find('main', 'alice'),
      await storage.users.find('main', 'bob'),
    ];
    assert.ok(owner && heir);
    await storage.users.movePlants(owner, heir.user, 10);
    const { status, json } = await call('GET', '/plants/1/history', { token: bob });
    assert.equal(status, 200);
    const entries = json as Entry[];
    const first = { name: 'Monstera', tag: 'indoor', owner: 'alice' };
    const second = { name: 'Ficus', tag: '', owner: 'alice' };
    assert.deepEqual(
      entries.map(({ event, user, before }) => ({
        event,
        ...(user !== undefined && { user }),
        ...(before !== undefined && { before }),
      })),
      [
        { event: 'moved', before: second },
        { event: 'restored', user: 'eve' },
        { event: 'deleted', user: 'alice', before: second },
        { event: 'updated', user: 'eve', before: first },
        { event: 'created', user: 'alice' },
      ],
    );
    const times = entries.map(({ at }) => Date.parse(at)).toReversed();
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
    );
    assert.ok((times[0] ?? 0) >= beforeMs && (times.at(-1) ?? 0) <= Date.now());
    for (const { at } of entries) assert.equal(new Date(at).toISOString(), at);
    assert.equal(
      (await call('GET', '/plants/1/history', { token: alice })).status,
      404,
      'it moved',
    );
    assert.deepEqual((await call('GET', '/plants/1/history', { token: eve })).json, json);
  });

  it('has the newest changes up to the limit', async (t) => {
    const { call, alice } = await startWithPlant(t);
    const history = (query = '') => call('GET', `/plants/1/history${query}`, { token: alice });
    for (let at = 0; at < 101; at++) {
      await call('PATCH', '/plants/1', { token: alice, json: { name: `n${at}` } });
    }
    const entries = (await history()).json as Entry[];
    assert.equal(entries.length, 100);
    assert.equal(entries[0]?.before?.name, 'n99');
    assert.ok(entries.every(({ event }) => event === 'updated'));
    assert.deepEqual((await history('?limit=2')).json, entries.slice(0, 2));
    for (const query of ['?limit=0', '?limit=101', '?limit=x', '?limit=1&limit=2', '?after=1']) {
      assert.equal((await history(query)).status, 400, query);
    }
  });

  it('is for those who can read the plant, and stays after its deletion', async (t) => {
    const { call, token, alice } = await startWithPlant(t);
    const eve = await token('eve', { role: 'manager' });
    const others = [await token('bob'), await token('alice', { store: 'elsewhere' })];
    const history = (by: string, id = 1) => call('GET', `/plants/${id}/history`, { token: by });
    const head = await call('HEAD', '/plants/1/history', { token: alice });
    assert.deepEqual([head.status, head.text], [200, '']);
    for (const events of [['created alice'], ['deleted alice', 'created alice']]) {
      for (const one of [alice, eve]) assert.deepEqual(eventsOf((await history(one)).json), events);
      for (const other of others) {
        assert.deepEqual(refusal(await history(other)), [404, 'plant-not-found']);
      }
      await call('DELETE', '/plants/1', { token: alice });
    }
    assert.deepEqual(refusal(await history(alice, 2)), [404, 'plant-not-found']);
    const writing = await token('alice', { scopes: ['plants:write'] });
    assert.deepEqual(refusal(await history(writing)), [403, 'insufficient-scope']);
  });

  it('has nothing of an earlier plant with the same id', async (t) => {
    const { call, token, alice } = await startWithPlant(t);
    await call('PATCH', '/plants/1', { token: alice, json: { name: 'secret' } });
    await call('DELETE', '/plants/1', { token: alice });
    const bob = await token('bob');
    const eve = await token('eve', { role: 'manager' });
    await call('POST', '/plants', { token: bob, json: { name: 'his', id: 1 } });
    await call('PATCH', '/plants/1', { token: bob, json: { tag: 't' } });
    for (const one of [bob, eve]) {
      const { text, json } = await call('GET', '/plants/1/history', { token: one });
      assert.deepEqual(eventsOf(json), ['updated bob', 'created bob']);
      assert.doesNotMatch(text, /secret|Monstera|alice/);
    }
  });
});
