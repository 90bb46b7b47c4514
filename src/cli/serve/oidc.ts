/**
 * Turns the flags of `serve` for an identity provider into options (docs/how-to/sign-on.md).
 */
import type { Logger } from 'pino';
import { memberScopes } from '../../access/access.ts';
import type { OidcOptions, PageSignOn } from '../../oidc/options.ts';
import type { Verifier } from '../../oidc/verifier.ts';
import type { ServeOptions } from './options.ts';

/**
 * Undefined if only our own tokens are accepted. Does not wait for the identity provider, which can start after the
 * service.
 */
export async function startVerifier(
  flags: ServeOptions,
  log: Logger,
): Promise<Verifier | undefined> {
  const { oidcIssuer: issuer, oidcAudience: audience } = flags;
  if (issuer === undefined || audience === undefined) return undefined;
  const options: OidcOptions = {
    issuer,
    audience,
    tokenType: flags.oidcTokenType,
    userClaim: flags.oidcUserClaim,
    store: flags.oidcStore,
    storeClaim: flags.oidcStoreClaim,
    roleClaim: flags.oidcRoleClaim,
    managerValue: flags.oidcManagerValue,
    scopePrefix: flags.oidcScopePrefix ?? '',
  };
  const { Verifier } = await import('../../oidc/verifier.ts'); // loads jose
  let isAvailable: boolean | undefined;
  let reported = '';
  const verifier = new Verifier(options, (err, keys) => {
    if (keys.length > 0 && reported !== keys.join()) {
      reported = keys.join();
      log.warn({ issuer, keys }, 'unusable identity provider keys');
    }
    if (isAvailable === (err === undefined)) return;
    isAvailable = err === undefined;
    if (isAvailable) log.info({ issuer }, 'identity provider available');
    else log.warn({ err, issuer }, 'identity provider unavailable');
  });
  verifier.start();
  return verifier;
}

/** Undefined if people cannot sign in on the page. */
export function pageSignOn(flags: ServeOptions): PageSignOn | undefined {
  const { oidcIssuer: issuer, oidcClientId: clientId, oidcScopePrefix: prefix = '' } = flags;
  if (issuer === undefined || clientId === undefined) return undefined;
  // No others, because a provider can refuse a scope that it does not know.
  const allScopes = ['openid', ...memberScopes.map((scope) => prefix + scope)].join(' ');
  return { issuer, clientId, scope: flags.oidcClientScope ?? allScopes };
}
