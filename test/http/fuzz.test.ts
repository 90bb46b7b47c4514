/**
 * Random requests to two services, each a process of its own: one on SQLite, one on PostgreSQL. The last tests show that
 * the rules for their responses can fail.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import * as fc from 'fast-check';
import { serve } from '../support/command.ts';
import { rounds, sizeOf } from '../support/rounds.ts';
import { storageNames, testDatabase } from '../support/storages.ts';
import { wrongsOf } from './fuzz/answers.ts';
import { endure, mangled } from './fuzz/bytes.ts';
import { judge, operationOf, wrongsOfOperation } from './fuzz/document.ts';
import { utf8Bytes, type Request } from './fuzz/request.ts';
import { groups } from './fuzz/requests.ts';
import { withstand, type Counts, type Target } from './fuzz/session.ts';
import { answerIn, type Answer } from './fuzz/wire.ts';

/** Clients that send at once, each to stores of its own. */
const lanes = sizeOf({ usual: 4, long: 16 });
const each = 60;
/** A failure is made smaller for so long and no longer. */
const bounded = { interruptAfterTimeLimit: 60_000, markInterruptAsFailure: true };

/** Sends until all services together have answered so many times. */
async function run<T>(
  t: TestContext,
  { answers, seed }: { answers: number; seed: number },
  arbitrary: fc.Arbitrary<T>,
  send: (all: T, counts: Counts) => Promise<void>,
): Promise<void> {
  const counts: Counts = {};
  const total = () => Object.values(counts).reduce((sum, count) => sum + count, 0);
  const property = fc.asyncProperty(arbitrary, (all) => send(all, counts));
  const lane = async (first: number) => {
    // A seed for each turn, because fast-check takes the number of turns and not of requests.
    for (let turn = first; total() < answers; turn += lanes) {
      await fc.assert(property, { seed: seed + turn, numRuns: 1, ...bounded });
    }
  };
  await Promise.all(Array.from({ length: lanes }, (_, at) => lane(at)));
  t.diagnostic(`${total()} answers, none of 5xx: ${JSON.stringify(counts)}`);
}

test('two services, on SQLite and on PostgreSQL', async (suite) => {
  const targets = await Promise.all(storageNames.map((name) => start(suite, name)));

  await suite.test('respond to random requests as documented, and in the same way', (t) =>
    rounds(t, (inner, seed) => {
      const answers = sizeOf({ usual: 1_200, long: 5_000 });
      return run(inner, { answers, seed }, groups(each), (all, counts) =>
        withstand(targets, all, counts),
      );
    }),
  );

  await suite.test('respond correctly to random bytes', (t) =>
    rounds(t, (inner, seed) => {
      const answers = sizeOf({ usual: 600, long: 5_000 });
      return run(inner, { answers, seed }, mangled(each), (all, counts) =>
        endure(targets, all, counts),
      );
    }),
  );
});

async function start(t: TestContext, name: (typeof storageNames)[number]): Promise<Target> {
  const database = await testDatabase(t, name);
  // Most requests have no valid token, on purpose.
  const settings = ['--auth-failure-limit', 'off'];
  const { address } = await serve(t, ['--database', database.url, ...settings]);
  return { port: Number(new URL(address).port), database: database.url };
}

function requestOf(line: string, body = ''): Request {
  const [method = '', target = ''] = line.split(' ');
  const length = ['Content-Length', String(utf8Bytes(body).length)] as const;
  const ofBody = body === '' ? [] : [['Content-Type', 'application/json'] as const, length];
  const headers = [['Host', 'x'] as const, ...ofBody];
  return { method, target, version: '1.1', headers, body: utf8Bytes(body) };
}

const ids = `X-Request-Id: 6f0c11d2-0a3e-4a55-9c3b-0d1c7a9e4b21\r\nDate: Sat, 21 Nov 2026 22:00:00 GMT`;

function bytesOf(status: number, json: unknown, headers = ids): string {
  const type = status < 400 ? 'application/json' : 'application/problem+json';
  const body = JSON.stringify(json);
  return `HTTP/1.1 ${status} X\r\n${headers}\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

function problem(status: number, kind: string, more = {}): string {
  const type = `/problems/${kind}`;
  return bytesOf(status, { type, title: 'Title', status, detail: 'It is so.', ...more });
}

/** What is wrong with a response, of which a fault of its framing is the only one. */
function wrongsIn(line: string, bytes: string): string[] {
  const request = requestOf(line, line === 'POST /plants' ? '{"name":"New"}' : '');
  const match = operationOf(request) ?? assert.fail(line);
  let first: { answer: Answer; rest: string } | undefined;
  try {
    first = answerIn(bytes, request.method);
  } catch (error) {
    return [String(error)];
  }
  if (first === undefined || first.rest !== '') return ['a response that is too short or too long'];
  return [
    ...wrongsOf(first.answer, { method: request.method, secrets: ['secret'] }),
    ...wrongsOfOperation(request, match, first.answer, judge(request, match)),
  ];
}

const [list, create, remove] = ['GET /plants', 'POST /plants', 'DELETE /plants/1'];
const location = `${ids}\r\nLocation: /plants/6\r\nETag: "New"\r\nChange-Position: 7`;
const created = bytesOf(201, { name: 'New', tag: '' }, location);
const plants = bytesOf(200, [{ name: 'Ficus', tag: '' }]);
const removed = `HTTP/1.1 204 No Content\r\n${ids}\r\nChange-Position: 8\r\n\r\n`;
const missing = problem(404, 'plant-not-found');

const wrong: Record<string, [line: string, bytes: string]> = {
  'a plant of another user': [list, bytesOf(200, [{ name: 'secret', tag: '' }])],
  'an undocumented member': [list, bytesOf(200, [{ name: 'a', tag: '', store: 'x' }])],
  'another media type': [list, plants.replace('application/json', 'text/html')],
  'an undocumented status': [list, missing],
  'a refusal of a valid request': [create, problem(400, 'invalid-request')],
  'the success of an invalid one': ['GET /plants?limit=0', plants],
  'a creation without an address': [create, created.replace('Location', 'X')],
  'no id of the request': [list, plants.replace('X-Request-Id', 'X')],
  '500': [create, problem(500, 'internal-error')],
  '401 without a challenge': [list, problem(401, 'invalid-token')],
  'another status in the problem': [remove, problem(404, 'plant-not-found', { status: 400 })],
  'a stack': [remove, problem(404, 'plant-not-found', { detail: 'x\n    at f (app.ts:1:1).' })],
  'a token': [remove, problem(404, 'plant-not-found', { detail: 'No plant_0123456789abc.' })],
  'a body that is too short': [list, plants.slice(0, -1)],
  'a second response': [list, plants + plants],
  'two lengths': [list, plants.replace('Content-Type', 'Content-Length: 2\r\nContent-Type')],
  'a length of a 204': [remove, removed.replace(ids, `${ids}\r\nContent-Length: 0`)],
  'lines that end in LF': [list, plants.replaceAll('\r\n', '\n')],
};

test('the fuzzer refuses wrong responses', () => {
  for (const [what, [line, bytes]] of Object.entries(wrong))
    assert.notDeepEqual(wrongsIn(line, bytes), [], what);
});
