/**
 * One way to cause each kind of problem: a client error, or a failure below the service.
 */
import { once } from 'node:events';
import { request as requestWithHeaders } from 'node:http';
import { connect, createServer, type AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { scopes } from '../../src/access/access.ts';
import { inParallel } from '../../src/client/in-parallel.ts';
import { handleClientError } from '../../src/http/server/client-errors.ts';
import { Connections } from '../../src/http/server/connections.ts';
import { maxBodyBytes } from '../../src/http/limits.ts';
import { Verifier } from '../../src/oidc/verifier.ts';
import { maxActiveTokens } from '../../src/access/own-tokens.ts';
import { tooManyWrites, type ProblemKind } from '../../src/problem.ts';
import { maxGivenShares } from '../../src/access/share-storage.ts';
import { problemOf, resultCode } from '../../src/sqlite/errors.ts';
import type { Storage } from '../../src/storage.ts';
import { limitedTo, override, startApp, type CallOptions } from './app.ts';
import { exchange, request } from './raw.ts';
import { startProvider } from './provider.ts';
import { idOf } from './tokens.ts';

type Cleanup = Pick<TestContext, 'after'>;

export interface ProblemResponse {
  status: number;
  body: string;
}

const plant = { name: 'Monstera', tag: 'indoor' };

export const problemTriggers: Record<ProblemKind, (t: Cleanup) => Promise<ProblemResponse>> = {
  'invalid-request': (t) => send(t, 'POST', '/plants', { json: { name: '', tga: 'indoor' } }),
  'invalid-token': async (t) => {
    const app = await startApp(t);
    return responseOf(await app.call('GET', '/plants'));
  },
  'insufficient-scope': async (t) => {
    const app = await startApp(t);
    const token = await app.token('alice', { scopes: ['plants:read'] });
    return responseOf(await app.call('POST', '/plants', { token, json: plant }));
  },
  'token-restricted': async (t) => {
    const app = await startApp(t);
    const parent = await app.token('alice');
    const { json } = await app.call('POST', '/tokens', { token: parent });
    const { token } = json as { token: string }; // the service has sent it
    return responseOf(await app.call('DELETE', `/tokens/${idOf(parent)}`, { token }));
  },
  'plant-read-only': async (t) => {
    const app = await startApp(t);
    const alice = await app.token('alice', { scopes });
    await app.call('POST', '/plants', { token: alice, json: plant });
    await app.call('PUT', '/shares/bob', { token: alice, json: { access: 'read' } });
    return responseOf(await app.call('DELETE', '/plants/1', { token: await app.token('bob') }));
  },
  'quota-exceeded': async (t) => {
    const app = await startApp(t, { quotas: { perUser: 2, perStore: undefined } });
    const options = { token: await app.token('alice'), json: plant };
    for (let plants = 0; plants < 2; plants++) await app.call('POST', '/plants', options);
    return responseOf(await app.call('POST', '/plants', options));
  },
  'plant-not-found': (t) => send(t, 'GET', '/plants/42'),
  'precondition-failed': async (t) => {
    const app = await startApp(t);
    const token = await app.token('alice');
    await app.call('POST', '/plants', { token, json: { ...plant, id: 42 } });
    const headers = { 'if-match': '"earlier"' };
    const options = { token, json: { tag: 'outdoor' }, headers };
    return responseOf(await app.call('PATCH', '/plants/42', options));
  },
  'idempotency-key-reused': async (t) => {
    const app = await startApp(t);
    const headers = { 'idempotency-key': '"key"' };
    const token = await app.token('alice');
    await app.call('POST', '/plants', { token, json: plant, headers });
    const json = { name: 'another' };
    return responseOf(await app.call('POST', '/plants', { token, json, headers }));
  },
  'share-not-found': async (t) => {
    const app = await startApp(t);
    const token = await app.token('alice', { scopes: ['shares:write'] });
    return responseOf(await app.call('DELETE', '/shares/bob', { token }));
  },
  'too-many-shares': async (t) => {
    const app = await startApp(t);
    const token = await app.token('alice', { scopes: ['shares:write'] });
    const { store = 0 } = await app.storage.identity.findNames({ store: 'main', user: 'alice' });
    const others = Array.from({ length: maxGivenShares }, (_, at) => `user ${at}`);
    const share = (user: string) =>
      app.storage.shares.set(store, { owner: 'alice', user, access: 'read' }, 0);
    await Array.fromAsync(inParallel(others, 16, share));
    return responseOf(await app.call('PUT', '/shares/bob', { token, json: { access: 'read' } }));
  },
  'token-not-found': (t) => send(t, 'DELETE', '/tokens/000000001-22894e9580395e64'),
  'too-many-tokens': async (t) => {
    const app = await startApp(t);
    const token = await app.token('alice');
    for (let tokens = 1; tokens < maxActiveTokens; tokens++) await app.token('alice');
    return responseOf(await app.call('POST', '/tokens', { token }));
  },
  'path-not-found': (t) => send(t, 'GET', '/plant'),
  'method-not-allowed': (t) => send(t, 'PUT', '/plants', { json: plant }),
  // Node reports this after 30 seconds, so this calls its handler directly, on a real connection.
  'request-timeout': async (t) => {
    const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    const server = createServer((socket) =>
      handleClientError(late, socket, new Connections(() => undefined), ''),
    );
    t.after(() => server.close());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo; // it listens on a port
    return parseResponse(await text(connect({ host: '127.0.0.1', port })));
  },
  'id-taken': async (t) => {
    const app = await startApp(t);
    const options = { token: await app.token('alice'), json: { ...plant, id: 42 } };
    await app.call('POST', '/plants', options);
    return responseOf(await app.call('POST', '/plants', options));
  },
  'body-too-large': (t) => send(t, 'POST', '/plants', { json: ' '.repeat(maxBodyBytes) }),
  'unsupported-media-type': (t) =>
    send(t, 'POST', '/plants', {
      body: 'name=Monstera',
      headers: { 'content-type': 'text/plain' },
    }),
  // fetch sends no Expect.
  'expectation-failed': async (t) => {
    const { address } = await startApp(t);
    const sent = requestWithHeaders(`${address}/plants`, { headers: { expect: 'a pony' } }).end();
    const [response] = await once(sent, 'response');
    return { status: response.statusCode, body: await text(response) };
  },
  'rate-limited': async (t) => {
    const app = await startApp(t, { limits: limitedTo({ requests: 1, windowSeconds: 1 }) });
    const token = await app.token('alice');
    for (;;) {
      const answer = await app.call('GET', '/plants', { token });
      if (answer.status !== 200) return responseOf(answer);
    }
  },
  'headers-too-large': (t) =>
    send(t, 'GET', '/plants', { headers: { 'x-long': 'a'.repeat(17_000) } }),
  'method-not-implemented': (t) => exchangeWith(t, request('FLY /plants', ['Host: x'])),
  'version-not-supported': (t) => exchangeWith(t, 'GET /plants HTTP/2.0\r\nHost: x\r\n\r\n'),
  'internal-error': (t) => failing(t, new TypeError('a defect')),
  overloaded: (t) => failing(t, tooManyWrites()),
  'storage-full': (t) => failing(t, problemOf(sqliteError(resultCode.full), 'before-commit')),
  'storage-unavailable': async (t) => {
    const app = await startApp(t);
    const token = await app.token('alice');
    const other = new DatabaseSync(app.database.url.slice('sqlite:'.length));
    other.exec('ALTER TABLE plants RENAME TO gone');
    other.close();
    return responseOf(await app.call('GET', '/plants', { token }));
  },
  'provider-unavailable': async (t) => {
    const provider = await startProvider(t);
    const token = await provider.sign();
    await provider.stop();
    const app = await startApp(t, { verifier: new Verifier(provider.options()) });
    return responseOf(await app.call('GET', '/plants', { token }));
  },
  'outcome-unknown': (t) => failing(t, problemOf(sqliteError(resultCode.ioError), 'commit')),
};

/** The response to one request with a valid token. */
async function send(
  t: Cleanup,
  method: string,
  target: string,
  options: CallOptions = {},
): Promise<ProblemResponse> {
  const app = await startApp(t);
  const token = await app.token('alice');
  return responseOf(await app.call(method, target, { token, ...options }));
}

/** The response to these bytes. */
async function exchangeWith(t: Cleanup, bytes: string): Promise<ProblemResponse> {
  const { port } = await startApp(t);
  return parseResponse(await exchange(port, bytes));
}

function parseResponse(received: string): ProblemResponse {
  const [head = '', body = ''] = received.split('\r\n\r\n');
  return { status: Number(head.split(' ')[1]), body };
}

/** The response to creating a plant, if the storage rejects with this error. */
async function failing(t: Cleanup, error: unknown): Promise<ProblemResponse> {
  const wrap = (storage: Storage): Storage =>
    override(storage, { plants: { create: () => Promise.reject(error) } });
  const app = await startApp(t, { wrap });
  const token = await app.token('alice');
  return responseOf(await app.call('POST', '/plants', { token, json: plant }));
}

/** An error as the driver throws it. */
function sqliteError(errcode: number): Error {
  return Object.assign(new Error('of the driver'), { code: 'ERR_SQLITE_ERROR', errcode });
}

function responseOf({ status, text: body }: { status: number; text: string }): ProblemResponse {
  return { status, body };
}
