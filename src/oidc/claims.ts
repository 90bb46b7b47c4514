/**
 * What the claims of a verified token grant: who the user is, and what they can do. docs/how-to/sign-on.md describes each
 * setting.
 */
import type { JWTPayload, JWTVerifyOptions } from 'jose';
import { scopes, type Claims, type Scope } from '../access/access.ts';
import { conforms, Name } from '../plants/plant.ts';
import { Problem } from '../problem.ts';
import { endOfTimeMs } from '../shared/timestamp.ts';
import type { OidcOptions, TokenType } from './options.ts';

/** How far the clock of the provider can be ahead of ours. A token never outlives `exp`, or the removal of its user. */
const clockSkewSeconds = 30;

/** ID tokens have these (OpenID Connect Core 1.0, sections 2 and 3.3.2.11), and access tokens do not. */
const idTokenClaims = ['nonce', 'at_hash', 'c_hash', 's_hash'];
/** The client that requested a token: of OpenID Connect, of RFC 9068, and of Entra ID. */
const clientClaims = ['azp', 'client_id', 'appid'];

/** RFC 9068 requires all of these. The tokens of some providers lack the last two. */
const requiredClaims: Record<TokenType, string[]> = {
  'at+jwt': ['iss', 'aud', 'exp', 'iat', 'sub', 'client_id', 'jti'],
  jwt: ['iss', 'aud', 'exp', 'iat', 'sub'],
};

/** What jose checks of the claims. */
export function claimChecksOf({ issuer, audience, tokenType }: OidcOptions): JWTVerifyOptions {
  return {
    issuer,
    audience,
    requiredClaims: requiredClaims[tokenType],
    clockTolerance: clockSkewSeconds,
  };
}

/** Throws a Problem if a claim is missing or cannot be used. The signature, `iss`, `aud` and `nbf` were checked. */
export function claimsOf(payload: JWTPayload, options: OidcOptions): Claims {
  const { userClaim, storeClaim, store, roleClaim, managerValue, scopePrefix } = options;
  const times = timesOf(payload);
  if (typeof payload.sub !== 'string') throw refused('The claim "sub" is not a string.');
  if (options.tokenType === 'jwt') refuseIdToken(payload);
  if (payload['cnf'] !== undefined) {
    throw refused(
      'The token is bound to a key (cnf), which is not supported. Get one that is not.',
    );
  }
  if (userClaim === 'email') refuseUnverified(payload['email_verified']);
  const isManager =
    roleClaim !== undefined && [claimAt(payload, roleClaim)].flat().includes(managerValue);
  return {
    userName: nameIn(payload, userClaim),
    storeName: storeClaim === undefined ? store : nameIn(payload, storeClaim),
    role: roleClaim === undefined ? undefined : isManager ? 'manager' : 'member',
    scopes: scopesOf(payload, scopePrefix),
    ...times,
  };
}

export function refused(detail: string): Problem {
  return new Problem('invalid-token', detail);
}

function timesOf({ iat, exp }: JWTPayload): Pick<Claims, 'issuedAtMs' | 'expiresAtMs'> {
  const nowMs = Date.now();
  if (iat === undefined || !(iat * 1_000 <= nowMs + clockSkewSeconds * 1_000)) {
    throw refused(
      'The token was issued in the future: the clocks of the provider and the service differ.',
    );
  }
  if (iat < 0) throw refused('The claim "iat" is before 1970.');
  if (exp === undefined || !(exp * 1_000 < endOfTimeMs))
    throw refused('The claim "exp" is too large.');
  if (exp * 1_000 <= nowMs) throw refused('The token is expired. Get a new one.');
  return {
    // The earliest time: a token from before the removal of its user must not create the user again.
    issuedAtMs: Math.floor((iat - clockSkewSeconds) * 1_000), // both can have fractions (RFC 7519, section 2)
    expiresAtMs: Math.floor(exp * 1_000),
  };
}

/**
 * Tokens of the type `jwt` can be ID tokens. Those are for a client, so their audience is the client that requested
 * them.
 */
function refuseIdToken(payload: JWTPayload): void {
  const audiences: readonly unknown[] = [payload.aud].flat();
  const isForClient = clientClaims.some((claim) => audiences.includes(payload[claim] ?? null));
  if (isForClient || idTokenClaims.some((claim) => payload[claim] !== undefined)) {
    throw refused('This is an ID token. Send the access token.');
  }
}

function refuseUnverified(isVerified: unknown): void {
  if (isVerified === true) return;
  throw refused(
    isVerified === 'true'
      ? 'The claim "email_verified" is the text "true", but must be the boolean true.'
      : 'The provider has not verified the email address of the user ("email_verified").',
  );
}

function nameIn(payload: JWTPayload, claim: string): string {
  const name = claimAt(payload, claim);
  if (typeof name === 'string' && conforms(Name, name)) return name;
  throw refused(`The claim "${claim}" of the token must be ${Name.description}.`);
}

/** Our scopes in the token: `scope` as RFC 8693 has it, or `scp` as Entra ID does; as text or as an array. */
function scopesOf(payload: JWTPayload, prefix: string): Scope[] {
  const claim = payload['scope'] ?? payload['scp'];
  const granted: readonly unknown[] = typeof claim === 'string' ? claim.split(' ') : [claim].flat();
  return scopes.filter((scope) => granted.includes(prefix + scope));
}

/** The claim with this name. If there is none, the dots of the name lead into nested objects. */
function claimAt(payload: JWTPayload, name: string): unknown {
  if (Object.hasOwn(payload, name)) return payload[name];
  let value: unknown = payload;
  for (const key of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = Reflect.get(value, key);
  }
  return value;
}
