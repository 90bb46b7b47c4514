/**
 * The tokens of an identity provider: verified once, then cached by the text of the Authorization header. Anybody can
 * make up tokens that need a verification, so each client has a limited number of them in progress.
 */
import type { Credential } from '../access.ts';
import { Cache } from '../cache.ts';
import type { Verifier } from '../oidc/verifier.ts';
import { isProblem, type Problem } from '../problem.ts';
import { Lookups } from './lookups.ts';

/** Maximum characters of cached headers, with valid tokens and with refused ones. */
const maxVerifiedChars = 16 * 1024 * 1024;
const maxRefusedChars = 1024 * 1024;
/** The overhead of a cached header, in characters. */
const entryOverheadChars = 500;
/** How long a refused token is cached. */
const refusedMs = 1_000;
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

interface Refused {
  chars: number;
  problem: Problem;
  untilMs: number;
}

export class SignOn {
  readonly #verifier: Verifier;
  readonly #verified = new Cache<Verified>(maxVerifiedChars, ({ chars }) => chars);
  readonly #refused = new Cache<Refused>(maxRefusedChars, ({ chars }) => chars);
  readonly #inProgress = new Map<string, Promise<Credential>>();
  readonly #verifications = new Lookups(maxVerifications);

  constructor(verifier: Verifier) {
    this.#verifier = verifier;
  }

  /** The credential of a header that was verified before. Its grant shows whether it has expired since. */
  get(authorization: string): Credential | undefined {
    const verified = this.#verified.get(authorization);
    if (verified === undefined) return undefined;
    return verified.keysVersion === this.#verifier.keysVersion ? verified.credential : undefined;
  }

  /** Verifies the token of a header. Rejects with a Problem. */
  async verify(
    authorization: string,
    token: string,
    address: string | undefined,
  ): Promise<Credential> {
    const refused = this.#refused.get(authorization);
    if (refused !== undefined && performance.now() < refused.untilMs) throw refused.problem;
    let verifying = this.#inProgress.get(authorization);
    if (verifying === undefined) {
      verifying = this.#verify(authorization, token, address).finally(() =>
        this.#inProgress.delete(authorization),
      );
      this.#inProgress.set(authorization, verifying);
    }
    return verifying;
  }

  async #verify(
    authorization: string,
    token: string,
    address: string | undefined,
  ): Promise<Credential> {
    const chars = authorization.length + entryOverheadChars;
    const { keysVersion } = this.#verifier; // before the key is found, so that it is at most as new
    try {
      // Outside of the limit, because it can wait for the provider.
      const key = await this.#verifier.findKey(token);
      const credential = await this.#verifications.run(address, () =>
        this.#verifier.verify(token, key),
      );
      this.#verified.set(authorization, { chars, credential, keysVersion });
      return credential;
    } catch (error) {
      if (isProblem(error, 'invalid-token')) {
        const untilMs = performance.now() + refusedMs;
        this.#refused.set(authorization, { chars, problem: error, untilMs });
      }
      throw error;
    }
  }
}
