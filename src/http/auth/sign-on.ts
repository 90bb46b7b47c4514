/**
 * The tokens of an identity provider: verified once, then cached by the text of the Authorization header. Anybody can
 * make up tokens that need a verification, so each client has a limited number of them in progress.
 */
import type { Credential } from '../../access/access.ts';
import { Cache } from '../../shared/cache.ts';
import type { Verifier } from '../../oidc/verifier.ts';
import { limitLookups } from './lookup-limit.ts';

/** Maximum characters of cached headers. */
const maxVerifiedChars = 16 * 1024 * 1024;
/** The overhead of a cached header, in characters. */
const entryOverheadChars = 500;
/** Verifications in progress. They run in the four threads of Node, which must have room for other work. */
const maxVerifications = 4;

/** Whether the text has the form of a JWT. Our own tokens have no dots. */
export function isJwt(text: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(text);
}

interface Verified {
  chars: number;
  credential: Credential;
  keysVersion: number;
}

export class SignOn {
  readonly #verifier: Verifier;
  /** Nothing in it is stale: an entry counts for the keys with which it was verified, and its grant has its expiry. */
  readonly #verified = new Cache<Verified>(maxVerifiedChars, ({ chars }) => chars);
  readonly #verifications = limitLookups(maxVerifications);

  constructor(verifier: Verifier) {
    this.#verifier = verifier;
  }

  /** The credential of a header that was verified before. Its grant shows whether it has expired since. */
  get(authorization: string): Credential | undefined {
    const verified = this.#verified.get(authorization);
    return verified?.keysVersion === this.#verifier.keysVersion ? verified.credential : undefined;
  }

  /** Verifies the token of a header. Rejects with a Problem. */
  async verify(authorization: string, token: string, client: string): Promise<Credential> {
    const { keysVersion } = this.#verifier; // before the key is found, so that it is at most as new
    // Outside of the limit, because it can wait for the provider.
    const key = await this.#verifier.findKey(token);
    const credential = await this.#verifications.run(client, () =>
      this.#verifier.verify(token, key),
    );
    const chars = authorization.length + entryOverheadChars;
    this.#verified.set(authorization, { chars, credential, keysVersion });
    return credential;
  }
}
