/**
 * The oracle of the fuzzer: what it demands of requests, and wrong answers that it must not let pass.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { wrongsOf } from './fuzz/answers.ts';
import { judge, operationOf, wrongsOfOperation, type Verdict } from './fuzz/document.ts';
import { utf8Bytes, type Request } from './fuzz/request.ts';
import { Wire, type Answer } from './fuzz/wire.ts';

function requestOf(line: string, body = ''): Request {
  const [method = '', target = ''] = line.split(' ');
  const length = ['Content-Length', String(utf8Bytes(body).length)] as const;
  const ofBody = body === '' ? [] : [['Content-Type', 'application/json'] as const, length];
  const headers = [['Host', 'x'] as const, ...ofBody];
  return { method, target, version: '1.1', headers, body: utf8Bytes(body) };
}

const verdicts: [line: string, verdict: Verdict, body?: string][] = [
  ['GET /plants', true],
  ['GET http://x/plants?fields=id&fields=name&limit=1000', true],
  ['GET /plants?fields=id,name&tag=%F0%9F%8C%B1&after=0', true],
  ['GET /plants?q=%CC%81', undefined],
  ['GET /plants?limit=1001', false],
  ['GET /plants?limit=01', false],
  ['GET /plants?tag=%C2%85', false],
  ['GET /plants?tag=%FF', false],
  ['GET /plants?tag=a&tag=a', false],
  ['GET /plants?page=2', false],
  ['GET /plants/9007199254740992', false],
  ['GET /plants/..', undefined],
  ['GET /livez?x', undefined],
  ['DELETE /plants/1', true],
  ['DELETE /plants/1', false, '{}'],
  ['POST /plants', true, '{"name":"é","tag":"","id":1}'],
  ['POST /plants', undefined, '{"name":"a","name":"b"}'],
  ['POST /plants', undefined, '{"name":"a","id":1e0}'],
  ['POST /plants', false, '{"name":" "}'],
  ['POST /plants', false, '{"name":"\\ud800"}'],
  ['POST /plants', false, '{"name":"a","id":9007199254740992}'],
  ['POST /plants', false, '{"name":"a","nmae":"b"}'],
  ['POST /plants', false, '{"name":"a",}'],
  ['POST /plants', false],
  ['PUT /shares/bob', undefined, '{"access":"read"}'],
  ['PUT /shares/bob', false, '{"access":"all"}'],
];

test('the oracle accepts and refuses requests as documented', () => {
  for (const [line, verdict, body] of verdicts) {
    const request = requestOf(line, body);
    const match = operationOf(request) ?? assert.fail(line);
    assert.equal(judge(request, match), verdict, `${line} ${body}`);
  }
  const odd = { ...requestOf('GET /plants'), headers: [['Host', 'x y'] as const] };
  assert.equal(judge(odd, operationOf(odd) ?? assert.fail()), undefined);
  for (const line of ['GET /plants/', 'PUT /plants', 'GET /plants#x', 'GET plants'])
    assert.equal(operationOf(requestOf(line)), undefined, line);
});

const common: [string, string][] = [
  ['X-Request-Id', '6f0c11d2-0a3e-4a55-9c3b-0d1c7a9e4b21'],
  ['Date', 'Sat, 21 Nov 2026 22:00:00 GMT'],
];

function answerOf(status: number, json?: unknown, ...more: [string, string][]): Answer {
  const type = status < 400 ? 'application/json' : 'application/problem+json';
  const headers = json === undefined ? [] : [['Content-Type', type] as [string, string]];
  const body = json === undefined ? '' : utf8Bytes(JSON.stringify(json));
  return { status, headers: [...common, ...headers, ...more], body, isLast: false };
}

function problem(status: number, kind: string, more = {}): Answer {
  const type = `/problems/${kind}`;
  return answerOf(status, { type, title: 'Title', status, detail: 'It is so.', ...more });
}

function wrongsIn(request: Request, answer: Answer): string[] {
  const match = operationOf(request);
  const rules = wrongsOf(answer, { method: request.method, secrets: ['secret'] });
  if (match === undefined) return rules;
  return [...rules, ...wrongsOfOperation(request, match, answer, judge(request, match))];
}

const list = requestOf('GET /plants');
const create = requestOf('POST /plants', '{"name":"New"}');
const remove = requestOf('DELETE /plants/1');
const location: [string, string] = ['Location', '/plants/6'];
const tag: [string, string] = ['ETag', '"New"'];
const created = answerOf(201, { name: 'New', tag: '' }, location, tag);
const plants = answerOf(200, [{ name: 'Ficus', tag: '' }]);
const missing = problem(404, 'plant-not-found');
const without = (answer: Answer, name: string): Answer => ({
  ...answer,
  headers: answer.headers.filter(([one]) => one !== name),
});

test('the oracle accepts correct answers', () => {
  for (const [request, answer] of [
    [list, plants],
    [create, created],
    [remove, answerOf(204)],
    [remove, missing],
    [requestOf('GET /plants?limit=0'), problem(400, 'invalid-request')],
    [requestOf('GET /nothing'), problem(404, 'path-not-found')],
  ] as const) {
    assert.deepEqual(wrongsIn(request, answer), [], JSON.stringify(answer));
  }
});

const wrong: Record<string, [request: Request, answer: Answer]> = {
  'a plant of another user': [list, answerOf(200, [{ name: 'secret', tag: '' }])],
  'a member that is not documented': [list, answerOf(200, [{ name: 'a', tag: '', store: 'x' }])],
  'another type of a member': [list, answerOf(200, [{ name: 'a', tag: null }])],
  'another media type': [list, { ...plants, headers: [...common, ['Content-Type', 'text/html']] }],
  'a status that is not documented': [list, problem(404, 'plant-not-found')],
  'a refusal of a valid request': [create, problem(400, 'invalid-request')],
  'the success of an invalid one': [requestOf('POST /plants', '{"name":""}'), created],
  'a creation without an address': [create, without(created, 'Location')],
  'no id of the request': [list, without(plants, 'X-Request-Id')],
  'two ids of the request': [list, { ...plants, headers: [...common, ...plants.headers] }],
  'no date': [list, without(plants, 'Date')],
  'content of a 204': [remove, answerOf(204, {})],
  '500': [create, problem(500, 'internal-error')],
  '401 without a challenge': [list, problem(401, 'invalid-token')],
  '405 without methods': [requestOf('PUT /plants'), problem(405, 'method-not-allowed')],
  'a problem of another status': [remove, problem(404, 'plant-not-found', { status: 400 })],
  'a problem without a detail': [remove, problem(404, 'plant-not-found', { detail: '' })],
  'an unknown member of a problem': [remove, problem(404, 'plant-not-found', { stack: 'x' })],
  'a stack': [remove, problem(404, 'plant-not-found', { detail: 'x\n    at f (app.ts:1:1).' })],
  SQL: [remove, problem(404, 'plant-not-found', { detail: 'SELECT name FROM plants.' })],
  'a token': [remove, problem(404, 'plant-not-found', { detail: 'No plant_0123456789abc.' })],
};

for (const [what, [request, answer]] of Object.entries(wrong)) {
  test(`the oracle catches ${what}`, () => assert.notDeepEqual(wrongsIn(request, answer), []));
}

const head = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n';
const broken: Record<string, string> = {
  'a body that is too short': `${head}[`,
  'a second response': `${head}[]${head}[]`,
  'two lengths': head.replace('\r\n\r\n', '\r\nContent-Length: 2\r\n\r\n[]'),
  'no length': 'HTTP/1.1 200 OK\r\n\r\n[]',
  'a length of a 204': 'HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n',
  'lines that end in LF': `${head}[]`.replaceAll('\r\n', '\n'),
  'a head that is cut off': head.slice(0, -2),
};

for (const [what, bytes] of Object.entries(broken)) {
  test(`the connection of the fuzzer refuses ${what}`, async (t) => {
    const server = createServer((socket) => void socket.end(bytes, 'latin1'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.after(() => server.close());
    const wire = new Wire((server.address() as AddressInfo).port); // it listens on a port
    t.after(() => wire.close());
    await assert.rejects(async () => {
      await wire.answer('GET');
      await wire.nothingMore();
    });
  });
}
