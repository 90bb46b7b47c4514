/**
 * The public keys of the identity provider. They are fetched when the service starts, when a token names an unknown
 * key, and from time to time to notice that a key was withdrawn. Known keys remain in use if a fetch fails.
 */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { JWK } from 'jose';
import { Problem } from '../problem.ts';
import { fetchIntervalMs, fetchKeys } from './fetch.ts';

/** Older keys are fetched again, and remain in use meanwhile. */
const maxAgeMs = 5 * 60_000;
const maxKeys = 100;
/** Weaker keys can be broken, and larger ones cost too much time. */
const minRsaBits = 2_048;
const maxRsaBits = 8_192;

/** RSA, and the curves of the other allowed algorithms. */
const usableTypes = ['RSA', 'P-256', 'P-384', 'P-521', 'Ed25519'];

export interface ProviderKey {
  readonly key: KeyObject;
  /** The only algorithm that the key is for; undefined if the provider names none. */
  readonly alg: string | undefined;
}

/** Called after each fetch. `failure` is undefined if it succeeded, and `unusable` describes unusable keys. */
export type OnFetch = (failure: unknown, unusable: readonly string[]) => void;

export class ProviderKeys {
  readonly #issuer: string;
  readonly #onFetch: OnFetch;
  /** Stale for 5 minutes: an operator who withdraws a key notices that its tokens are still accepted. */
  #keys: ReadonlyMap<string, ProviderKey> = new Map();
  #version = 0;
  #fetching: Promise<void> | undefined;
  /** When the last successful fetch began. */
  #fetchedMs = -Infinity;
  #nextFetchMs = 0;
  /** Why the last fetch failed; undefined if it succeeded. */
  #failure: unknown;

  constructor(issuer: string, onFetch: OnFetch) {
    this.#issuer = issuer;
    this.#onFetch = onFetch;
  }

  /** Changes when a key was withdrawn or replaced: what it has signed must be verified again. */
  get version(): number {
    return this.#version;
  }

  /** Fetches the keys in the background unless they are new. */
  refresh(): void {
    if (performance.now() < this.#fetchedMs + maxAgeMs) return;
    this.#fetch().catch(() => {}); // onFetch has the reason
  }

  /**
   * The key with this id; undefined if the provider has none. An unknown key waits for a fetch that begins after this
   * call, because the provider may just have added it. Rejects with a Problem if the provider does not respond.
   */
  async find(id: string): Promise<ProviderKey | undefined> {
    const askedMs = performance.now();
    this.refresh();
    while (!this.#keys.has(id) && this.#fetchedMs < askedMs) await this.#fetch();
    return this.#keys.get(id);
  }

  /** All callers share one fetch. After a failed one, calls fail immediately until the next one is due. */
  async #fetch(): Promise<void> {
    if (this.#failure !== undefined && performance.now() < this.#nextFetchMs) {
      throw providerUnavailable(this.#failure);
    }
    this.#fetching ??= this.#fetchNext().finally(() => (this.#fetching = undefined));
    await this.#fetching;
  }

  async #fetchNext(): Promise<void> {
    await pause(Math.max(0, this.#nextFetchMs - performance.now()));
    const startedMs = performance.now();
    this.#nextFetchMs = startedMs + fetchIntervalMs;
    try {
      const { keys, faults } = parseKeys(await fetchKeys(this.#issuer));
      const isSame = ([id, { key }]: [string, ProviderKey]) => keys.get(id)?.key.equals(key);
      if (![...this.#keys].every(isSame)) this.#version++;
      this.#keys = keys;
      this.#fetchedMs = startedMs;
      this.#failure = undefined;
      this.#onFetch(undefined, faults);
    } catch (error) {
      this.#failure = error;
      this.#onFetch(error, []);
      throw providerUnavailable(error);
    }
  }
}

function providerUnavailable(cause: unknown): Problem {
  return new Problem(
    'provider-unavailable',
    'The identity provider does not respond, so the token cannot be verified. Try again later.',
    { cause },
  );
}

/**
 * The keys for signatures by their ids. Skips keys that cannot be used, as RFC 7517 asks. Throws if no key is left,
 * because such a response must not replace the keys in use.
 */
function parseKeys(answer: unknown): { keys: Map<string, ProviderKey>; faults: string[] } {
  const list = typeof answer === 'object' && answer !== null && 'keys' in answer && answer.keys;
  if (!Array.isArray(list) || list.length > maxKeys) {
    throw new Error(`the response is not a set of at most ${maxKeys} keys`);
  }
  const keys = new Map<string, ProviderKey>();
  const faults: string[] = [];
  for (const jwk of list as unknown[]) {
    if (!isForSignatures(jwk)) continue;
    try {
      keys.set(jwk.kid, keyOf(jwk));
    } catch (error) {
      faults.push(`${jwk.kid}: ${String(error)}`);
    }
  }
  if (keys.size === 0) {
    throw new Error(['the response has no usable key for signatures', ...faults].join('; '));
  }
  return { keys, faults };
}

function keyOf(jwk: JWK): ProviderKey {
  const key = createPublicKey({ key: jwk, format: 'jwk' });
  const { modulusLength: bits = minRsaBits } = key.asymmetricKeyDetails ?? {};
  if (bits < minRsaBits || bits > maxRsaBits) throw new Error(`it has ${bits} bits`);
  return { key, alg: typeof jwk.alg === 'string' ? jwk.alg : undefined };
}

/** `createPublicKey` checks the other members. */
function isForSignatures(value: unknown): value is JWK & { kid: string } {
  if (typeof value !== 'object' || value === null) return false;
  const { kid, kty, crv, use, key_ops: operations }: JWK = value;
  if (typeof kid !== 'string' || (use !== undefined && use !== 'sig')) return false;
  if (Array.isArray(operations) && !operations.includes('verify')) return false;
  return usableTypes.includes((kty === 'RSA' ? kty : crv) ?? '');
}
