/** Which JWTs are accepted as access tokens, by the header `typ` (verifier.ts). */
export const tokenTypes = ['at+jwt', 'jwt'] as const;
export type TokenType = (typeof tokenTypes)[number];

/**
 * How long the keys of the provider count before they are fetched again, and a verified token before it is verified
 * again. So a withdrawn key stops working within twice this time.
 */
export const maxAgeMs = 150_000;

/** How the page signs on: as a public client of the provider, which requests these scopes. */
export interface PageSignOn {
  readonly issuer: string;
  readonly clientId: string;
  /** Names, separated by spaces. */
  readonly scope: string;
}

/** Which tokens of the identity provider are accepted, and what their claims mean. The flags `--oidc-...` set these. */
export interface OidcOptions {
  /** The URL of the provider, exactly as its tokens have it in `iss`. */
  readonly issuer: string;
  /** One of the values of `aud`. */
  readonly audience: string;
  readonly tokenType: TokenType;
  /** The claim with the name of the user. */
  readonly userClaim: string;
  /** The claim with the name of the store. Without it, all users belong to `store`. */
  readonly storeClaim?: string | undefined;
  readonly store: string;
  /** A user is a manager if this claim is or contains `managerValue`. Without a claim, the stored role counts. */
  readonly roleClaim?: string | undefined;
  readonly managerValue?: string | undefined;
  /** What precedes the names of our scopes in the token. */
  readonly scopePrefix: string;
}

/** Whether responses from this URL are safe from tampering on the network: it is HTTPS, or on this machine. */
export function isProtected(address: string): boolean {
  const url = URL.parse(address);
  if (url?.protocol === 'https:') return true;
  return url?.protocol === 'http:' && ['127.0.0.1', '[::1]', 'localhost'].includes(url.hostname);
}
