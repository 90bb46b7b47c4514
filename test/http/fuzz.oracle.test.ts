/**
 * The oracle of the fuzzer, on wrong answers that it must not let pass. They come over a socket.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { wrongsOf } from './fuzz/answers.ts';
import { predict } from './fuzz/contract.ts';
import { judgeBody } from './fuzz/json.ts';
import { utf8Bytes, type Request } from './fuzz/request.ts';
import { outcomeOf } from './fuzz/verdict.ts';
import { Wire } from './fuzz/wire.ts';
import { stateOf, World, type Grant } from './fuzz/world.ts';

const alice = { store: 'main', user: 'alice', role: 'member' } as const;
const bob = { store: 'main', user: 'bob', role: 'member' } as const;

const carol = { store: 'main', user: 'carol', role: 'member' } as const;

function worldOfThree(): World {
  const scopes = ['plants:read', 'plants:write'];
  const tokenA = { id: 'a', person: alice, scopes };
  const world = new World(
    new Map<string, Grant>([
      ['A', tokenA],
      ['R', { id: 'r', person: alice, scopes: ['plants:read'] }],
      ['S', { id: 's', person: alice, scopes: [...scopes, 'shares:write'] }],
      ['C', { id: 'c', person: carol, scopes }],
    ]),
    [
      { ...tokenA, label: '', state: 'active' },
      { id: 'b', person: bob, scopes, label: '', state: 'active' },
    ],
  );
  world.share(alice, 'carol', 'read');
  world.share(bob, 'carol', 'write');
  world.unshare(carol, 'bob');
  world.create(alice, 1, { name: 'Ficus', tag: 'e\u0301', id: 1 });
  world.create(bob, 2, { name: 'secret', tag: '', id: 2 });
  world.create(alice, 3, { name: 'Palm', tag: '', id: 3 });
  world.create(alice, 5, { name: 'Oak', tag: 'old', id: 3 });
  world.update(alice, world.find(alice, 5) ?? assert.fail(), { tag: '' });
  world.delete(alice, 5);
  world.learn(alice, stateOf(alice, { name: 'Ficus', tag: 'e\u0301', owner: 'alice' }), '"Ficus"');
  return world;
}

function requestOf(method: string, target: string, body = '', token = 'A'): Request {
  const auth: [string, string][] = token === '' ? [] : [['Authorization', `Bearer ${token}`]];
  const length: [string, string][] =
    body === ''
      ? []
      : [
          ['Content-Type', 'application/json'],
          ['Content-Length', String(body.length)],
        ];
  return { method, target, version: '1.1', headers: [['Host', 'x'], ...auth, ...length], body };
}

const id = 'X-Request-Id: 6f0c11d2-0a3e-4a55-9c3b-0d1c7a9e4b21';
const date = 'Date: Sat, 21 Nov 2026 22:00:00 GMT';

function answer(status: string, headers: readonly string[], body = ''): string {
  const bytes = utf8Bytes(body);
  const length = status.startsWith('204') ? [] : [`Content-Length: ${bytes.length}`];
  return [`HTTP/1.1 ${status}`, id, date, ...length, ...headers, '', bytes].join('\r\n');
}

const json = 'Content-Type: application/json';
const tag = (name: string) => `ETag: "${name}"`;
const withHeader = (request: Request, name: string, value: string): Request => ({
  ...request,
  headers: [...request.headers, [name, value]],
});
function problem(status: string, kind: string, headers: readonly string[] = [], more = {}): string {
  const body = {
    type: `/problems/${kind}`,
    title: 'Title',
    status: parseInt(status),
    detail: 'It is so.',
    ...more,
  };
  return answer(
    status,
    ['Content-Type: application/problem+json', ...headers],
    JSON.stringify(body),
  );
}

/** What the oracle has against an answer with these bytes to this request. */
async function against(request: Request, bytes: string): Promise<string[]> {
  const server = createServer((socket) => void socket.end(bytes, 'latin1')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const wire = new Wire((server.address() as AddressInfo).port); // it listens on a port
  try {
    const given = await wire.answer(request.method);
    await wire.nothingMore();
    if (given === undefined) return ['no answer'];
    const verdict = outcomeOf(given, request.method, predict(request, worldOfThree()).outcomes);
    const wrongs = wrongsOf(given, { method: request.method, secrets: ['secret'] });
    return 'wrongs' in verdict ? [...wrongs, ...verdict.wrongs] : wrongs;
  } catch (fault) {
    return [String(fault)];
  } finally {
    wire.close();
    server.close();
  }
}

const list = requestOf('GET', '/plants');
const page = requestOf('GET', '/plants?limit=1&fields=id');
const one = requestOf('GET', '/plants/1');
const theirs = requestOf('GET', '/plants/2');
const create = requestOf('POST', '/plants', '{"name":"New"}');
const remove = requestOf('DELETE', '/plants/1');
const update = requestOf('PATCH', '/plants/1', '{"tag":null}');
const updated = '{"name":"Ficus","tag":""}';
const restore = requestOf('POST', '/plants/5/restore');
const restored = '{"name":"Oak","tag":""}';
const history = requestOf('GET', '/plants/5/history?limit=2');
const at = '"at":"2026-11-21T22:00:00.000Z"';
const changes = `[{"event":"deleted",${at},"user":"alice","before":{"name":"Oak","tag":"","owner":"alice"}},{"event":"updated",${at},"user":"alice","before":{"name":"Oak","tag":"old","owner":"alice"}}]`;
const bin = requestOf('GET', '/bin?limit=1');
const inBin = `[{"id":5,"name":"Oak","tag":"","owner":"alice","deletedAt":"2026-11-21T22:00:00.000Z","deletedBy":"alice"}]`;
const nextInBin = 'Link: </bin?limit=1&after=7-1>; rel="next"';
const failed = problem('412 Precondition Failed', 'precondition-failed');
const notModified = answer('304 Not Modified', [tag('Ficus')]).replace(/Content-Length.*\r\n/, '');
const faulty = requestOf('POST', '/plants?x=1', '{"name":"","id":0}');
const plants = '[{"name":"Ficus","tag":"e\u0301"},{"name":"Palm","tag":""}]';
const link = 'Link: </plants?limit=1&after=1&fields=id>; rel="next"';
const challenge = 'WWW-Authenticate: Bearer';
const lacking = `${challenge} error="insufficient_scope", scope="plants:write"`;
const faults = [
  { parameter: 'x', detail: 'It is so.' },
  { pointer: '/name', detail: 'It is so.' },
  { pointer: '/id', detail: 'It is so.' },
];
const created = ['Location: /plants/6', tag('New'), json];
const received = requestOf('GET', '/plants', '', 'C');
const removeReceived = requestOf('DELETE', '/plants/1', '', 'C');
const share = requestOf('PUT', '/shares/bob', '{"access":"write"}', 'S');
const shared = '{"user":"bob","access":"write"}';
const unshare = requestOf('DELETE', '/shares/carol', '', 'S');
const shares = requestOf('GET', '/shares');
const given = '{"given":[{"user":"carol","access":"read"}],"received":[]}';

const listTokens = requestOf('GET', '/tokens');
const ownTokens =
  '[{"id":"a","label":"","scopes":["plants:read","plants:write"],"state":"active","current":true}]';
const createToken = requestOf('POST', '/tokens', '{"scopes":["plants:read"],"label":"x"}');
const newToken = `{"id":"n","label":"x","scopes":["plants:read"],"state":"active","current":false,"token":"plant_${'0'.repeat(58)}"}`;
const createdToken = ['Location: /tokens/n', json];
const more = requestOf('POST', '/tokens', '{"scopes":["shares:write"]}');
const revokeOther = requestOf('DELETE', '/tokens/b');

const right: [request: Request, answer: string][] = [
  [list, answer('200 OK', [json], plants)],
  [{ ...list, method: 'HEAD' }, answer('200 OK', [json], plants).split('[')[0] ?? ''],
  [page, answer('200 OK', [json, link], '[{"id":1}]')],
  [one, answer('200 OK', [tag('Ficus'), json], '{"name":"Ficus","tag":"e\\u0301"}')],
  [theirs, problem('404 Not Found', 'plant-not-found')],
  [create, answer('201 Created', created, '{"name":"New","tag":""}')],
  [remove, answer('204 No Content', [])],
  [withHeader(one, 'If-None-Match', '"x", W/"Ficus"'), notModified],
  [
    withHeader(one, 'If-None-Match', '"x"'),
    answer('200 OK', [tag('Ficus'), json], '{"name":"Ficus","tag":"e\u0301"}'),
  ],
  [withHeader(one, 'If-Match', 'W/"Ficus"'), failed],
  [withHeader(one, 'If-Match', '"Ficus'), problem('400 Bad Request', 'invalid-request')],
  [withHeader(theirs, 'If-Match', '"x"'), problem('404 Not Found', 'plant-not-found')],
  [update, answer('200 OK', [tag('other'), json], updated)],
  [withHeader(update, 'If-Match', '"Ficus"'), answer('200 OK', [tag('other'), json], updated)],
  [withHeader(update, 'If-Match', '"other"'), failed],
  [withHeader(remove, 'If-Match', '*'), answer('204 No Content', [])],
  [withHeader(remove, 'If-None-Match', 'W/"Ficus"'), failed],
  [withHeader(update, 'If-None-Match', '"other"'), answer('200 OK', [tag('other'), json], updated)],
  [withHeader(update, 'If-None-Match', '"x'), problem('400 Bad Request', 'invalid-request')],
  [requestOf('PATCH', '/plants/2', '{"name":"x"}'), problem('404 Not Found', 'plant-not-found')],
  [restore, answer('200 OK', [tag('Oak'), json], restored)],
  [requestOf('POST', '/plants/1/restore'), problem('409 Conflict', 'id-taken')],
  [requestOf('POST', '/plants/2/restore'), problem('404 Not Found', 'plant-not-found')],
  [history, answer('200 OK', [json], changes)],
  [bin, answer('200 OK', [json], inBin)],
  [requestOf('GET', '/bin?after=0-1'), answer('200 OK', [json], '[]')],
  [requestOf('GET', '/bin', '', 'C'), answer('200 OK', [json], '[]')],
  [received, answer('200 OK', [json], plants)],
  [removeReceived, problem('403 Forbidden', 'plant-read-only')],
  [share, answer('201 Created', [json], shared)],
  [unshare, answer('204 No Content', [])],
  [requestOf('DELETE', '/shares/bob', '', 'S'), problem('404 Not Found', 'share-not-found')],
  [shares, answer('200 OK', [json], given)],
  [listTokens, answer('200 OK', [json], ownTokens)],
  [createToken, answer('201 Created', createdToken, newToken)],
  [requestOf('DELETE', '/tokens/a'), answer('204 No Content', [])],
  [requestOf('DELETE', '/token'), answer('204 No Content', [])],
  [revokeOther, problem('404 Not Found', 'token-not-found')],
  [faulty, problem('400 Bad Request', 'invalid-request', [], { errors: faults })],
  [requestOf('GET', '/plants', '', ''), problem('401 Unauthorized', 'invalid-token', [challenge])],
  [
    requestOf('DELETE', '/plants/1', '', 'R'),
    problem('403 Forbidden', 'insufficient-scope', [lacking]),
  ],
  [
    requestOf('PUT', '/plants'),
    problem('405 Method Not Allowed', 'method-not-allowed', ['Allow: GET, HEAD, OPTIONS, POST']),
  ],
];

const wrong: Record<string, [request: Request, answer: string]> = {
  'a plant of another user': [list, answer('200 OK', [json], '[{"name":"secret","tag":""}]')],
  'a bin without a plant': [bin, answer('200 OK', [json], '[]')],
  'a bin that names another user': [
    bin,
    answer('200 OK', [json], inBin.replace('"deletedBy":"alice"', '"deletedBy":"bob"')),
  ],
  'a page of the bin after the last one': [bin, answer('200 OK', [json, nextInBin], inBin)],
  'a bin for who can only read': [
    requestOf('GET', '/bin', '', 'C'),
    answer('200 OK', [json], inBin),
  ],
  'a share that is not in effect': [received, answer('200 OK', [json], '[]')],
  'a share that has ended': [received, answer('200 OK', [json], '[{"name":"secret","tag":""}]')],
  'a delete with a share for reading': [removeReceived, answer('204 No Content', [])],
  '200 for a new share': [share, answer('200 OK', [json], shared)],
  'another access': [share, answer('201 Created', [json], shared.replace('write', 'read'))],
  '404 for the end of a share': [unshare, problem('404 Not Found', 'share-not-found')],
  'a share with oneself': [
    requestOf('PUT', '/shares/alice', '{"access":"read"}', 'S'),
    answer('201 Created', [json], '{"user":"alice","access":"read"}'),
  ],
  'a share without the scope': [
    requestOf('PUT', '/shares/bob', '{"access":"write"}'),
    answer('201 Created', [json], shared),
  ],
  'a share that is missing': [shares, answer('200 OK', [json], '{"given":[],"received":[]}')],
  'the token of another user': [
    listTokens,
    answer('200 OK', [json], ownTokens.replace('}]', `},${ownTokens.slice(1)}`)),
  ],
  'a list that shows a token': [
    listTokens,
    answer('200 OK', [json], ownTokens.replace('}]', `,"token":"plant_${'0'.repeat(58)}"}]`)),
  ],
  'a token with more scopes': [
    createToken,
    answer('201 Created', createdToken, newToken.replace(':read"', ':read","plants:write"')),
  ],
  'a token that is not shown': [
    createToken,
    answer('201 Created', createdToken, newToken.replace(/,"token":"\w+"/, '')),
  ],
  'the address of another token': [
    createToken,
    answer('201 Created', ['Location: /tokens/a', json], newToken),
  ],
  'a token with a scope that the other lacks': [
    more,
    answer('201 Created', createdToken, newToken),
  ],
  'the revocation of a token of another user': [revokeOther, answer('204 No Content', [])],
  'a plant without an entity tag': [
    one,
    answer('200 OK', [json], '{"name":"Ficus","tag":"e\u0301"}'),
  ],
  'a weak entity tag': [
    one,
    answer('200 OK', ['ETag: W/"Ficus"', json], '{"name":"Ficus","tag":"e\u0301"}'),
  ],
  'a list with an entity tag': [list, answer('200 OK', [tag('x'), json], plants)],
  '304 for another state': [withHeader(one, 'If-None-Match', '"x"'), notModified],
  '200 for the state that the client has': [
    withHeader(one, 'If-None-Match', '"Ficus"'),
    answer('200 OK', [tag('Ficus'), json], '{"name":"Ficus","tag":"e\u0301"}'),
  ],
  'an update despite its condition': [
    withHeader(update, 'If-Match', 'W/"Ficus"'),
    answer('200 OK', [tag('other'), json], updated),
  ],
  '412 although the condition holds': [withHeader(update, 'If-Match', '"x", "Ficus"'), failed],
  'a delete despite its condition': [
    withHeader(remove, 'If-Match', '"x"'),
    answer('204 No Content', []),
  ],
  'an update of the state that it excludes': [
    withHeader(update, 'If-None-Match', '*'),
    answer('200 OK', [tag('other'), json], updated),
  ],
  '412 for a plant out of reach': [withHeader(theirs, 'If-Match', '"x"'), failed],
  'an update that changes nothing': [
    update,
    answer('200 OK', [tag('other'), json], '{"name":"Ficus","tag":"e\u0301"}'),
  ],
  'a restore of an earlier state': [
    restore,
    answer('200 OK', [tag('Oak'), json], '{"name":"Oak","tag":"old"}'),
  ],
  '409 for a plant of another user': [
    requestOf('POST', '/plants/2/restore'),
    problem('409 Conflict', 'id-taken'),
  ],
  'a history in another order': [
    history,
    answer('200 OK', [json], JSON.stringify(JSON.parse(changes).toReversed())),
  ],
  'a history of another user': [
    requestOf('GET', '/plants/2/history'),
    answer('200 OK', [json], `[{"event":"created",${at},"user":"bob"}]`),
  ],
  'a plant that is missing': [list, answer('200 OK', [json], '[{"name":"Palm","tag":""}]')],
  'plants in another order': [page, answer('200 OK', [json, link], '[{"id":3}]')],
  'text that was normalised': [
    one,
    answer('200 OK', [tag('Ficus'), json], '{"name":"Ficus","tag":"é"}'),
  ],
  'fields in another order': [
    one,
    answer('200 OK', [tag('Ficus'), json], '{"tag":"e\u0301","name":"Ficus"}'),
  ],
  'a field too many': [
    one,
    answer('200 OK', [tag('Ficus'), json], '{"id":1,"name":"Ficus","tag":"e\u0301"}'),
  ],
  'no Link': [page, answer('200 OK', [json], '[{"id":1}]')],
  'a Link that drops a parameter': [
    page,
    answer('200 OK', [json, link.replace('&fields=id', '')], '[{"id":1}]'),
  ],
  'another media type': [list, answer('200 OK', ['Content-Type: text/html'], plants)],
  'no id of the request': [list, answer('200 OK', [json], plants).replace(`${id}\r\n`, '')],
  'two ids of the request': [list, answer('200 OK', [json, id], plants)],
  'no date': [list, answer('200 OK', [json], plants).replace(`${date}\r\n`, '')],
  '200 for a plant out of reach': [theirs, answer('200 OK', [json], '{"name":"Ficus","tag":""}')],
  '403 for a plant out of reach': [
    theirs,
    problem('403 Forbidden', 'insufficient-scope', [lacking]),
  ],
  '404 that is about the path': [theirs, problem('404 Not Found', 'path-not-found')],
  '200 for a creation': [create, answer('200 OK', created, '{"name":"New","tag":""}')],
  'another address': [
    create,
    answer('201 Created', ['Location: /plants/5', json], '{"name":"New","tag":""}'),
  ],
  '409 for a free id': [create, problem('409 Conflict', 'id-taken')],
  '500': [create, problem('500 Internal Server Error', 'internal-error')],
  '503 with all that belongs to it': [
    create,
    problem('503 Service Unavailable', 'overloaded', ['Retry-After: 1']),
  ],
  'content of a 204': [remove, answer('204 No Content', ['Content-Length: 2'], '{}')],
  'a body to HEAD': [{ ...list, method: 'HEAD' }, answer('200 OK', [json], plants)],
  'another length to HEAD': [
    { ...list, method: 'HEAD' },
    answer('200 OK', [json], '[]').replace('[]', ''),
  ],
  'a length that is too long': [
    list,
    answer('200 OK', [json], plants).replace(/Length: (\d+)/, 'Length: 9$1'),
  ],
  'a length that is too short': [
    list,
    answer('200 OK', [json], plants).replace(/Length: \d(\d)/, 'Length: $1'),
  ],
  'two lengths': [
    list,
    answer('200 OK', [json, `Content-Length: ${utf8Bytes(plants).length}`], plants),
  ],
  'lines that end in LF': [list, answer('200 OK', [json], plants).replaceAll('\r\n', '\n')],
  'a second response': [list, answer('200 OK', [json], plants).repeat(2)],
  'an unrequested close': [list, answer('200 OK', [json, 'Connection: close'], plants)],
  'a missing fault': [
    faulty,
    problem('400 Bad Request', 'invalid-request', [], { errors: faults.slice(1) }),
  ],
  'a repeated fault': [
    faulty,
    problem('400 Bad Request', 'invalid-request', [], { errors: [...faults, faults[0]] }),
  ],
  'a fault at another place': [
    faulty,
    problem('400 Bad Request', 'invalid-request', [], {
      errors: [...faults.slice(1), { pointer: '/x', detail: 'It is so.' }],
    }),
  ],
  'no faults': [faulty, problem('400 Bad Request', 'invalid-request')],
  'the faults of the input before the scope': [
    {
      ...faulty,
      headers: faulty.headers.map(([name, value]) => [name, value.replace(' A', ' R')] as const),
    },
    problem('400 Bad Request', 'invalid-request', [], { errors: faults }),
  ],
  'a problem as plain JSON': [
    theirs,
    problem('404 Not Found', 'plant-not-found').replace('problem+json', 'json'),
  ],
  'a problem of another status': [
    theirs,
    problem('404 Not Found', 'plant-not-found', [], { status: 400 }),
  ],
  'a problem without a detail': [
    theirs,
    problem('404 Not Found', 'plant-not-found', [], { detail: '' }),
  ],
  'an unknown member': [theirs, problem('404 Not Found', 'plant-not-found', [], { stack: 'x' })],
  'a stack': [
    theirs,
    problem('404 Not Found', 'plant-not-found', [], { detail: 'x\n    at f (app.ts:1:1).' }),
  ],
  SQL: [
    theirs,
    problem('404 Not Found', 'plant-not-found', [], { detail: 'SELECT name FROM plants.' }),
  ],
  'a token': [
    theirs,
    problem('404 Not Found', 'plant-not-found', [], { detail: 'No plant_0123456789abc.' }),
  ],
  "another user's text": [
    theirs,
    problem('404 Not Found', 'plant-not-found', [], { detail: 'Not secret.' }),
  ],
  '401 without a challenge': [
    requestOf('GET', '/plants', '', ''),
    problem('401 Unauthorized', 'invalid-token'),
  ],
  'an error without a token': [
    requestOf('GET', '/plants', '', ''),
    problem('401 Unauthorized', 'invalid-token', [`${challenge} error="invalid_token"`]),
  ],
  'no error for an invalid token': [
    requestOf('GET', '/plants', '', 'B'),
    problem('401 Unauthorized', 'invalid-token', [challenge]),
  ],
  'another scope': [
    requestOf('DELETE', '/plants/1', '', 'R'),
    problem('403 Forbidden', 'insufficient-scope', [lacking.replace('write', 'read')]),
  ],
  '405 without Allow': [
    requestOf('PUT', '/plants'),
    problem('405 Method Not Allowed', 'method-not-allowed'),
  ],
  'a method too many in Allow': [
    requestOf('PUT', '/plants'),
    problem('405 Method Not Allowed', 'method-not-allowed', [
      'Allow: GET, HEAD, OPTIONS, POST, PUT',
    ]),
  ],
};

test('the oracle accepts correct responses', async () => {
  for (const [request, bytes] of right) {
    assert.deepEqual(await against(request, bytes), [], bytes);
  }
});

for (const [what, [request, bytes]] of Object.entries(wrong)) {
  test(`the oracle catches ${what}`, async () => {
    assert.notDeepEqual(await against(request, bytes), []);
  });
}

test('the oracle parses JSON as in RFC 8259 and bodies as documented', () => {
  const taken = [
    '{"name":"a"}',
    ' {"n\\u0061me":"a","id":1.20e1}\n',
    '{"name":"\\ud83c\\udf35","tag":""}',
    '{"name":"a","id":10e-1}',
  ];
  const refused: Record<string, string[]> = {
    '': [''],
    '[]': [''],
    '{"name":"a",}': [''],
    '{"name":"a"} x': [''],
    '\ufeff{"name":"a"}': [''],
    '{"name":"a","x":[1 2]}': [''],
    '{"name":"\\x41"}': [''],
    '{"name":"a\tb"}': [''],
    '{"name":01}': [''],
    '{}': ['/name'],
    '{"name":"a","n\\u0061me":"b"}': ['/name'],
    '{"name":"\\ud800"}': ['/name'],
    '{"name":"\u3000"}': ['/name'],
    '{"name":"a","id":-0}': ['/id'],
    '{"name":"a","id":9007199254740992}': ['/id'],
    '{"name":"a","id":1e99999999999}': ['/id'],
    [`{"name":"a","a/b~c":${'['.repeat(7_000)}${']'.repeat(7_000)}}`]: ['/a~1b~0c'],
  };
  for (const body of taken) assert.ok('plant' in judgeBody(Buffer.from(body)), body);
  for (const [body, places] of Object.entries(refused)) {
    assert.deepEqual(judgeBody(Buffer.from(body)), { places }, body);
  }
});
