import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { Fault } from '../../src/problem.ts';
import { startApp, type Answer } from '../support/app.ts';
import { itOnce as it } from '../support/storages.ts';

const largest = '9007199254740991';
const json = { 'content-type': 'application/json' };

/** The places that the answer names as faulty. */
function placesOf({ json: body }: Answer): string[] {
  const { errors } = body as { errors: Fault[] };
  assert.ok(
    errors.every(({ detail }) => /[a-z].*[.]$/s.test(detail)),
    'each fault describes its fix',
  );
  return errors.map((fault) => ('pointer' in fault ? fault.pointer : fault.parameter));
}

describe('an invalid body', () => {
  const bodies: Record<string, [body: string | Uint8Array<ArrayBuffer>, places: string[]]> = {
    'no body': ['', ['']],
    'broken JSON': ['{"name":', ['']],
    'two values': ['{"name":"a"} {}', ['']],
    'a comment': ['{"name":"a"/**/}', ['']],
    'an array': ['[{"name":"a"}]', ['']],
    'a string': ['"name"', ['']],
    null: ['null', ['']],
    'invalid UTF-8': [
      new Uint8Array([...Buffer.from('{"name":"'), 0xff, ...Buffer.from('"}')]),
      [''],
    ],
    'an overlong encoding': [
      new Uint8Array([...Buffer.from('{"name":"'), 0xc0, 0xaf, 0x22, 0x7d]),
      [''],
    ],
    'no name': ['{}', ['/name']],
    'a null name': ['{"name":null}', ['/name']],
    'a number for a name': ['{"name":5}', ['/name']],
    'an empty name': ['{"name":""}', ['/name']],
    'a blank name': ['{"name":" \u00a0\u3000"}', ['/name']],
    'a long name': [`{"name":"${'𝒳'.repeat(201)}"}`, ['/name']],
    'a control character': ['{"name":"a\\u0000"}', ['/name']],
    DEL: ['{"name":"a\\u007f"}', ['/name']],
    'a C1 control character': ['{"name":"a\\u0085"}', ['/name']],
    'a lone high surrogate': ['{"name":"a\\ud800"}', ['/name']],
    'a lone low surrogate': ['{"name":"\\udc00a"}', ['/name']],
    'a surrogate pair the wrong way': ['{"name":"\\udc00\\ud800"}', ['/name']],
    'a null tag': ['{"name":"a","tag":null}', ['/tag']],
    'a long tag': [`{"name":"a","tag":"${'t'.repeat(101)}"}`, ['/tag']],
    'a control character in a tag': ['{"name":"a","tag":"\\n"}', ['/tag']],
    'an id as text': ['{"name":"a","id":"1"}', ['/id']],
    'an id of zero': ['{"name":"a","id":0}', ['/id']],
    'a negative zero': ['{"name":"a","id":-0}', ['/id']],
    'a negative id': ['{"name":"a","id":-1}', ['/id']],
    'a fraction': ['{"name":"a","id":1.5}', ['/id']],
    'an id as true': ['{"name":"a","id":true}', ['/id']],
    'an id as null': ['{"name":"a","id":null}', ['/id']],
    'an id in an array': ['{"name":"a","id":[1]}', ['/id']],
    'an id above 2^53 - 1': ['{"name":"a","id":9007199254740992}', ['/id']],
    'an id that a double rounds': ['{"name":"a","id":9007199254740993}', ['/id']],
    'an id that a double rounds down into range': ['{"name":"a","id":9007199254740991.4}', ['/id']],
    'an id that a double rounds to one': ['{"name":"a","id":1.00000000000000000001}', ['/id']],
    'an id that no double carries': ['{"name":"a","id":1e400}', ['/id']],
    'an id that a double makes zero': ['{"name":"a","id":1e-400}', ['/id']],
    'an unknown field': ['{"name":"a","nmae":"b"}', ['/nmae']],
    'a field named __proto__': ['{"name":"a","__proto__":{"id":5}}', ['/__proto__']],
    'a field with / and ~': ['{"name":"a","a/b~c":1}', ['/a~1b~0c']],
    'the same field three times': ['{"name":"a","tag":"b","tag":"b","tag":"b"}', ['/tag']],
    'a number twice that no double carries': ['{"name":"a","id":1e400,"id":1e400}', ['/id']],
    'the same field twice': ['{"name":"a","tag":"b","tag":"b"}', ['/tag']],
    'the same field twice, once escaped': ['{"name":"a","n\\u0061me":"b"}', ['/name']],
    'every fault at once': [
      '{"name":1,"name":2,"id":1e999,"tag":{"tag":1,"tag":2},"x":[1e999],"y":0}',
      ['/name', '/id', '/tag', '/x', '/y'],
    ],
  };

  it('gets 400 for each fault, and nothing is stored', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    for (const [what, [body, places]] of Object.entries(bodies)) {
      const answer = await call('POST', '/plants', { token: alice, body, headers: json });
      assert.equal(answer.status, 400, `${what}: ${answer.text}`);
      assert.equal(answer.headers.get('content-type')?.split(';')[0], 'application/problem+json');
      assert.partialDeepStrictEqual(answer.json, {
        type: '/problems/invalid-request',
        status: 400,
      });
      assert.deepEqual(placesOf(answer).toSorted(), places.toSorted(), what);
      assert.equal((await call('GET', '/plants', { token: alice })).text, '[]', what);
    }
  });

  it('gets the faults of the query and of the body together', async (t) => {
    const { call, token } = await startApp(t);
    const path = '/plants?fields=id,nmae&x=1';
    const answer = await call('POST', path, { token: await token('alice'), json: { id: 0 } });
    assert.deepEqual(placesOf(answer).toSorted(), ['/id', '/name', 'fields', 'x']);
  });
});

it('a valid body is returned as sent, however it is written', async (t) => {
  const { call, token } = await startApp(t);
  const alice = await token('alice');
  const bodies: [body: string, expected: { name: string; tag?: string; id?: string }][] = [
    [`{"name":"${'𝒳'.repeat(200)}"}`, { name: '𝒳'.repeat(200) }],
    ['{"name":"\\ud83c\\udf35"}', { name: '🌵' }],
    ['{"name":" a "}', { name: ' a ' }],
    ['{"name":"a","id":1.20e2}', { name: 'a', id: '120' }],
    [' {\n"name" :\t"a" , "tag" : "" }\r\n', { name: 'a' }],
    ['{"name":"{[:,]} \\" \\\\","tag":"\\\\"}', { name: '{[:,]} " \\', tag: '\\' }],
    [`{"name":"a","id":${largest}}`, { name: 'a', id: largest }],
  ];
  for (const [body, { name, tag = '', id }] of bodies) {
    const answer = await call('POST', '/plants', { token: alice, body, headers: json });
    const location = answer.headers.get('location') ?? '';
    const text = JSON.stringify({ name, tag });
    assert.deepEqual([answer.status, answer.text], [201, text], body);
    assert.equal((await call('GET', location, { token: alice })).text, text);
    if (id !== undefined) assert.equal(location, `/plants/${id}`);
  }
});

describe('the media type of a body', () => {
  it('must be JSON in UTF-8 without an encoding, or the response is 415', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    const refused: Record<string, string>[] = [
      {},
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/merge-patch+json' },
      { 'content-type': 'application/x-www-form-urlencoded' },
      { 'content-type': 'application/json; charset=utf-16' },
      { 'content-type': 'application/json;charset="latin1"' },
      { 'content-type': 'nonsense' },
      { ...json, 'content-encoding': 'gzip' },
      { ...json, 'content-encoding': 'identity' },
    ];
    const body = new Uint8Array(Buffer.from('{"name":"a"}')); // fetch adds no type to bytes
    for (const headers of refused) {
      const { status } = await call('POST', '/plants', { token: alice, body, headers });
      assert.equal(status, 415, JSON.stringify(headers));
    }
    const taken = [
      'application/json',
      'Application/JSON; Charset=UTF-8',
      'application/json;charset="utf-8"',
    ];
    for (const type of taken) {
      const headers = { 'content-type': type };
      const { status } = await call('POST', '/plants', { token: alice, body, headers });
      assert.equal(status, 201, type);
    }
    const { json: list } = await call('GET', '/plants', { token: alice });
    assert.equal((list as unknown[]).length, taken.length);
  });

  it('is not checked beyond 16 KiB: the response is 413', async (t) => {
    const { address, call, token } = await startApp(t);
    const alice = await token('alice');
    const padded = (bytes: number) => `{"name":"a"}${' '.repeat(bytes - 12)}`;
    const post = (bytes: number) =>
      call('POST', '/plants', { token: alice, body: padded(bytes), headers: json });
    assert.equal((await post(16_384)).status, 201);
    assert.equal((await post(16_385)).status, 413);
    assert.equal((await post(1_000_000)).status, 413);
    const postInParts = async (bytes: number) => {
      const body = ReadableStream.from(
        (async function* parts() {
          yield Buffer.from(padded(bytes - 100));
          await call('GET', '/livez'); // the first part has arrived by then
          yield Buffer.from(' '.repeat(100));
        })(),
      );
      const headers = { ...json, authorization: `Bearer ${alice}` };
      return fetch(`${address}/plants`, { method: 'POST', headers, body, duplex: 'half' });
    };
    assert.equal((await postInParts(16_384)).status, 201);
    assert.equal((await postInParts(16_385)).status, 413);
    const { json: list } = await call('GET', '/plants', { token: alice });
    assert.equal((list as unknown[]).length, 2);
  });
});

describe('invalid parameters', () => {
  const queries: Record<string, string[]> = {
    'limit=0': ['limit'],
    'limit=-1': ['limit'],
    'limit=1.0': ['limit'],
    'limit=1e3': ['limit'],
    'limit=007': ['limit'],
    'limit=+5': ['limit'],
    'limit=%205': ['limit'],
    'limit=0x10': ['limit'],
    'limit=': ['limit'],
    limit: ['limit'],
    'limit=1001': ['limit'],
    'limit=2147483648': ['limit'],
    'limit=all': ['limit'],
    'limit=1&limit=2': ['limit'],
    'limit=1&limit=1': ['limit'],
    'limit=1&limit=2&limit=3': ['limit'],
    'tag=%FF&tag=%FF': ['tag'],
    'fields=id&fields=id': ['fields'],
    'fields=id&fields=': ['fields'],
    'after=-1': ['after'],
    'after=9007199254740992': ['after'],
    'after=99999999999999999999': ['after'],
    'after=x': ['after'],
    'tag=%00': ['tag'],
    'tag=%FF': ['tag'],
    'tag=%ED%A0%80': ['tag'],
    'tag=%': ['tag'],
    [`tag=${'t'.repeat(101)}`]: ['tag'],
    'q=': ['q'],
    q: ['q'],
    'q=%20%E3%80%80': ['q'],
    'q=%CC%81%EF%B8%8F': ['q'],
    'q=%C2%A8': ['q'],
    'q=a%00': ['q'],
    'q=%FF': ['q'],
    'q=%ED%A0%80': ['q'],
    [`q=${'a'.repeat(101)}`]: ['q'],
    'q=a&q=a': ['q'],
    'fields=': ['fields'],
    'fields=id,,name': ['fields'],
    'fields=id,id': ['fields'],
    'fields=owners': ['fields'],
    'fields=ID': ['fields'],
    'Limit=1': ['Limit'],
    'offset=1': ['offset'],
    '__proto__=1': ['__proto__'],
    'limit=0&after=x&tag=%00&fields=x&page=2': ['limit', 'after', 'tag', 'fields', 'page'],
  };

  it('get 400 with the name of each parameter', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    for (const [query, names] of Object.entries(queries)) {
      const answer = await call('GET', `/plants?${query}`, { token: alice });
      assert.equal(answer.status, 400, query);
      assert.deepEqual(placesOf(answer).toSorted(), names.toSorted(), query);
    }
    const unknown = await call('DELETE', '/plants/1?force=1', { token: alice });
    assert.deepEqual([unknown.status, placesOf(unknown)], [400, ['force']]);
    const limited = await call('GET', '/plants/1?limit=1', { token: alice });
    assert.deepEqual([limited.status, placesOf(limited)], [400, ['limit']]);
  });

  it('include invalid ids, for every method', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    const ids = [
      '0',
      '-1',
      '1.5',
      '1e2',
      '01',
      'x',
      '%20',
      `${largest}0`,
      '9007199254740992',
      'a'.repeat(4_000),
    ];
    for (const id of ids) {
      for (const method of ['GET', 'DELETE']) {
        const answer = await call(method, `/plants/${id}`, { token: alice });
        assert.deepEqual([answer.status, placesOf(answer)], [400, ['id']], `${method} ${id}`);
      }
    }
    assert.equal((await call('GET', '/plants/%zz', { token: alice })).status, 400);
    assert.equal((await call('GET', `/plants/${largest}`, { token: alice })).status, 404);
  });
});

describe('the faults of a request', () => {
  const many = Array.from({ length: 700 }, (_, at) => `x${at}`);
  const requests: Record<string, { query?: string; body?: string; more: number }> = {
    'of 60 unknown parameters': { query: many.slice(0, 60).join('&'), more: 41 },
    'of 700 unknown fields': {
      body: JSON.stringify(Object.fromEntries(many.map((name) => [name, 1]))),
      more: 681,
    },
    'of 700 fields that are sent twice': {
      body: `{"name":"a",${[...many, ...many].map((name) => `"${name}":1`).join()}}`,
      more: 680,
    },
    'of both': {
      query: many.slice(0, 15).join('&'),
      body: JSON.stringify(Object.fromEntries(many.slice(0, 15).map((name) => [name, 1]))),
      more: 11,
    },
  };
  it('are listed up to 20, and the others counted', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    for (const [what, { query = '', body = '{}', more }] of Object.entries(requests)) {
      const options = { token: alice, body, headers: json };
      const answer = await call('POST', `/plants?${query}`, options);
      assert.equal(answer.status, 400, what);
      assert.equal(new Set(placesOf(answer)).size, 20);
      const { detail } = answer.json as { detail: string };
      assert.equal(detail, `The request has ${20 + more} errors. "errors" lists the first 20.`);
      assert.ok(answer.text.length < 4_000, `${answer.text.length}`);
    }
  });

  it('name each unknown parameter once, even one that is repeated like an array', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    const detailOf = async (query: string) => {
      const answer = await call('GET', `/plants?${query}`, { token: alice });
      assert.equal(placesOf(answer).length, 1, query);
      return (answer.json as { detail: string }).detail;
    };
    assert.equal(
      await detailOf('fields[]=id&fields[]=name'),
      'Unknown parameter "fields[]". Write it as fields=id&fields=name.',
    );
    assert.match(await detailOf('fields%5B%5D=id'), /Write it as fields=id&fields=name/);
    assert.match(
      await detailOf('page=1&page=2'),
      /^Unknown parameter "page"\. Use only limit, after/,
    );
    assert.match(await detailOf('tag[]=a'), /^Unknown parameter "tag\[\]"\. Use only limit, after/);
  });

  it('name the character that is not allowed', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    const reasons: Record<string, RegExp> = {
      '{"name":"a","tag":"a\\u0007"}':
        /^"tag" has a control character \(U\+0007\)\. Use a string of /,
      '{"name":"a","tag":"\\ud83c"}': /^"tag" has a lone surrogate \(U\+D83C\)\. /,
      '{"name":"a\\u0085"}': /^"name" has a control character \(U\+0085\)\. /,
      '{"name":" \\n"}': /^"name" has a control character \(U\+000A\)\. /,
      '{"name":" \\u3000"}': /^"name" is blank\. /,
    };
    for (const [body, reason] of Object.entries(reasons)) {
      const answer = await call('POST', '/plants', { token: alice, body, headers: json });
      assert.match((answer.json as { detail: string }).detail, reason);
    }
    const { json: problem } = await call('GET', '/plants?tag=%1F', { token: alice });
    assert.match(
      (problem as { detail: string }).detail,
      /^"tag" has a control character \(U\+001F\)\. /,
    );
    const rule =
      'Use a string of 1 to 100 characters (code points), not only white space and accents, without control characters.';
    for (const [q, reason] of Object.entries({
      '': 'is empty',
      '%20': 'is blank',
      '%CC%81': 'is not valid',
      '%07': 'has a control character (U+0007)',
    })) {
      const refused = await call('GET', `/plants?q=${q}`, { token: alice });
      assert.equal((refused.json as { detail: string }).detail, `"q" ${reason}. ${rule}`);
    }
  });
});
