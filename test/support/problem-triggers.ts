/**
 * One way to cause each kind of problem: a client error, or a failure below the service.
 */
import { once } from 'node:events';
import { request as requestWithHeaders } from 'node:http';
import { connect, createServer } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { scopes, type Scope } from '../../src/access/access.ts';
import { maxActiveTokens } from '../../src/access/own-tokens.ts';
import { maxGivenShares } from '../../src/access/share-storage.ts';
import { maxBodyBytes } from '../../src/http/limits.ts';
import { handleClientError } from '../../src/http/server/client-errors.ts';
import { Connections } from '../../src/http/server/connections.ts';
import { Verifier } from '../../src/oidc/verifier.ts';
import { tooManyWrites, type ProblemKind } from '../../src/problem.ts';
import { maxWebhooks } from '../../src/webhooks/webhook.ts';
import { problemOf, resultCode } from '../../src/sqlite/errors.ts';
import {
  limitedTo,
  override,
  startApp,
  type Answer,
  type CallOptions,
  type TestApp,
} from './app.ts';
import { listen } from './listen.ts';
import { addGivenShares } from './many-rows.ts';
import { startProvider } from './provider.ts';
import { exchange, request } from './raw.ts';
import { idOf } from './tokens.ts';

type Cleanup = Pick<TestContext, 'after'>;

export interface ProblemResponse {
  status: number;
  body: string;
}

const plant = { name: 'Monstera', tag: 'indoor' };
const maxPlants = 2;

/** An app that fails to create a plant if its name is one of these. */
const failures: Record<string, unknown> = {
  'internal-error': new TypeError('a defect'),
  overloaded: tooManyWrites(),
  'storage-full': problemOf(sqliteError(resultCode.full), 'before-commit'),
  'outcome-unknown': problemOf(sqliteError(resultCode.ioError), 'commit'),
};

export function startFailingApp(t: Cleanup): Promise<TestApp> {
  return startApp(t, {
    quotas: { perUser: maxPlants, perStore: undefined },
    wrap: (storage) =>
      override(storage, {
        plants: {
          create: async (caller, wanted, ...others) => {
            if (wanted.name in failures) throw failures[wanted.name];
            return storage.plants.create(caller, wanted, ...others);
          },
        },
      }),
  });
}

/** Causes each kind of problem, in a store of its own. */
export async function causeProblem(
  t: Cleanup,
  app: TestApp,
  kind: ProblemKind,
): Promise<ProblemResponse> {
  return triggers[kind](await aliceOf(app, kind), t);
}

type Alice = Awaited<ReturnType<typeof aliceOf>>;

/** The caller of most requests, whose token allows everything. */
async function aliceOf(app: TestApp, store = 'main') {
  const another = (user = 'alice', allowed: readonly Scope[] = scopes) =>
    app.token(user, { store, scopes: allowed });
  const token = await another();
  const send = async (method: string, target: string, options: CallOptions = {}) => {
    return responseOf(await app.call(method, target, { token, ...options }));
  };
  const create = (json: object = plant, headers = {}) => send('POST', '/plants', { json, headers });
  const manage = () => app.token('alice', { store, role: 'manager' });
  return { app, token, another, send, create, manage };
}

type Trigger = (alice: Alice, t: Cleanup) => Promise<ProblemResponse>;

const triggers: Record<ProblemKind, Trigger> = {
  'invalid-request': (alice) => alice.create({ name: '', tga: 'indoor' }),
  'invalid-token': ({ app }) => app.call('GET', '/plants').then(responseOf),
  'insufficient-scope': async (alice) => {
    const token = await alice.another('alice', ['plants:read']);
    return alice.send('POST', '/plants', { token, json: plant });
  },
  'token-restricted': async (alice) => {
    const { body } = await alice.send('POST', '/tokens');
    const { token }: { token: string } = JSON.parse(body);
    return alice.send('DELETE', `/tokens/${idOf(alice.token)}`, { token });
  },
  'manager-required': async (alice) =>
    alice.send('GET', '/users', { token: await alice.another('bob', ['users:write']) }),
  'plant-read-only': async (alice) => {
    await alice.create();
    await alice.send('PUT', '/shares/bob', { json: { access: 'read' } });
    return alice.send('DELETE', '/plants/1', { token: await alice.another('bob') });
  },
  'quota-exceeded': async (alice) => {
    for (let plants = 0; plants < maxPlants; plants++) await alice.create();
    return alice.create();
  },
  'cursor-ended': async (alice) => {
    const cursor = '0.0.0.all'; // of a manager
    return alice.send('GET', `/changes?after=${cursor}`);
  },
  'changes-not-kept': async (_, t) => {
    const app = await startApp(t, { keepChangesMs: 0 });
    return (await aliceOf(app)).send('GET', '/changes');
  },
  'plant-not-found': (alice) => alice.send('GET', '/plants/42'),
  'precondition-failed': async (alice) => {
    await alice.create({ ...plant, id: 42 });
    const options = { json: { tag: 'outdoor' }, headers: { 'if-match': '"earlier"' } };
    return alice.send('PATCH', '/plants/42', options);
  },
  'idempotency-key-reused': async (alice) => {
    const headers = { 'idempotency-key': '"key"' };
    await alice.create(plant, headers);
    return alice.create({ name: 'another' }, headers);
  },
  'share-not-found': (alice) => alice.send('DELETE', '/shares/bob'),
  'too-many-shares': async (_, t) => {
    const app = await startApp(t);
    const alice = await aliceOf(app);
    execute(app, addGivenShares(maxGivenShares));
    return alice.send('PUT', '/shares/bob', { json: { access: 'read' } });
  },
  'token-not-found': (alice) => alice.send('DELETE', '/tokens/000000001-22894e9580395e64'),
  'too-many-tokens': async (alice) => {
    for (let tokens = 0; tokens < maxActiveTokens; tokens++) await alice.another();
    return alice.send('POST', '/tokens');
  },
  'user-not-found': async (alice) => {
    await alice.manage();
    return alice.send('DELETE', '/users/bob');
  },
  'last-manager': async (alice) => {
    await alice.manage();
    return alice.send('PUT', '/users/alice', { json: { role: 'member' } });
  },
  'user-owns-plants': async (alice) => {
    await alice.manage();
    await alice.send('POST', '/plants', { json: plant, token: await alice.another('bob') });
    return alice.send('DELETE', '/users/bob');
  },
  'invitation-used': async (alice) => {
    await alice.manage();
    const { body } = await alice.send('POST', '/users/bob/tokens', { json: { invitation: {} } });
    const { token }: { token: string } = JSON.parse(body);
    await alice.send('POST', '/tokens', { token });
    return alice.send('POST', '/tokens', { token });
  },
  'webhook-not-found': async (_, t) => {
    const alice = await aliceOf(await startApp(t, { webhookNetworks: ['public'] }));
    return alice.send('DELETE', '/webhooks/5f2c8d0e9b1a4c37');
  },
  'webhooks-disabled': (alice) => alice.send('GET', '/webhooks'),
  'too-many-webhooks': async (_, t) => {
    const alice = await aliceOf(await startApp(t, { webhookNetworks: ['public'] }));
    const json = { url: 'https://receiver.example/plants' };
    for (let webhooks = 0; webhooks < maxWebhooks; webhooks++) {
      await alice.send('POST', '/webhooks', { json });
    }
    return alice.send('POST', '/webhooks', { json });
  },
  'path-not-found': (alice) => alice.send('GET', '/plant'),
  'method-not-allowed': (alice) => alice.send('PUT', '/plants', { json: plant }),
  // Node reports this after 30 seconds, so this calls its handler directly, on a real connection.
  'request-timeout': async (_, t) => {
    const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    const server = createServer((socket) =>
      handleClientError(late, socket, new Connections(() => undefined), ''),
    );
    const port = await listen(t, server);
    return parseResponse(await text(connect({ host: '127.0.0.1', port })));
  },
  'id-taken': async (alice) => {
    await alice.create({ ...plant, id: 42 });
    return alice.create({ ...plant, id: 42 });
  },
  'body-too-large': (alice) => alice.send('POST', '/plants', { json: ' '.repeat(maxBodyBytes) }),
  'unsupported-media-type': (alice) => {
    const headers = { 'content-type': 'text/plain' };
    return alice.send('POST', '/plants', { body: 'name=Monstera', headers });
  },
  // fetch sends no Expect.
  'expectation-failed': async ({ app }) => {
    const headers = { expect: 'a pony' };
    const sent = requestWithHeaders(`${app.address}/plants`, { headers }).end();
    const [response] = await once(sent, 'response');
    return { status: response.statusCode, body: await text(response) };
  },
  'rate-limited': async (_, t) => {
    const limits = limitedTo({ requests: 1, windowSeconds: 1 });
    const alice = await aliceOf(await startApp(t, { limits }));
    for (;;) {
      const answer = await alice.send('GET', '/plants');
      if (answer.status !== 200) return answer;
    }
  },
  'headers-too-large': (alice) =>
    alice.send('GET', '/plants', { headers: { 'x-long': 'a'.repeat(17_000) } }),
  'method-not-implemented': async ({ app }) =>
    parseResponse(await exchange(app.port, request('FLY /plants', ['Host: x']))),
  'version-not-supported': async ({ app }) =>
    parseResponse(await exchange(app.port, 'GET /plants HTTP/2.0\r\nHost: x\r\n\r\n')),
  'internal-error': (alice) => alice.create({ name: 'internal-error' }),
  overloaded: (alice) => alice.create({ name: 'overloaded' }),
  'storage-full': (alice) => alice.create({ name: 'storage-full' }),
  'storage-unavailable': async (_, t) => {
    const app = await startApp(t);
    const alice = await aliceOf(app);
    execute(app, 'ALTER TABLE plants RENAME TO gone');
    return alice.send('GET', '/plants');
  },
  'provider-unavailable': async (_, t) => {
    const provider = await startProvider(t);
    const token = await provider.sign();
    await provider.stop();
    const app = await startApp(t, { verifier: new Verifier(provider.options()) });
    return responseOf(await app.call('GET', '/plants', { token }));
  },
  'outcome-unknown': (alice) => alice.create({ name: 'outcome-unknown' }),
};

/** Changes the database behind the back of the service. */
function execute({ database }: TestApp, statement: string): void {
  using other = new DatabaseSync(database.url.slice('sqlite:'.length));
  other.exec(statement);
}

function parseResponse(received: string): ProblemResponse {
  const [head = '', body = ''] = received.split('\r\n\r\n');
  return { status: Number(head.split(' ')[1]), body };
}

/** An error as the driver throws it. */
function sqliteError(errcode: number): Error {
  return Object.assign(new Error('of the driver'), { code: 'ERR_SQLITE_ERROR', errcode });
}

function responseOf({ status, text: body }: Answer): ProblemResponse {
  return { status, body };
}
