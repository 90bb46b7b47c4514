/**
 * The public keys of the identity provider. They are fetched when the service starts, when a token names an unknown
 * key, and from time to time to notice that a key was withdrawn. Known keys remain in use if a fetch fails.
 */
import { createPublicKey } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { createLocalJWKSet, type CryptoKey, type JWK, type JWSHeaderParameters } from 'jose';
import { Problem } from '../problem.ts';
import { isProtected, maxAgeMs } from './options.ts';

/** Time from the start of one fetch to the next, and so the maximum time to fetch the metadata and the keys. */
export const fetchIntervalMs = 3_000;
/** Maximum length of a response, uncompressed. */
const maxResponseChars = 256 * 1024;
/** Weaker keys can be broken, and larger ones cost too much time. */
const minRsaBits = 2_048;
const maxRsaBits = 8_192;

/** Called after each fetch. `failure` is undefined if it succeeded, and `unusable` describes unusable keys. */
export type OnFetch = (failure: unknown, unusable: readonly string[]) => void;

export class ProviderKeys {
  readonly #issuer: string;
  readonly #onFetch: OnFetch;
  /** Stale for `maxAgeMs`: an operator who withdraws a key notices that its tokens are still accepted. */
  #keys = createLocalJWKSet({ keys: [] });
  #fetching: Promise<void> | undefined;
  /** When the last successful fetch began. */
  #fetchedMs = -Infinity;
  #nextFetchMs = 0;

  constructor(issuer: string, onFetch: OnFetch) {
    this.#issuer = issuer;
    this.#onFetch = onFetch;
  }

  /** Fetches the keys in the background unless they are new. */
  refresh(): void {
    if (performance.now() < this.#fetchedMs + maxAgeMs) return;
    this.#fetch().catch(() => {}); // onFetch has the reason
  }

  /**
   * The key for this id and algorithm; undefined if the provider has none. An unknown key waits for a fetch that begins
   * after this call, because the provider may just have added it. Rejects with a Problem if the provider does not
   * respond.
   */
  async find(header: JWSHeaderParameters): Promise<CryptoKey | undefined> {
    const askedMs = performance.now();
    this.refresh();
    for (;;) {
      const key = await this.#keys(header).catch(() => undefined); // it rejects if no key, or not one alone, matches
      if (key !== undefined || this.#fetchedMs >= askedMs) return key;
      await this.#fetch();
    }
  }

  /** All callers share one fetch. */
  #fetch(): Promise<void> {
    return (this.#fetching ??= this.#fetchNext().finally(() => (this.#fetching = undefined)));
  }

  async #fetchNext(): Promise<void> {
    await pause(Math.max(0, this.#nextFetchMs - performance.now()));
    const startedMs = performance.now();
    this.#nextFetchMs = startedMs + fetchIntervalMs;
    try {
      const { keys, faults } = usableKeys(await fetchKeys(this.#issuer));
      this.#keys = createLocalJWKSet({ keys });
      this.#fetchedMs = startedMs;
      this.#onFetch(undefined, faults);
    } catch (cause) {
      this.#onFetch(cause, []);
      const detail =
        'The identity provider does not respond, so the token cannot be verified. Try again later.';
      throw new Problem('provider-unavailable', detail, { cause });
    }
  }
}

/** Fetches the keys by OpenID Connect Discovery. Throws if the provider does not respond as it should. */
async function fetchKeys(issuer: string): Promise<Record<string, unknown>> {
  const signal = AbortSignal.timeout(fetchIntervalMs);
  try {
    const metadataAddress = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const { issuer: named, jwks_uri: address } = await fetchJson(metadataAddress, signal);
    if (named !== issuer) throw new Error(`the issuer of the metadata is ${JSON.stringify(named)}`);
    // A provider elsewhere must not make the service send requests to this machine.
    const isOnSameNetwork = String(address).startsWith(`${new URL(issuer).protocol}//`);
    if (typeof address !== 'string' || !isProtected(address) || !isOnSameNetwork) {
      throw new Error(`the jwks_uri of the metadata is ${JSON.stringify(address)}`);
    }
    return await fetchJson(address, signal);
  } catch (cause) {
    if (!signal.aborted) throw cause;
    const reason = `the provider does not respond within ${fetchIntervalMs / 1_000} s`;
    throw new Error(reason, { cause });
  }
}

/** The provider or a network in between may be broken or hostile, so the length is limited, and redirects are refused. */
async function fetchJson(address: string, signal: AbortSignal): Promise<Record<string, unknown>> {
  const headers = { accept: 'application/json' };
  const { status, body } = await fetch(address, { headers, signal, redirect: 'error' });
  if (status !== 200 || body === null) throw new Error(`${address} responds with status ${status}`);
  let text = '';
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (text.length > maxResponseChars) throw new Error(`${address} sends too much`); // this cancels the rest
  }
  return Object(JSON.parse(text));
}

/**
 * The keys that can be used (RFC 7517), and what is wrong with the others. Throws if no key is left, because such a
 * response must not replace the keys in use.
 */
function usableKeys({ keys: listed }: Record<string, unknown>) {
  const keys: JWK[] = [];
  const faults: string[] = [];
  for (const jwk of Array.isArray(listed) ? listed : []) {
    try {
      const { asymmetricKeyDetails } = createPublicKey({ key: jwk, format: 'jwk' });
      const bits = asymmetricKeyDetails?.modulusLength ?? minRsaBits;
      if (bits < minRsaBits || bits > maxRsaBits) throw new Error(`it has ${bits} bits`);
      keys.push(jwk);
    } catch (error) {
      faults.push(`${jwk?.kid}: ${String(error)}`);
    }
  }
  if (keys.length === 0) throw new Error(['the response has no usable key', ...faults].join('; '));
  return { keys, faults };
}
