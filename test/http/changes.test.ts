/**
 * What happens to a plant after it was created: changes with and without conditions, restores, and its history.
 */
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { startApp, type Answer, type CallOptions } from '../support/app.ts';
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
    const { text } = await call('GET', '/plants/1', { token: alice });
    assert.equal(text, '{"name":"Palm","tag":"y"}');
    const byDefault = await call('PATCH', '/plants/1', { token: alice, json: { name: 'Palm' } });
    assert.equal(byDefault.text, text);
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
      ['{}', ['']],
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
});

it('a change is refused with the reason to those who can only read the plant', async (t) => {
  const { call, token, alice } = await startWithPlant(t);
  await call('POST', '/plants', { token: alice, json: { name: 'gone' } });
  await call('DELETE', '/plants/2', { token: alice });
  const sharing = await token('alice', { scopes: ['shares:write'] });
  await call('PUT', '/shares/bob', { token: sharing, json: { access: 'read' } });
  const requests = [
    ['PATCH', '/plants/1', { name: 'x' }],
    ['DELETE', '/plants/1'],
    ['POST', '/plants/1/restore'],
    ['POST', '/plants/2/restore'],
  ] as const;
  const send = async (by: string, which: number, headers: Record<string, string> = {}) => {
    const [method, path, json] = requests[which] ?? assert.fail();
    return call(method, path, { token: by, json, headers });
  };
  const [bob, blind] = [await token('bob'), await token('bob', { scopes: ['plants:write'] })];
  for (const at of requests.keys()) {
    const refused = await send(bob, at, at < 2 ? { 'if-match': '"x"' } : {});
    assert.deepEqual(refusal(refused), [403, 'plant-read-only']);
    assert.equal(refused.headers.get('www-authenticate'), null, 'no scope would help');
    const unseen = await send(blind, at);
    assert.deepEqual(
      [unseen.status, unseen.text],
      [404, (await send(await token('eve'), at)).text],
    );
  }
});

it('without plants:read, a change shows only what the client has sent, and the id', async (t) => {
  const { call, token } = await startWithPlant(t);
  const writing = await token('alice', { scopes: ['plants:write'] });
  const everything = '?fields=owner,id,tag,access,name';
  const send = async (method: string, path: string, json?: object, key = '') => {
    const headers: Record<string, string> = key === '' ? {} : { 'idempotency-key': key };
    const answer = await call(method, path, { token: writing, json, headers });
    assert.equal(answer.headers.get('etag'), null);
    return answer.text;
  };
  assert.equal(await send('PATCH', '/plants/1', { name: 'a' }), '{"name":"a"}');
  assert.equal(await send('PATCH', '/plants/1?fields=tag', { name: 'a' }), '{"id":1}');
  assert.equal(await send('PATCH', `/plants/1${everything}`, { tag: null }), '{"id":1,"tag":""}');
  const both = { name: 'b', tag: 'c' };
  assert.equal(
    await send('PATCH', `/plants/1${everything}`, both),
    '{"id":1,"tag":"c","name":"b"}',
  );
  for (let round = 0; round < 2; round++) {
    const created = await send('POST', '/plants', { name: 'd' }, '"k"');
    assert.equal(created, '{"name":"d","tag":""}');
    const shown = await send('POST', `/plants${everything}`, { name: 'd' }, '"k"');
    assert.equal(shown, '{"id":2,"tag":"","name":"d"}');
  }
  assert.equal(await send('DELETE', '/plants/1'), '');
  assert.equal(await send('POST', '/plants/1/restore'), '{"id":1}');
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
    assert.equal(await etagOf('PATCH', '/plants/1', { tag: 'indoor' }), first);
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
  const malformed = [
    'x',
    'E E',
    'w/E',
    'W/ E',
    '"x',
    "'x'",
    '*, E',
    'E; x',
    '"a b"',
    '**',
    '',
    ',',
  ];

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
        const { errors } = answer.json as { errors: { parameter: string }[] };
        assert.deepEqual(
          errors.map(({ parameter }) => parameter.toLowerCase()),
          [name],
        );
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
    for (const one of [alice, eve]) assert.deepEqual(await restore(one), [409, 'id-taken']);
    assert.deepEqual(await restore(bob), [404, 'plant-not-found']);
    assert.deepEqual(await restore(alice, 2), [404, 'plant-not-found']);
    await call('DELETE', '/plants/1', { token: alice });
    assert.deepEqual(await restore(bob), [404, 'plant-not-found']);
    const reading = await token('alice', { scopes: ['plants:read'] });
    assert.deepEqual(await restore(reading), [403, 'insufficient-scope']);
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

describe('history', () => {
  it('shows who did what and when, with what was there before', async (t) => {
    const beforeMs = Date.now();
    const { call, token, alice, storage } = await startWithPlant(t);
    await call('PATCH', '/plants/1', { token: alice, json: { name: 'Ficus', tag: null } });
    const owner = await storage.users.find('main', 'alice');
    const bob = await token('bob');
    const heir = await storage.users.find('main', 'bob');
    assert.ok(owner && heir);
    await storage.users.movePlants(owner, heir.user, 10);
    const history = (by: string) => call('GET', '/plants/1/history', { token: by });
    const { status, text, json } = await history(bob);
    const times = (json as Entry[]).map(({ at }) => at);
    const shown = [
      `{"event":"moved","at":"${times[0]}","before":{"name":"Ficus","tag":"","owner":"alice"}}`,
      `{"event":"updated","at":"${times[1]}","user":"alice","before":{"name":"Monstera","tag":"indoor","owner":"alice"}}`,
      `{"event":"created","at":"${times[2]}","user":"alice"}`,
    ];
    assert.deepEqual([status, text], [200, `[${shown.join()}]`]);
    for (const at of times) {
      assert.equal(new Date(at).toISOString(), at);
      assert.ok(Date.parse(at) >= beforeMs && Date.parse(at) <= Date.now());
    }
    assert.deepEqual(refusal(await history(alice)), [404, 'plant-not-found']);
    const head = await call('HEAD', '/plants/1/history', { token: bob });
    assert.deepEqual([head.status, head.text], [200, '']);
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
});
