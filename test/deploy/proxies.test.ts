/**
 * The service behind nginx, and in the long test behind each reverse proxy of docs/how-to/deploy.md: it behaves as
 * without one, over TLS.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, it, type TestContext } from 'node:test';
import { createGunzip } from 'node:zlib';
import { problemType } from '../../src/http/response/problems.ts';
import { problemKinds, type ProblemKind } from '../../src/problem.ts';
import type { Storage } from '../../src/storage.ts';
import { override, startApp } from '../support/app.ts';
import {
  clientOf,
  getOverHttp2,
  missing,
  reverseProxyNames,
  startReverseProxy,
  type ProxyResponse,
  type ReverseProxyName,
} from '../support/reverse-proxies.ts';
import { sizeOf } from '../support/rounds.ts';
import { until } from '../support/until.ts';

const listLength = 2_000;
const gzip = { headers: { 'accept-encoding': 'gzip' } };
const largestBody = '{"name":"Monstera"}'.padEnd(16_384);

/** Paths in which a proxy could find other segments than the service. Everybody can resolve a plain ".." (RFC 3986). */
const rawPaths = [
  '/shares/..%2Fplants%2F1',
  '/shares/%2e%2e%2fplants%2f1',
  '/shares/%2e%2e/plants/1',
  '/shares/%252e%252e%252Fplants%252F1',
  '/shares/a%2Fb',
  '/shares/.%2F1',
  '/plants/1%3Ffields=id?fields=name',
  '/..%2Fplants%2F1',
];

const usual: readonly ReverseProxyName[] = ['nginx'];
for (const name of sizeOf({ usual, long: reverseProxyNames })) testProxy(name);

/** Adds the tests of the service behind this proxy. */
function testProxy(name: ReverseProxyName): void {
  const skip = missing(name);
  describe(`behind ${name}`, { skip, concurrency: 2 }, () => {
    it('serves HTTP/1.1 and HTTP/2 with the headers of the service, over one connection to it', async (t) => {
      const { proxy, send, token, served } = await start(t, name);
      const created = await send('POST', '/plants?fields=id', { body: '{"name":"Monstera"}' });
      assert.equal(created.status, 201);
      assert.equal(created.headers.location, '/plants/1');
      assert.match(String(created.headers['x-request-id']), /^[0-9a-f-]{36}$/);
      assert.equal((await send('DELETE', '/plants/1')).status, 204);
      for (let at = 0; at < 20; at++) assert.equal((await send('GET', '/plants')).status, 200);
      const reads = served.filter(({ method }) => method === 'GET');
      assert.equal(new Set(reads.map(({ port }) => port)).size, 1);
      const [status, body] = await getOverHttp2(t, proxy, token);
      assert.deepEqual([status, body], [200, '[]']);
    });

    it('accepts every request that the service accepts, and no larger one', async (t) => {
      const { send } = await start(t, name);
      const post = async (body: string, headers: Record<string, string> = {}) =>
        send('POST', '/plants', { body, headers });
      // The headers of both are 16,384 bytes together with those that the proxy and the test add.
      assert.equal((await post(largestBody, { 'x-fill': 'a'.repeat(15_700) })).status, 201);
      assertProblem(await post(`${largestBody} `), 'body-too-large');
      assertProblem(await post('{}'.padEnd(1_000_000)), 'body-too-large');
      const tooLarge = { 'x-fill': 'a'.repeat(16_400) };
      assertProblem(await post(largestBody, tooLarge), 'headers-too-large');
      const long = await send('GET', `/plants?tag=${'a'.repeat(17_000)}`);
      assertProblem(long, 'headers-too-large');
      const json = '{"name":"Ficus"}';
      assert.equal((await post(json, { expect: '100-continue' })).status, 201);
      const created = await post(json, { 'transfer-encoding': 'chunked' });
      assert.deepEqual([created.status, created.body], [201, '{"name":"Ficus","tag":""}']);
      assert.equal(created.headers['keep-alive'], undefined, 'no hint of a replica');
      assert.equal((await post(json)).status, 201);
    });

    for (const isCompressed of [false, true]) {
      it(`passes a ${isCompressed ? 'compressed' : 'long'} list on as the service sends it`, async (t) => {
        const { pause, open } = await startWithList(t, name);
        const options = isCompressed ? gzip : {};
        const response = await open('GET', '/plants?fields=id,name', options);
        let bytes = 0;
        response.on('data', (chunk: Buffer) => (bytes += chunk.length));
        let received = '';
        const plain = response.pipe(isCompressed ? createGunzip() : new PassThrough());
        plain.setEncoding('utf8').on('data', (chunk) => (received += String(chunk)));
        const lastId = await pause.begun;
        // Of a compressed list, Caddy 2.6 waits until it has a full block, and HAProxy keeps a few bytes.
        const id = !isCompressed || name === 'nginx' ? lastId : name === 'Caddy' ? 0 : lastId - 5;
        await until('the client has it', () => id === 0 || received.includes(`{"id":${id},`));
        pause.end();
        await once(plain, 'end');
        assert.equal(JSON.parse(received).length, listLength);
        if (!isCompressed) return;
        const { vary, etag, 'content-encoding': encoding } = response.headers;
        assert.deepEqual([encoding, vary, etag], ['gzip', 'Accept-Encoding', undefined]);
        assert.ok(bytes < received.length / 5, `${bytes} of ${received.length} bytes`);
      });
    }

    it('compresses only what is long and has no secret, for those who accept it', async (t) => {
      const { pause, send } = await startWithList(t, name);
      pause.end();
      assert.equal((await send('GET', '/plants')).headers['content-encoding'], undefined);
      const page = await send('GET', '/plants?limit=1000', gzip);
      assert.equal(page.headers['content-encoding'], 'gzip');
      for (const [method, path, body] of [
        ['GET', '/plants?limit=1'],
        ['GET', '/plants/2'],
        ['POST', '/plants', '{"name":"Monstera"}'],
        ['POST', '/tokens', '{}'],
      ] as const) {
        if (name === 'HAProxy' && path.includes('limit')) continue; // its version 2.6 looks at no length
        const answer = await send(method, path, { ...gzip, ...(body !== undefined && { body }) });
        assert.equal(answer.headers['content-encoding'], undefined, `${method} ${path}`);
        assert.ok(JSON.parse(answer.body));
      }
    });

    it('shows that a list broke off', async (t) => {
      const { pause, open, stop } = await startWithList(t, name);
      const response = await open('GET', '/plants?fields=id,name');
      await pause.begun;
      await stop();
      pause.end();
      let received = '';
      response.setEncoding('utf8').on('data', (chunk) => (received += String(chunk)));
      const ended = once(response, 'end');
      if (name === 'Caddy')
        await ended; // Caddy 2.6 ends it like a complete one
      else await assert.rejects(ended, { code: 'ECONNRESET' });
      assert.throws(() => void JSON.parse(received), SyntaxError);
    });

    for (const prefix of ['', '/api']) {
      it(`passes on a path as the client sent it${prefix && ', below /api too'}`, async (t) => {
        const seen: (string | undefined)[] = [];
        const app = await startApp(t, {
          baseUrl: `https://plants.example${prefix}`,
          addRoutes: ({ server }) =>
            server.prependListener('request', ({ url }: IncomingMessage) => seen.push(url)),
        });
        const proxy = await startReverseProxy(t, name, app.port, prefix !== '');
        const { send } = clientOf(t, proxy, await app.token('alice'));
        for (const path of rawPaths) {
          seen.length = 0;
          const { status = 0 } = await send('DELETE', prefix + path);
          assert.ok(status >= 400, `${path}: ${status}`);
          const passedOn = seen.filter((url) => url !== '/readyz');
          // A proxy can refuse a path that leads above the root.
          assert.deepEqual(passedOn, passedOn.length === 0 ? [] : [path]);
          assert.ok(passedOn.length > 0 || /\.\.|%2e/i.test(path), path);
        }
        if (prefix !== '') await assertServesBelow(name, send);
      });
    }

    it('names its client, and nothing that the client invents', async (t) => {
      const limits = {
        authFailures: { requests: 1, windowSeconds: 3_600 },
        trustedProxies: ['127.0.0.1'],
      };
      const app = await startApp(t, { limits });
      const proxy = await startReverseProxy(t, name, app.port);
      const invented = { 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.2' };
      for (const localAddress of ['127.0.0.2', '127.0.0.3']) {
        const { send } = clientOf(t, proxy, 'invalid', localAddress);
        assert.equal((await send('GET', '/plants', { headers: invented })).status, 401);
        assert.equal((await send('GET', '/plants')).status, 429);
        const other = { 'x-forwarded-for': '192.0.2.3, 127.0.0.1' };
        assert.equal((await send('GET', '/plants', { headers: other })).status, 429);
      }
    });

    it('never sends a change twice', async (t) => {
      const state = { isDying: false };
      const { send, served } = await start(t, name, state);
      for (const [method, path] of [
        ['POST', '/plants'],
        ['DELETE', '/plants/1'],
      ] as const) {
        state.isDying = false;
        assert.equal((await send('GET', '/plants')).status, 200); // so that a connection is open
        state.isDying = true;
        const answer = await send(
          method,
          path,
          method === 'POST' ? { body: largestBody } : {},
        ).catch(() => undefined);
        // If a connection that was used before breaks, HAProxy closes that of the client too.
        if (answer === undefined) assert.equal(name, 'HAProxy');
        else {
          assertProblem(answer, 'outcome-unknown');
          assert.equal(answer.headers['retry-after'], '1');
        }
        assert.equal(served.filter((one) => one.method === method).length, 1);
      }
    });

    it('returns 503 with the reason while the service is not running', async (t) => {
      const { stop, send } = await start(t, name);
      await stop();
      let answer: ProxyResponse | undefined;
      await until('the proxy has noticed', async () => {
        answer = await send('POST', '/plants', { body: '{"name":"Monstera"}' });
        return name !== 'HAProxy' || !answer.body.includes('outcome-unknown'); // it checks each 0.5 s
      });
      assert.ok(answer);
      assertProblem(answer, 'storage-unavailable');
      assert.equal(answer.headers['retry-after'], '1');
    });

    if (name === 'HAProxy') return; // it has no port without TLS
    it('redirects the page to TLS, but no request with a token', async (t) => {
      const { proxy, token } = await start(t, name);
      const { httpPort: port } = proxy;
      const plain = async (path: string) => {
        const headers = { host: 'plants.example', authorization: `Bearer ${token}` };
        const sent = httpRequest({ host: '127.0.0.1', port, path, headers }).end();
        const [response] = (await once(sent, 'response')) as [IncomingMessage];
        response.resume();
        return [response.statusCode, response.headers.location];
      };
      assert.deepEqual(await plain('/plants'), [403, undefined]);
      const [status = 0, location] = await plain('/');
      assert.deepEqual(
        [Math.floor(Number(status) / 100), location],
        [3, 'https://plants.example/'],
      );
    });
  });
}

/** Asserts that the service is below the path of its public address, and nowhere else. */
async function assertServesBelow(
  name: ReverseProxyName,
  send: ReturnType<typeof clientOf>['send'],
): Promise<void> {
  const created = await send('POST', '/api/plants', { body: '{"name":"Monstera"}' });
  const { location = '' } = created.headers;
  assert.equal(location, 'https://plants.example/api/plants/1');
  assert.equal((await send('GET', new URL(location).pathname)).status, 200);
  assert.equal((await send('GET', '/api/plants?limit=1&fields=id')).body, '[{"id":1}]');
  for (const path of ['/plants', '/other/api/plants', '/apiplants', '/api.example/plants']) {
    const { status, body } = await send('GET', path);
    // Below its other paths, nginx has the files of a folder, which is empty here.
    assert.ok(status === (name === 'nginx' ? 403 : 404) && !body.includes('"'), path);
  }
  const { status, headers } = await send('GET', '/api');
  assert.equal(status, 301);
  assert.equal(new URL(headers.location ?? '', 'https://plants.example').pathname, '/api/');
  assert.match(String((await send('GET', '/api/')).headers['content-type']), /^text\/html/);
}

function assertProblem({ status, headers, body }: ProxyResponse, kind: ProblemKind): void {
  const expected = { type: problemType(kind, ''), ...pick(problemKinds[kind]) };
  assert.equal(status, expected.status, body);
  assert.equal(headers['content-type'], 'application/problem+json');
  const { type, title, status: shown } = JSON.parse(body);
  assert.deepEqual({ type, title, status: shown }, expected);
}

const pick = ({ title, status }: { title: string; status: number }) => ({ title, status });

interface Faults {
  /** Where the service pauses in a list. */
  pause?: Pause;
  /** The service dies when it gets a change. */
  isDying?: boolean;
}

async function start(t: TestContext, name: ReverseProxyName, faults: Faults = {}) {
  /** The requests that reached the service, and the client ports of their connections. */
  const served: { method: string | undefined; port: number | undefined }[] = [];
  let stop = async () => {};
  const app = await startApp(t, {
    wrap: (storage) => pausing(storage, faults.pause),
    addRoutes: ({ server }) => {
      stop = async () => {
        server.close().closeAllConnections();
        await once(server, 'close');
      };
      server.prependListener('request', ({ method, url, socket }: IncomingMessage) => {
        if (url === '/readyz') return;
        served.push({ method, port: socket.remotePort });
        if (faults.isDying === true && method !== 'GET') socket.destroy();
      });
    },
  });
  const token = await app.token('alice');
  const proxy = await startReverseProxy(t, name, app.port);
  return { app, stop, proxy, token, served, ...clientOf(t, proxy, token) };
}

/** With a list that is sent in several parts; the service pauses before it reads the last ones. */
async function startWithList(t: TestContext, name: ReverseProxyName) {
  const pause = new Pause();
  const started = await start(t, name, { pause });
  await started.send('POST', '/plants', { body: '{"name":"Monstera"}' });
  const more = Array.from({ length: listLength - 1 }, (_, at) => at + 2);
  await started.app.database.fill(more.map((id) => ({ id, tag: '', name: 'M'.repeat(200) })));
  return { ...started, pause };
}

/** A pause in the middle of a list. */
class Pause {
  readonly #begun = Promise.withResolvers<number>();
  readonly #end = Promise.withResolvers<void>();
  readonly end = this.#end.resolve;
  /** The id of the last plant before the pause. */
  readonly begun = this.#begun.promise;

  async at(id: number): Promise<void> {
    this.#begun.resolve(id);
    await this.#end.promise;
  }
}

function pausing(storage: Storage, pause: Pause | undefined): Storage {
  let batches = 0;
  return override(storage, {
    plants: {
      list: async (caller, query) => {
        if (++batches === 5) await pause?.at(Number(query.after));
        return storage.plants.list(caller, query);
      },
    },
  });
}

it(
  'nginx logs the request id of the service, and no query',
  { skip: missing('nginx') },
  async (t) => {
    const { proxy, send } = await start(t, 'nginx');
    const { headers } = await send('GET', '/plants?tag=secret');
    const id = String(headers['x-request-id']);
    await send('GET', '/livez');
    const log = readFileSync(join(proxy.folder, 'plant-store.log'), 'utf8');
    assert.match(log, new RegExp(`"GET /plants" 200 \\d+ [\\d.]+ ${id}\n`));
    assert.ok(!log.includes('secret'));
  },
);
