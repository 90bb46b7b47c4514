/**
 * Verifies the JWTs of an identity provider as access tokens (RFC 9068, RFC 8725). Only keys that the provider
 * publishes are trusted: nothing in a token can add a key.
 */
import {
  decodeProtectedHeader,
  errors,
  jwtVerify,
  type CryptoKey,
  type JWTVerifyOptions,
  type ProtectedHeaderParameters,
} from 'jose';
import type { Credential } from '../access/access.ts';
import { hashToken } from '../access/token.ts';
import { claimChecksOf, claimsOf, refused } from './claims.ts';
import { ProviderKeys, type OnFetch } from './keys.ts';
import type { OidcOptions, TokenType } from './options.ts';

/** Longer tokens are refused. */
export const maxTokenChars = 12_288;

const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

/** The values of the header `typ`, in lower case and without `application/`. */
const acceptedTypes: Record<TokenType, readonly unknown[]> = {
  'at+jwt': ['at+jwt'],
  jwt: ['at+jwt', 'jwt', undefined],
};

export class Verifier {
  readonly #options: OidcOptions;
  readonly #checks: JWTVerifyOptions;
  readonly #keys: ProviderKeys;

  constructor(options: OidcOptions, onFetch: OnFetch = () => {}) {
    this.#options = options;
    this.#checks = { ...claimChecksOf(options), algorithms };
    this.#keys = new ProviderKeys(options.issuer, onFetch);
  }

  /** Fetches the keys in the background, so that the first token does not wait for them. */
  start(): void {
    this.#keys.refresh();
  }

  /**
   * The key that the token claims to be signed with. Can take as long as two fetches of the keys. Rejects with a
   * Problem: `invalid-token`, or `provider-unavailable` if the key is unknown and the provider does not respond.
   */
  async findKey(token: string): Promise<CryptoKey> {
    const { alg, kid, typ } = headerOf(token);
    if (alg === undefined || !algorithms.includes(alg)) {
      throw refused('The algorithm of the token is not allowed.');
    }
    const type = typ?.toLowerCase().replace(/^application\//, '');
    if (!acceptedTypes[this.#options.tokenType].includes(type)) {
      throw refused('The type (typ) of the token is not the one of an access token.');
    }
    if (typeof kid !== 'string') throw refused('The token does not name its key (kid).');
    const found = await this.#keys.find({ alg, kid });
    if (found !== undefined) return found;
    throw refused('The identity provider has no key with the id and the algorithm of this token.');
  }

  /** Checks the signature and the claims. Rejects with the Problem `invalid-token`. */
  async verify(token: string, key: CryptoKey): Promise<Credential> {
    const { payload } = await jwtVerify(token, key, this.#checks).catch((error: unknown) => {
      throw refused(reasonOf(error));
    });
    const claims = claimsOf(payload, this.#options);
    return { tokenHash: hashToken(token), store: undefined, claims };
  }
}

function headerOf(token: string): ProtectedHeaderParameters {
  const signature = token.slice(token.lastIndexOf('.') + 1);
  // Decoders ignore the last bits. Without this check, a token would have several valid texts.
  const isExact = Buffer.from(signature, 'base64url').toString('base64url') === signature;
  if (token.length > maxTokenChars) {
    throw refused(`A token can have at most ${maxTokenChars} characters.`);
  }
  try {
    const header = decodeProtectedHeader(token);
    if (isExact && (header.typ === undefined || typeof header.typ === 'string')) return header;
  } catch {
    // It is not JSON.
  }
  throw refused('This is not a JWT. Check that you copied all of it.');
}

function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTExpired) return 'The token is expired. Get a new one.';
  if (error instanceof errors.JWTClaimValidationFailed) {
    const state = error.reason === 'missing' ? 'missing' : 'not accepted here';
    return `The claim "${error.claim}" of the token is ${state}.`;
  }
  return 'The signature of the token is not valid.';
}
