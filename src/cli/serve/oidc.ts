/**
 * What the flags of `serve` for an identity provider stand for (docs/sign-on.md).
 */
import type { Logger } from 'pino';
import { scopes } from '../../access/access.ts';
import type { OidcOptions, PageSignOn } from '../../oidc/options.ts';
import type { Verifier } from '../../oidc/verifier.ts';
import { UsageError } from '../../refusal.ts';
import type { ServeOptions } from './options.ts';

/** Undefined without an issuer. Throws UsageError if flags do not fit together. */
export function oidcOptions(flags: ServeOptions): OidcOptions | undefined {
  const { oidcIssuer: issuer, oidcAudience: audience } = flags;
  const { oidcRoleClaim: roleClaim, oidcManagerValue: managerValue } = flags;
  if ((issuer === undefined) !== (audience === undefined)) {
    throw new UsageError(
      'Set both --oidc-issuer and --oidc-audience to accept tokens of an identity provider, or neither.',
    );
  }
  if ((roleClaim === undefined) !== (managerValue === undefined)) {
    throw new UsageError('Set both --oidc-role-claim and --oidc-manager-value, or neither.');
  }
  if (issuer === undefined || audience === undefined) {
    const { oidcStoreClaim, oidcClientId, oidcClientScope } = flags;
    if (
      [roleClaim, oidcStoreClaim, oidcClientId, oidcClientScope].every((one) => one === undefined)
    )
      return undefined;
    throw new UsageError('These settings need --oidc-issuer and --oidc-audience.');
  }
  return {
    issuer,
    audience,
    tokenType: flags.oidcTokenType,
    userClaim: flags.oidcUserClaim,
    store: flags.oidcStore,
    storeClaim: flags.oidcStoreClaim,
    roleClaim,
    managerValue,
    scopePrefix: flags.oidcScopePrefix ?? '',
  };
}

/** Undefined if people cannot sign in on the page. Throws UsageError if flags do not fit together. */
export function pageSignOn(flags: ServeOptions): PageSignOn | undefined {
  const { oidcIssuer: issuer, oidcClientId: clientId, oidcScopePrefix: prefix = '' } = flags;
  const scope =
    flags.oidcClientScope ?? ['openid', ...scopes.map((each) => prefix + each)].join(' ');
  if (!scope.split(' ').includes('openid')) {
    throw new UsageError('Add openid to --oidc-client-scope: without it, nobody can sign in.');
  }
  if (issuer !== undefined && clientId !== undefined) return { issuer, clientId, scope };
  if (flags.oidcClientScope === undefined) return undefined;
  throw new UsageError('Set --oidc-client-id too, or leave out --oidc-client-scope.');
}

/** Does not wait for the identity provider, which can start after the service. */
export async function startVerifier(oidc: OidcOptions, log: Logger): Promise<Verifier> {
  const { Verifier } = await import('../../oidc/verifier.ts'); // loads jose
  let isAvailable: boolean | undefined;
  let reported = '';
  const verifier = new Verifier(oidc, (err, keys) => {
    if (keys.length > 0 && reported !== keys.join()) {
      reported = keys.join();
      log.warn({ issuer: oidc.issuer, keys }, 'unusable identity provider keys');
    }
    if (isAvailable === (err === undefined)) return;
    isAvailable = err === undefined;
    if (isAvailable) log.info({ issuer: oidc.issuer }, 'identity provider available');
    else log.warn({ err, issuer: oidc.issuer }, 'identity provider unavailable');
  });
  verifier.start();
  return verifier;
}
