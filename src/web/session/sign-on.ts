/**
 * Signs in through the identity provider: authorization code with PKCE (RFC 7636, RFC 9700). The page is a public
 * client without a secret. The refresh token is in the session storage of this tab, beside the access token.
 */
import { maxRequestMs } from '../../client/call.ts';
import { recall, remember } from '../shared/remember.ts';
import { leaving, serviceUrl } from './connection.ts';

/** What the service puts into the page if it has an identity provider (src/http/routes/web.ts). */
interface Settings {
  issuer: string;
  clientId: string;
  /** What the page requests, separated by spaces. */
  scope: string;
}

/** What the page needs when the provider sends the user back. */
interface Pending {
  state: string;
  nonce: string;
  verifier: string;
  /** The part of the address after `#`. */
  hash: string;
}

/** Clocks of phones and computers can be wrong. */
const clockSkewSeconds = 300;
const base64url = { alphabet: 'base64url', omitPadding: true } as const;
const pendingKey = `plant-store.sign-on ${serviceUrl.pathname}`;
const refreshKey = `plant-store.refresh ${serviceUrl.pathname}`;

/** Why signing in failed, for the person who tried. */
export class SignOnFailed extends Error {
  override readonly name = 'SignOnFailed';
}

export class SignOn {
  readonly #settings: Settings;
  /** The name of the provider for people. */
  readonly host: string;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.host = new URL(settings.issuer).host;
  }

  /** Undefined if the service has no provider for the page. */
  static ofPage(): SignOn | undefined {
    const settings = document.querySelector<HTMLMetaElement>('meta[name="sign-on"]')?.content;
    return settings === undefined ? undefined : new SignOn(JSON.parse(settings));
  }

  /** Leaves the page for the provider, which sends the user back. Throws a SignOnFailed. */
  async start(): Promise<void> {
    const { clientId, scope } = this.#settings;
    const endpoint = await this.#endpoint('authorization_endpoint');
    const pending: Pending = {
      state: randomText(),
      nonce: randomText(),
      verifier: randomText(),
      hash: location.hash,
    };
    remember(pendingKey, JSON.stringify(pending));
    endpoint.search = new URLSearchParams([
      ...endpoint.searchParams,
      ['response_type', 'code'],
      ['client_id', clientId],
      ['redirect_uri', serviceUrl.href],
      ['scope', scope],
      ['state', pending.state],
      ['nonce', pending.nonce],
      ['code_challenge', await challengeOf(pending.verifier)],
      ['code_challenge_method', 'S256'],
    ]).toString();
    location.assign(endpoint);
  }

  /** The access token if the provider has just sent the user back, else undefined. Throws a SignOnFailed. */
  async finish(): Promise<string | undefined> {
    const answer = new URLSearchParams(location.search);
    const [state, code, error] = ['state', 'code', 'error'].map((name) => answer.get(name));
    if (state == null || (code == null && error == null)) return undefined;
    const pending: Pending | null = JSON.parse(recall(pendingKey) ?? 'null');
    remember(pendingKey, undefined);
    history.replaceState(null, '', location.pathname + (pending?.hash ?? ''));
    const { issuer, clientId } = this.#settings;
    if (state !== pending?.state || (answer.get('iss') ?? issuer) !== issuer) {
      throw new SignOnFailed('This sign-in was not started in this tab. Sign in again.');
    }
    if (code == null) throw new SignOnFailed(`${this.host} did not sign you in: ${error}.`);
    const tokens = await this.#request({
      grant_type: 'authorization_code',
      code,
      redirect_uri: serviceUrl.href,
      code_verifier: pending.verifier,
    });
    // It comes from the provider itself, over TLS, so its signature needs no check (OpenID Connect Core, 3.1.3.7).
    const { iss, aud, azp, exp, nonce } = claimsOf(tokens['id_token']);
    const audiences: unknown[] = [aud].flat();
    const party = azp ?? (audiences.length === 1 ? audiences[0] : undefined);
    const isForPage = audiences.includes(clientId) && party === clientId;
    if (iss !== issuer || !isForPage || nonce !== pending.nonce) {
      throw new SignOnFailed('The response of the provider is for another sign-in. Sign in again.');
    }
    if (typeof exp !== 'number' || Date.now() / 1_000 >= exp + clockSkewSeconds) {
      throw new SignOnFailed(
        `The response of ${this.host} has expired. Check the clock of this device, and sign in again.`,
      );
    }
    return accessTokenOf(tokens);
  }

  /** Another access token without the user; undefined if they did not sign in here. Throws a SignOnFailed. */
  async refresh(): Promise<string | undefined> {
    const token = recall(refreshKey);
    if (token === undefined) return undefined;
    const parameters = { grant_type: 'refresh_token', refresh_token: token };
    return accessTokenOf(await this.#request(parameters));
  }

  async #request(parameters: Record<string, string>): Promise<Record<string, unknown>> {
    const endpoint = await this.#endpoint('token_endpoint');
    const body = new URLSearchParams({ ...parameters, client_id: this.#settings.clientId });
    return this.#fetchJson(endpoint, { method: 'POST', body });
  }

  async #endpoint(name: string): Promise<URL> {
    const issuer = this.#settings.issuer.replace(/\/$/, '');
    const metadata = await this.#fetchJson(`${issuer}/.well-known/openid-configuration`);
    const url = URL.parse(String(metadata[name]));
    const isWeb = url !== null && ['https:', 'http:'].includes(url.protocol);
    if (metadata['issuer'] !== this.#settings.issuer || !isWeb) {
      throw new SignOnFailed(
        `${this.host} is not set up as the service expects. Tell the person who runs it.`,
      );
    }
    return url;
  }

  async #fetchJson(url: string | URL, init: RequestInit = {}): Promise<Record<string, unknown>> {
    const signal = AbortSignal.any([AbortSignal.timeout(maxRequestMs), leaving.signal]);
    const response = await fetch(url, { ...init, signal, credentials: 'omit' }).catch(() => {
      throw new SignOnFailed(
        `${this.host} does not respond, or does not accept this page. Try again later.`,
      );
    });
    const json: unknown = await response.json().catch(() => undefined);
    if (!response.ok || typeof json !== 'object' || json === null) {
      throw new SignOnFailed(`${this.host} refused the request. Sign in again.`);
    }
    return { ...json };
  }
}

/** Forgets what outlives the access token. */
export function forgetSignOn(): void {
  remember(refreshKey, undefined);
  remember(pendingKey, undefined);
}

/** A provider that rotates refresh tokens sends another one each time. */
function accessTokenOf({ access_token: access, refresh_token: refresh }: Record<string, unknown>) {
  if (typeof access !== 'string') throw new SignOnFailed('The provider sent no access token.');
  if (typeof refresh === 'string') remember(refreshKey, refresh);
  return access;
}

/** The claims of a JWT, unverified; none if it is not one. */
function claimsOf(token: unknown): Record<string, unknown> {
  try {
    const [, payload = ''] = String(token).split('.');
    return JSON.parse(new TextDecoder().decode(Uint8Array.fromBase64(payload, base64url)));
  } catch {
    return {};
  }
}

function randomText(): string {
  return crypto.getRandomValues(new Uint8Array(32)).toBase64(base64url);
}

async function challengeOf(verifier: string): Promise<string> {
  // Browsers have it only on pages from HTTPS, and from this machine.
  if (!isSecureContext) throw new SignOnFailed('Signing in needs HTTPS.');
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  return new Uint8Array(digest).toBase64(base64url);
}
