/**
 * Changes to a plant, with and without conditions. test/model.test.ts has their rules.
 */
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { inNewStore, startApp, type Answer, type Send } from '../support/app.ts';
import { fileScope, itOnce as it } from '../support/storages.ts';

const all = '?fields=id,name,tag';
const app = await startApp(fileScope());

/** Alice has the plant 1. */
async function startWithPlant() {
  const own = inNewStore(app);
  const alice = await own.user('alice');
  const json = { name: 'Monstera', tag: 'indoor' };
  const created = await alice('POST', '/plants', { json });
  return { ...own, alice, etag: created.headers.get('etag') ?? '' };
}

/** Its status, and the kind of its problem. */
function refusal({ status, json }: Answer): [number, string | undefined] {
  return [status, (json as { type?: string } | undefined)?.type?.replace('/problems/', '')];
}

describe('PATCH', () => {
  const mergePatch = 'application/merge-patch+json';

  it('changes the fields that it names, in JSON of two media types', async () => {
    const { alice } = await startWithPlant();
    const send = (type: string, body: string, query = '') => {
      const headers = { 'content-type': type };
      return alice('PATCH', `/plants/1${query}`, { body, headers });
    };
    const renamed = await send(mergePatch, '{"name":"Ficus"}', all);
    assert.deepEqual(renamed.json, { id: 1, name: 'Ficus', tag: 'indoor' });
    const cleared = await send('application/json; charset=utf-8', '{"tag":null}');
    assert.deepEqual([cleared.status, cleared.text], [200, '{"name":"Ficus","tag":""}']);
    assert.equal((await alice('GET', '/plants/1')).text, cleared.text);
    const accepted = 'application/merge-patch+json, application/json';
    for (const type of ['application/json-patch+json', 'text/plain', `${mergePatch}x`]) {
      const refused = await send(type, '{"tag":"a"}');
      assert.deepEqual(refusal(refused), [415, 'unsupported-media-type'], type);
      assert.equal(refused.headers.get('accept-patch'), accepted);
    }
    assert.equal((await alice('OPTIONS', '/plants/1')).headers.get('accept-patch'), accepted);
    assert.equal((await alice('OPTIONS', '/plants')).headers.get('accept-patch'), null);
  });

  it('refuses what it cannot change, and changes nothing', async () => {
    const { alice, etag } = await startWithPlant();
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
      const answer = await alice('PATCH', '/plants/1', { body, headers });
      assert.deepEqual(refusal(answer), [400, 'invalid-request'], body);
      const { errors = [] } = answer.json as { errors?: { pointer: string }[] };
      const named = errors.map(({ pointer }) => pointer);
      assert.deepEqual(named, pointers, body);
    }
    assert.equal((await alice('PATCH', '/plants/1?x=1', { json: { tag: '' } })).status, 400);
    assert.equal((await alice('PATCH', '/plants/0', { json: { tag: '' } })).status, 400);
    assert.equal((await alice('GET', '/plants/1')).headers.get('etag'), etag);
  });
});

it('a change is refused with the reason to those who can only read the plant', async () => {
  const { user, alice } = await startWithPlant();
  await alice('POST', '/plants', { json: { name: 'gone' } });
  await alice('DELETE', '/plants/2');
  const sharing = await user('alice', { scopes: ['shares:write'] });
  await sharing('PUT', '/shares/bob', { json: { access: 'read' } });
  const [bob, eve] = [await user('bob'), await user('eve')];
  const blind = await user('bob', { scopes: ['plants:write'] });
  for (const [method, path, json] of [
    ['PATCH', '/plants/1', { name: 'x' }],
    ['DELETE', '/plants/1'],
    ['POST', '/plants/1/restore'],
    ['POST', '/plants/2/restore'],
  ] as const) {
    const headers = { 'if-match': '"x"' };
    const refused = await bob(method, path, { json, headers });
    assert.deepEqual(refusal(refused), [403, 'plant-read-only']);
    assert.equal(refused.headers.get('www-authenticate'), null, 'no scope would help');
    const unseen = await blind(method, path, { json });
    assert.equal(unseen.status, 404);
    assert.equal(unseen.text, (await eve(method, path, { json })).text);
  }
});

it('without plants:read, a change shows only what the client has sent, and the id', async () => {
  const { user } = await startWithPlant();
  const writing = await user('alice', { scopes: ['plants:write'] });
  const everything = '?fields=owner,id,tag,access,name';
  const send = async (method: string, path: string, json?: object, key = '') => {
    const headers: Record<string, string> = key === '' ? {} : { 'idempotency-key': key };
    const answer = await writing(method, path, { json, headers });
    assert.equal(answer.headers.get('etag'), null);
    assert.match(answer.headers.get('change-position') ?? '', /^\d+$/, 'for another program');
    return answer.text;
  };
  assert.equal(await send('PATCH', '/plants/1', { name: 'a' }), '{"name":"a"}');
  assert.equal(await send('PATCH', '/plants/1?fields=tag', { name: 'a' }), '{"id":1}');
  assert.equal(await send('PATCH', `/plants/1${everything}`, { tag: null }), '{"id":1,"tag":""}');
  const both = await send('PATCH', `/plants/1${everything}`, { name: 'b', tag: 'c' });
  assert.equal(both, '{"id":1,"tag":"c","name":"b"}');
  for (let round = 0; round < 2; round++) {
    const created = await send('POST', '/plants', { name: 'd' }, '"k"');
    assert.equal(created, '{"name":"d","tag":""}');
    const shown = await send('POST', `/plants${everything}`, { name: 'd' }, '"k"');
    assert.equal(shown, '{"id":2,"tag":"","name":"d"}');
  }
  assert.equal(await send('DELETE', '/plants/1'), '');
  assert.equal(await send('POST', '/plants/1/restore'), '{"id":1}');
});

/** Requests whose conditions count. */
async function* sendConditions(send: Send, path: string, value: string) {
  for (const name of ['if-match', 'if-none-match']) {
    for (const method of ['GET', 'PATCH', 'DELETE']) {
      const json = method === 'PATCH' ? { name: 'x' } : undefined;
      const answer = await send(method, path, { json, headers: { [name]: value } });
      yield { answer, name, what: `${method} ${name}: ${value}` };
    }
  }
}

describe('entity tags', () => {
  it('are strong, and those of a plant whose letters move from the name to the tag differ', async () => {
    const { alice, etag } = await startWithPlant();
    assert.match(etag, /^"[\w-]{22}"$/);
    const moved = await alice('PATCH', '/plants/1', { json: { name: 'Monster', tag: 'aindoor' } });
    assert.notEqual(moved.headers.get('etag'), etag);
  });

  /** Values of a header, with `E` for the present entity tag, and whether they match it. */
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
  for (const name of ['if-match', 'if-none-match']) {
    const isMatch = name === 'if-match';
    it(`are compared ${isMatch ? 'strongly' : 'weakly'} with ${name}`, async () => {
      const { alice, etag: first } = await startWithPlant();
      let etag = first;
      for (const [value, strongly, weakly] of values) {
        const isMet = isMatch ? strongly : !weakly;
        const send = (method: string, json?: object) =>
          alice(method, '/plants/1', { json, headers: { [name]: value.replaceAll('E', etag) } });
        for (const method of ['GET', 'HEAD']) {
          const answer = await send(method);
          assert.equal(answer.status, isMet ? 200 : isMatch ? 412 : 304, `${method} ${value}`);
          if (answer.status === 304) assertNotModified(answer, etag);
        }
        const patched = await send('PATCH', { name: `after ${value}` });
        assert.equal(patched.status, isMet ? 200 : 412, value);
        const reason = !isMatch ? /If-None-Match/ : value.startsWith('W') ? /weak.*proxy/ : /again/;
        if (isMet) etag = patched.headers.get('etag') ?? '';
        else assert.match(patched.text, new RegExp(`precondition-failed.*${reason.source}`));
        const deleted = await send('DELETE');
        assert.equal(deleted.status, isMet ? 204 : 412, value);
        if (isMet) await alice('POST', '/plants/1/restore');
      }
      const last = values.findLast(([, strongly, weakly]) => (isMatch ? strongly : !weakly)) ?? [];
      const { json } = await alice('GET', '/plants/1');
      assert.equal((json as { name: string }).name, `after ${last[0]}`);
    });
  }

  it('are checked in If-Match before If-None-Match, and have no suffix of a proxy', async () => {
    const { alice, etag } = await startWithPlant();
    const both = { 'if-match': '"x"', 'if-none-match': etag };
    assert.equal((await alice('GET', '/plants/1', { headers: both })).status, 412);
    assert.match((await alice('DELETE', '/plants/1', { headers: both })).text, /Get it again/);
    const headers = { 'if-match': etag.replace(/"$/, '-gzip"') };
    const suffixed = await alice('DELETE', '/plants/1', { headers });
    assert.match(suffixed.text, /precondition-failed.*with a suffix, .*proxy/);
    const create = { json: { name: 'a' }, headers: { 'if-none-match': '*' } };
    assert.equal((await alice('POST', '/plants', create)).status, 201, 'no plant is there yet');
  });

  it('are refused if they are malformed', async () => {
    const { alice, etag } = await startWithPlant();
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
    for (const value of malformed) {
      const sent = sendConditions(alice, '/plants/1', value.replaceAll('E', etag));
      for await (const { answer, name, what } of sent) {
        assert.deepEqual(refusal(answer), [400, 'invalid-request'], what);
        const { errors } = answer.json as { errors: { parameter: string }[] };
        const named = errors.map(({ parameter }) => parameter.toLowerCase());
        assert.deepEqual(named, [name]);
      }
    }
  });
});

function assertNotModified({ headers, text }: Answer, etag: string): void {
  assert.deepEqual([text, headers.get('etag')], ['', etag]);
  assert.equal(headers.get('cache-control'), 'no-store');
  for (const name of ['content-type', 'content-length', 'transfer-encoding'])
    assert.equal(headers.get(name), null);
}
