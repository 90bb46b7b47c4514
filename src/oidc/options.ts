/** Which JWTs are accepted as access tokens, by the header `typ` (verifier.ts). */
export const tokenTypes = ['at+jwt', 'jwt'] as const;
export type TokenType = (typeof tokenTypes)[number];

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
