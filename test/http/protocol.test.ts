/**
 * What only bytes can say: broken requests, missing and repeated headers.
 */
import assert from 'node:assert/strict';
import { startApp } from '../support/app.ts';
import { it } from '../support/storages.ts';
import { exchange, request } from '../support/raw.ts';

/** Status, headers in lower case and problem of an answer. */
function read(answer: string) {
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(lines.map((line) => line.toLowerCase().split(/: ?(.*)/s)));
  return { status: Number(statusLine.split(' ')[1]), headers, problem: JSON.parse(body) };
}

const broken: Record<string, [bytes: string, status: number]> = {
  'bytes that are not HTTP': ['hello\r\n\r\n', 400],
  'an unknown method': [request('FLY /plants', ['Host: x']), 400],
  'no Host': [request('GET /plants', []), 400],
  'two Hosts': [request('GET /plants', ['Host: a', 'Host: b']), 400],
  'two lengths': [
    request('POST /plants', ['Host: x', 'Content-Length: 1', 'Content-Length: 2'], 'ab'),
    400,
  ],
  'a length and chunks': [
    request('POST /plants', ['Host: x', 'Content-Length: 1', 'Transfer-Encoding: chunked'], 'a'),
    400,
  ],
  'a broken escape in the path': [request('GET /plants/%zz', ['Host: x']), 400],
  'headers above 16 KiB': [
    request('GET /plants', ['Host: x', `X-Big: ${'a'.repeat(20_000)}`]),
    431,
  ],
  'a URL above 16 KiB': [request(`GET /plants?tag=${'a'.repeat(20_000)}`, ['Host: x']), 431],
  'an expectation that is not known': [
    request('POST /plants', ['Host: x', 'Expect: miracles', 'Content-Length: 0']),
    417,
  ],
};

for (const [what, [bytes, status]] of Object.entries(broken)) {
  it(`answers ${what} with ${status}, a problem and a request id`, async (t) => {
    const { port } = await startApp(t);
    const answer = read(await exchange(port, bytes));
    assert.equal(answer.status, status);
    assert.match(String(answer.headers['content-type']), /^application\/problem\+json/);
    assert.match(String(answer.headers['x-request-id']), /^[0-9a-f-]{36}$/);
    assert.equal(answer.problem.status, status);
    assert.ok(answer.problem.detail.length > 20);
  });
}

it('answers OPTIONS * for the service as a whole', async (t) => {
  const { port } = await startApp(t);
  const answer = await exchange(port, request('OPTIONS *', ['Host: x']));
  assert.match(answer, /^HTTP\/1\.1 204 /);
  assert.match(answer, /^allow: DELETE, GET, HEAD, OPTIONS, POST\r$/m);
});

it('goes on after a refused request on the same connection', async (t) => {
  const { port, token } = await startApp(t);
  const authorization = `Authorization: Bearer ${await token('alice')}`;
  const body = '{"name":1}';
  const type = 'Content-Type: application/json';
  const refused = `POST /plants HTTP/1.1\r\nHost: x\r\n${authorization}\r\n${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const answer = await exchange(port, refused + request('GET /plants', ['Host: x', authorization]));
  assert.match(answer, /^HTTP\/1\.1 400 /);
  assert.match(answer, /HTTP\/1\.1 200 OK[\s\S]*\[\]$/);
});

it('answers a sound request, and that one alone, where garbage follows it', async (t) => {
  const { port, token, call } = await startApp(t);
  const alice = await token('alice');
  const headers = ['Host: x', `Authorization: Bearer ${alice}`, 'Content-Type: application/json'];
  const body = '{"name":"a"}';
  const sound = `POST /plants HTTP/1.1\r\n${headers.join('\r\n')}\r\nContent-Length: 12\r\n\r\n${body}`;
  const followers = ['GARBAGE\r\n\r\n', request('GET /', ['Host: x', `X: ${'a'.repeat(20_000)}`])];
  for (const follower of followers) {
    const answer = await exchange(port, sound + follower);
    assert.equal(answer.match(/HTTP\/1\.1 /g)?.length, 1);
    assert.match(answer, /^HTTP\/1\.1 201 Created\r\n[^]*\{"name":"a","tag":""\}$/);
  }
  const { json } = await call('GET', '/plants', { token: alice });
  assert.equal((json as unknown[]).length, followers.length);
});

it('knows a path by its whole address too', async (t) => {
  const { port } = await startApp(t);
  const answer = await exchange(port, request('PUT http://x/plants', ['Host: x']));
  assert.match(answer, /^HTTP\/1\.1 405 /);
});

it('answers a request whose body breaks off, and does not wait for it', async (t) => {
  const { port, token, call } = await startApp(t);
  const alice = await token('alice');
  const headers = ['Host: x', `Authorization: Bearer ${alice}`, 'Content-Type: application/json'];
  const chunked = [...headers, 'Transfer-Encoding: chunked'];
  const answer = await exchange(port, request('POST /plants', chunked, 'ZZ\r\n{}\r\n'));
  assert.match(answer, /^HTTP\/1\.1 400 /);
  assert.equal((await call('GET', '/plants', { token: alice })).text, '[]');
});
