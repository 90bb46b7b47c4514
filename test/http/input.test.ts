import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { maxPosition } from '../../src/log/change-log.ts';
import type { Fault } from '../../src/problem.ts';
import { inNewStore, startApp, type Answer } from '../support/app.ts';
import { fileScope, itOnce as it } from '../support/storages.ts';

const largest = '9007199254740991';
const json = { 'content-type': 'application/json' };
const app = await startApp(fileScope());
const start = () => inNewStore(app).user('alice');

/** The places that the answer names as faulty. */
function placesOf({ json: body }: Answer): string[] {
  const { errors } = body as { errors: Fault[] };
  assert.ok(
    errors.every(({ detail }) => /[a-z].*[.]$/s.test(detail)),
    'each fault describes its fix',
  );
  return errors.map((fault) => ('pointer' in fault ? fault.pointer : fault.parameter));
}

/** A body whose name has these bytes. */
const nameOf = (...bytes: number[]) =>
  new Uint8Array(Buffer.concat([Buffer.from('{"name":"'), Buffer.from(bytes), Buffer.from('"}')]));

describe('an invalid body', () => {
  const bodies: Record<string, [body: string | Uint8Array<ArrayBuffer>, places: string[]]> = {
    'no body': ['', ['']],
    'broken JSON': ['{"name":', ['']],
    'two values': ['{"name":"a"} {}', ['']],
    'a comment': ['{"name":"a"/**/}', ['']],
    'an array': ['[{"name":"a"}]', ['']],
    'a string': ['"name"', ['']],
    null: ['null', ['']],
    'invalid UTF-8': [nameOf(0xff), ['']],
    'an overlong encoding': [nameOf(0xc0, 0xaf), ['']],
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

  it('gets 400 for each fault, and nothing is stored', async () => {
    const alice = await start();
    for (const [what, [body, places]] of Object.entries(bodies)) {
      const answer = await alice('POST', '/plants', { body, headers: json });
      assert.equal(answer.status, 400, `${what}: ${answer.text}`);
      assert.equal(answer.headers.get('content-type')?.split(';')[0], 'application/problem+json');
      assert.partialDeepStrictEqual(answer.json, { type: '/problems/invalid-request' });
      assert.deepEqual(placesOf(answer).toSorted(), places.toSorted(), what);
      assert.equal((await alice('GET', '/plants')).text, '[]', what);
    }
  });

  it('gets the faults of the query and of the body together', async () => {
    const alice = await start();
    const answer = await alice('POST', '/plants?fields=id,nmae&x=1', { json: { id: 0 } });
    assert.deepEqual(placesOf(answer).toSorted(), ['/id', '/name', 'fields', 'x']);
  });
});

it('a valid body is returned as sent, however it is written', async () => {
  const alice = await start();
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
    const answer = await alice('POST', '/plants', { body, headers: json });
    const location = answer.headers.get('location') ?? '';
    const text = JSON.stringify({ name, tag });
    assert.deepEqual([answer.status, answer.text], [201, text], body);
    assert.equal((await alice('GET', location)).text, text);
    if (id !== undefined) assert.equal(location, `/plants/${id}`);
  }
});

it('a body must be JSON in UTF-8 without an encoding, or the response is 415', async () => {
  const alice = await start();
  const body = new Uint8Array(Buffer.from('{"name":"a"}')); // fetch adds no type to bytes
  const send = (headers: Record<string, string>) => alice('POST', '/plants', { body, headers });
  for (const headers of [
    {},
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/merge-patch+json' },
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'application/json; charset=utf-16' },
    { 'content-type': 'application/json;charset="latin1"' },
    { 'content-type': 'nonsense' },
    { ...json, 'content-encoding': 'gzip' },
    { ...json, 'content-encoding': 'identity' },
  ]) {
    const refused = await send(headers);
    assert.equal(refused.status, 415, JSON.stringify(headers));
    assert.equal(refused.headers.get('accept'), 'application/json');
    assert.equal(refused.headers.get('accept-encoding'), 'identity');
  }
  for (const type of ['Application/JSON; Charset=UTF-8', 'application/json;charset="utf-8"']) {
    assert.equal((await send({ 'content-type': type })).status, 201, type);
  }
  const { json: list } = await alice('GET', '/plants');
  assert.equal((list as unknown[]).length, 2);
});

it('a body above 16 KiB gets 413', async () => {
  const token = await inNewStore(app).token('alice');
  const alice = app.as(token);
  const padded = (bytes: number) => `{"name":"a"}${' '.repeat(bytes - 12)}`;
  const post = (bytes: number) => alice('POST', '/plants', { body: padded(bytes), headers: json });
  const postInParts = async (bytes: number) => {
    const body = ReadableStream.from(
      (async function* parts() {
        yield Buffer.from(padded(bytes - 100));
        await app.call('GET', '/livez'); // the first part has arrived by then
        yield Buffer.from(' '.repeat(100));
      })(),
    );
    const headers = { ...json, authorization: `Bearer ${token}` };
    return fetch(`${app.address}/plants`, { method: 'POST', headers, body, duplex: 'half' });
  };
  for (const send of [post, postInParts]) {
    assert.equal((await send(16_384)).status, 201);
    assert.equal((await send(16_385)).status, 413);
  }
  assert.equal((await post(1_000_000)).status, 413);
  const { json: list } = await alice('GET', '/plants');
  assert.equal((list as unknown[]).length, 2);
});

describe('invalid parameters', () => {
  /** Values of each parameter, separated by spaces. */
  const values = {
    limit: '0 -1 1.0 1e3 007 +5 %205 0x10 1001 2147483648 all',
    after: '-1 9007199254740992 99999999999999999999 x',
    tag: `%00 %FF %ED%A0%80 % ${'t'.repeat(101)}`,
    q: `%20%E3%80%80 %CC%81%EF%B8%8F %C2%A8 a%00 %FF %ED%A0%80 ${'a'.repeat(101)}`,
    fields: 'id,,name id,id owners ID',
    Limit: '1',
    offset: '1',
  };
  const ofPlants = Object.entries(values).flatMap(([name, all]) =>
    all.split(' ').map((value) => `${name}=${value}`),
  );
  const position = maxPosition;
  /** Queries, separated by spaces. The first parameter of each is the fault. */
  const queries: Record<string, string> = {
    '/plants':
      `limit= limit q= q fields= __proto__=1 limit=1&limit=2 limit=1&limit=1 limit=1&limit=2&limit=3 q=a&q=a ` +
      `tag=%FF&tag=%FF fields=id&fields=id fields=id&fields= ${ofPlants.join(' ')}`,
    '/plants/1': 'limit=1 force=1',
    '/plants/1/history': 'limit=0 limit=101 limit=x limit=1&limit=2 after=1',
    '/bin':
      `limit=0 limit=1001 tag=a fields=id after= after=1- after=-1 after=01 after=1-1 after=${maxPosition + 1} ` +
      `after=${position}&after=${position}`,
    '/shares': 'limit=0 limit=1001 after= after=%00 limit=1&limit=1',
    '/token': 'fields=id',
    '/tokens': 'limit=0 limit=1001 after= after=x after=1 state=active',
  };

  it('get 400 with the name of each parameter', async () => {
    const alice = await start();
    for (const [path, all] of Object.entries(queries)) {
      for (const query of all.split(' ')) {
        const answer = await alice('GET', `${path}?${query}`);
        const [name = ''] = query.split('=');
        assert.deepEqual([answer.status, placesOf(answer)], [400, [name]], `${path}?${query}`);
      }
    }
    const names = ['limit', 'after', 'tag', 'fields', 'page'];
    const all = await alice('GET', '/plants?limit=0&after=x&tag=%00&fields=x&page=2');
    assert.deepEqual(placesOf(all).toSorted(), names.toSorted());
    const unknown = await alice('DELETE', '/plants/1?force=1');
    assert.deepEqual([unknown.status, placesOf(unknown)], [400, ['force']]);
    assert.equal((await alice('GET', `/bin?after=${position}`)).status, 200);
    const { json: problem } = await alice('GET', '/plants?limit=1001');
    const rule = 'Use an integer from 1 to 1000, or no "limit" for the whole list.';
    const detail = `"limit" is too large. ${rule}`;
    assert.partialDeepStrictEqual(problem, { errors: [{ parameter: 'limit', detail }] });
  });

  it('include invalid ids, for every method', async () => {
    const alice = await start();
    const ids = '0 -1 1.5 1e2 01 x %20 9007199254740992 90071992547409910'.split(' ');
    for (const id of [...ids, 'a'.repeat(4_000)]) {
      for (const method of ['GET', 'DELETE']) {
        const answer = await alice(method, `/plants/${id}`);
        assert.deepEqual([answer.status, placesOf(answer)], [400, ['id']], `${method} ${id}`);
      }
    }
    assert.equal((await alice('GET', '/plants/%zz')).status, 400);
    assert.equal((await alice('GET', `/plants/${largest}`)).status, 404);
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
  it('are listed up to 20, and the others counted', async () => {
    const alice = await start();
    for (const [what, { query = '', body = '{}', more }] of Object.entries(requests)) {
      const answer = await alice('POST', `/plants?${query}`, { body, headers: json });
      assert.equal(answer.status, 400, what);
      assert.equal(new Set(placesOf(answer)).size, 20);
      const { detail } = answer.json as { detail: string };
      assert.equal(detail, `The request has ${20 + more} errors. "errors" lists the first 20.`);
      assert.ok(answer.text.length < 4_000, `${answer.text.length}`);
    }
  });

  it('name each unknown parameter once, even one that is repeated like an array', async () => {
    const alice = await start();
    for (const [query, detail] of [
      ['fields[]=id&fields[]=name', 'Write it as fields=id&fields=name.'],
      ['fields%5B%5D=id', 'Write it as fields=id&fields=name.'],
      ['page=1&page=2', 'Use only limit, after'],
      ['tag[]=a', 'Use only limit, after'],
    ] as const) {
      const answer = await alice('GET', `/plants?${query}`);
      const [name = ''] = decodeURIComponent(query).split('=');
      assert.deepEqual(placesOf(answer), [name]);
      const { detail: shown } = answer.json as { detail: string };
      assert.ok(shown.startsWith(`Unknown parameter "${name}". ${detail}`), shown);
    }
  });

  it('name the character that is not allowed', async () => {
    const alice = await start();
    const bodies: Record<string, string> = {
      '{"name":"a","tag":"a\\u0007"}': '"tag" has a control character (U+0007). Use a string of ',
      '{"name":"a","tag":"\\ud83c"}': '"tag" has a lone surrogate (U+D83C). ',
      '{"name":"a\\u0085"}': '"name" has a control character (U+0085). ',
      '{"name":" \\n"}': '"name" has a control character (U+000A). ',
      '{"name":" \\u3000"}': '"name" is blank. ',
    };
    const rule =
      'Use a string of 1 to 100 characters (code points), not only white space and accents, without control characters.';
    const parameters: Record<string, string> = {
      'tag=%1F': '"tag" has a control character (U+001F). ',
      'q=': `"q" is empty. ${rule}`,
      'q=%20': `"q" is blank. ${rule}`,
      'q=%CC%81': `"q" is not valid. ${rule}`,
      'q=%07': `"q" has a control character (U+0007). ${rule}`,
    };
    const assertReason = (answer: Answer, reason: string) => {
      const { detail } = answer.json as { detail: string };
      assert.ok(detail.startsWith(reason), detail);
    };
    for (const [body, reason] of Object.entries(bodies))
      assertReason(await alice('POST', '/plants', { body, headers: json }), reason);
    for (const [query, reason] of Object.entries(parameters))
      assertReason(await alice('GET', `/plants?${query}`), reason);
  });
});
