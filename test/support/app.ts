/**
 * The service in this process, on a real socket and with its own database.
 */
import assert from 'node:assert/strict';
import type { Resolver } from 'node:dns/promises';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { pino, type Logger } from 'pino';
import { defaultScopes, type Role, type Scope } from '../../src/access/access.ts';
import { buildApp } from '../../src/http/app.ts';
import type { Limits } from '../../src/http/auth/request-limits.ts';
import type { Quotas } from '../../src/plants/quota.ts';
import { TokenBuckets, type Rate } from '../../src/shared/token-buckets.ts';
import type { PageSignOn } from '../../src/oidc/options.ts';
import type { Verifier } from '../../src/oidc/verifier.ts';
import type { Storage } from '../../src/storage.ts';
import { lookupIn, openPost } from '../../src/webhooks/networks.ts';
import { createSender } from '../../src/webhooks/sender.ts';
import { testDatabase, type TestDatabase } from './storages.ts';

export interface TestApp {
  address: string;
  port: number;
  storage: Storage;
  database: TestDatabase;
  /** Closes the app, as a shutdown does. The end of the test would do it too. */
  close: () => PromiseLike<void>;
  /** Creates a token, and its user and store if needed. */
  token: (user: string, options?: TokenOptions) => Promise<string>;
  /** Sends requests with this token. */
  as: (token: string) => Send;
  /** Creates a token, and sends requests with it. */
  user: (name: string, options?: TokenOptions) => Promise<Send>;
  /** Sends a request with `token` in its Authorization header, and `json` as its body. */
  call: Send;
}

export type Send = (method: string, target: string, options?: CallOptions) => Promise<Answer>;

export interface TokenOptions {
  store?: string;
  role?: Role;
  scopes?: readonly Scope[];
  expiresAtMs?: number;
}

export interface CallOptions {
  token?: string;
  json?: unknown;
  body?: string | Uint8Array<ArrayBuffer>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** The parsed body; undefined if it is not JSON. */
  json: unknown;
}

/** Starts the app, and closes it after the test. */
export async function startApp(
  t: Pick<TestContext, 'after'>,
  options: {
    baseUrl?: string;
    corsOrigins?: readonly string[];
    limits?: Limits;
    log?: Logger;
    quotas?: Quotas;
    keepChangesMs?: number | undefined;
    verifier?: Verifier;
    signOn?: PageSignOn;
    stopping?: AbortSignal;
    /** Sends to webhooks in these networks. */
    webhookNetworks?: readonly string[];
    /** Finds the addresses of their names. */
    resolver?: Resolver;
    /** Opens another storage instead of the test's empty database. */
    open?: () => Promise<Storage>;
    wrap?: (storage: Storage) => Storage;
    /** Adds routes for the test. */
    addRoutes?: (app: FastifyInstance) => void;
  } = {},
): Promise<TestApp> {
  const database = await testDatabase(t);
  const { quotas, keepChangesMs } = options;
  const real = await (options.open?.() ?? database.open({ quotas, keepChangesMs }));
  const storage = options.wrap?.(real) ?? real;
  const log = options.log ?? pino({ level: 'silent' });
  const { webhookNetworks, resolver } = options;
  const post = webhookNetworks && openPost(webhookNetworks, lookupIn(resolver));
  const webhooks = post && createSender(storage, post, log);
  const stop = new AbortController();
  const sending = webhooks?.run(stop.signal);
  const app = buildApp({
    storage,
    log,
    webhooks,
    baseUrl: options.baseUrl ?? '',
    corsOrigins: options.corsOrigins ?? [],
    limits: options.limits ?? {},
    verifier: options.verifier,
    signOn: options.signOn,
    stopping: options.stopping ?? new AbortController().signal,
  });
  options.addRoutes?.(app);
  await app.listen({ host: '127.0.0.1', port: 0 });
  t.after(async () => {
    app.server.closeAllConnections();
    await app.close();
    stop.abort();
    await sending;
    await real[Symbol.asyncDispose]();
  });
  const { port } = app.server.address() as AddressInfo; // it listens on a port
  const address = `http://127.0.0.1:${port}`;
  const send: Send = (method, target, callOptions) => call(address + target, method, callOptions);
  const as: TestApp['as'] = (token) => (method, target, callOptions) =>
    send(method, target, { token, ...callOptions });
  const token: TestApp['token'] = (user, wanted) => addToken(storage, user, wanted);
  const user: TestApp['user'] = async (name, wanted) => as(await token(name, wanted));
  return {
    address,
    port,
    storage,
    database,
    close: () => app.close(),
    token,
    as,
    user,
    call: send,
  };
}

let newStores = 0;

/** The app with a new store, so that tests can share an app: their users and ids are their own. */
export function inNewStore(app: TestApp): TestApp & { store: string } {
  const store = `store ${++newStores}`;
  const token: TestApp['token'] = (user, options) => app.token(user, { store, ...options });
  const user: TestApp['user'] = async (name, options) => app.as(await token(name, options));
  return { ...app, store, token, user };
}

/** A limit on the rate of requests, counted by this process. */
export function limitedTo(rate: Rate): Limits {
  return { requests: new TokenBuckets(rate) };
}

export async function addToken(
  storage: Storage,
  user: string,
  { store = 'main', role, scopes: wanted = defaultScopes, expiresAtMs }: TokenOptions = {},
): Promise<string> {
  const { token } = await storage.identity.createToken({
    store,
    user,
    role,
    scopes: wanted,
    label: '',
    createdAtMs: Date.now(),
    expiresAtMs,
  });
  return token;
}

export async function call(
  url: string,
  method: string,
  { token, json, body, headers, signal }: CallOptions = {},
): Promise<Answer> {
  const response = await fetch(url, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(json !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    body: json === undefined ? (body ?? null) : JSON.stringify(json),
    signal: signal ?? null,
  });
  const text = await response.text();
  const isJson = text !== '' && /\bjson\b/.test(response.headers.get('content-type') ?? '');
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: isJson ? JSON.parse(text) : undefined,
  };
}

/** The target of `Link`: the next page of a list. */
export function nextOf({ headers }: Answer): string {
  const [, target] = /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '') ?? [];
  return target ?? assert.fail('there is no Link');
}

type Part = 'plants' | 'identity' | 'shares' | 'users' | 'log' | 'webhooks';

/** The storage with other methods in some of its parts. */
export function override(
  storage: Storage,
  methods: { [P in Part]?: Partial<Storage[P]> } & Partial<Pick<Storage, 'check'>>,
): Storage {
  return {
    plants: withMethods(storage.plants, methods.plants),
    identity: withMethods(storage.identity, methods.identity),
    shares: withMethods(storage.shares, methods.shares),
    users: withMethods(storage.users, methods.users),
    log: withMethods(storage.log, methods.log),
    webhooks: withMethods(storage.webhooks, methods.webhooks),
    check: methods.check ?? (() => storage.check()),
    checkWrites: (store, needsSpace) => storage.checkWrites(store, needsSpace),
    figures: () => storage.figures(),
    [Symbol.asyncDispose]: () => storage[Symbol.asyncDispose](),
  };
}

function withMethods<P extends object>(part: P, methods: Partial<P> = {}): P {
  return new Proxy(part, {
    get(target, name) {
      const value: unknown = Reflect.get(name in methods ? methods : target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
