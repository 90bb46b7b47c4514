/**
 * A real identity provider, oidc-provider, on loopback. Tests can rotate its keys, stop it, and make it misbehave.
 */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { exportJWK, generateKeyPair, SignJWT, type JWK, type JWTPayload } from 'jose';
import { Provider } from 'oidc-provider';
import { scopes } from '../../src/access/access.ts';
import type { OidcOptions } from '../../src/oidc/options.ts';

export const audience = 'https://plants.example';

/** The page as a public client of the provider. */
export interface PageClient {
  /** Where it is. */
  url: string;
  /** How long its access tokens are valid. */
  lifetimeSeconds: number;
}

/** A private key of the provider. */
export type SigningKey = JWK & { kid: string; alg: string };

export async function makeKey(kid: string, alg = 'RS256', more: JWK = {}): Promise<SigningKey> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true });
  return { ...(await exportJWK(privateKey)), kid, alg, use: 'sig', ...more };
}

export const sendJson =
  (value: unknown): RequestListener =>
  (_request, response) =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify(value));

export async function weakKey(kid = 'first'): Promise<JWK> {
  const { publicKey } = await generateKeyPair('RS256', { modulusLength: 2_048, extractable: true });
  const jwk = await exportJWK(publicKey);
  return { ...jwk, n: Buffer.alloc(128, 0xc1).toString('base64url'), kid };
}

export class TestProvider {
  readonly port: number;
  readonly issuer: string;
  /** What the provider signs with: the first one by default. */
  keys: readonly SigningKey[];
  /** Responds instead of the provider. */
  instead: RequestListener | undefined;
  /** The paths of the requests so far. */
  readonly requests: string[] = [];
  readonly #server: Server;
  #respond: RequestListener = () => {};

  constructor(server: Server, keys: readonly SigningKey[]) {
    this.#server = server;
    const { port } = server.address() as AddressInfo; // it listens on a port
    this.port = port;
    this.issuer = `http://127.0.0.1:${port}`;
    this.keys = keys;
    server.on('request', (request, response) => {
      this.requests.push(request.url ?? '');
      (this.instead ?? this.#respond)(request, response);
    });
    this.publish(keys);
  }

  /** Replaces the keys of the provider. With a page, people can sign in on it. */
  publish(keys: readonly JWK[], page?: PageClient): void {
    this.#respond = new Provider(this.issuer, configurationFor(keys, page)).callback();
  }

  /** An access token that the provider issues to a client. */
  async requestToken(scope: string): Promise<string> {
    const response = await fetch(`${this.issuer}/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa('robot:secret')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', scope }),
    });
    const { access_token: token } = (await response.json()) as { access_token: string };
    return token;
  }

  /** An access token for a user, signed with a key of the provider. */
  async sign(claims: object = {}, header: object = {}, key = this.keys[0]): Promise<string> {
    if (key === undefined) throw new Error('the provider has no key');
    return new SignJWT({ ...this.claims(), ...claims })
      .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: 'at+jwt', ...header })
      .sign(key);
  }

  /** Sends the metadata of the provider, and responds to requests for keys with `keys`. */
  withKeys(keys: RequestListener): RequestListener {
    const metadata = sendJson({ issuer: this.issuer, jwks_uri: `${this.issuer}/jwks` });
    return (asked, response) =>
      (asked.url?.startsWith('/.well-known') ? metadata : keys)(asked, response);
  }

  /** The claims of an access token for alice. */
  claims(): JWTPayload {
    const now = Math.floor(Date.now() / 1_000);
    return {
      iss: this.issuer,
      aud: audience,
      sub: 'alice',
      client_id: 'app',
      iat: now,
      exp: now + 600,
      jti: crypto.randomUUID(),
      scope: scopes.join(' '),
    };
  }

  options(more: Partial<OidcOptions> = {}): OidcOptions {
    const { issuer } = this;
    const names = { userClaim: 'sub', store: 'main', scopePrefix: '' };
    return { issuer, audience, tokenType: 'at+jwt', ...names, ...more };
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async start(): Promise<void> {
    await once(this.#server.listen(this.port, '127.0.0.1'), 'listening');
  }
}

/** All providers of a process have it: making one takes long. */
let firstKey: Promise<SigningKey> | undefined;

/** Starts a provider with one key, and stops it after the test. */
export async function startProvider(t: Pick<TestContext, 'after'>): Promise<TestProvider> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const provider = new TestProvider(server, [await (firstKey ??= makeKey('first'))]);
  t.after(() => provider.stop());
  return provider;
}

function configurationFor(keys: readonly JWK[], page?: PageClient) {
  const api = {
    audience,
    scope: scopes.join(' '),
    accessTokenFormat: 'jwt',
    jwt: { sign: { alg: keys[0]?.alg } },
    ...(page && { accessTokenTTL: page.lifetimeSeconds }),
  };
  const robot = {
    client_id: 'robot',
    client_secret: 'secret',
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
    id_token_signed_response_alg: keys[0]?.alg,
  };
  const pageClient = {
    client_id: 'page',
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
    redirect_uris: [page?.url],
  };
  return {
    jwks: { keys },
    clients: page === undefined ? [robot] : [robot, pageClient],
    clientBasedCORS: () => true,
    issueRefreshToken: () => true,
    cookies: { keys: ['a secret of this test'] },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: page !== undefined },
      encryption: { enabled: true },
      requestObjects: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => audience,
        getResourceServerInfo: () => api,
        useGrantedResource: () => true,
      },
    },
  };
}
