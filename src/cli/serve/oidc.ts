/**
 * What the flags of `serve` for an identity provider stand for (docs/sign-on.md).
 */
import { scopes } from '../../access/access.ts';
import type { OidcOptions, PageSignOn } from '../../oidc/options.ts';
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
  const { oidcClientScope = ['openid', ...scopes.map((scope) => prefix + scope)].join(' ') } =
    flags;
  if (clientId === undefined && flags.oidcClientScope !== undefined) {
    throw new UsageError('Set --oidc-client-id too, or leave out --oidc-client-scope.');
  }
  if (!oidcClientScope.split(' ').includes('openid')) {
    throw new UsageError('Add openid to --oidc-client-scope: without it, nobody can sign in.');
  }
  if (issuer === undefined || clientId === undefined) return undefined;
  return { issuer, clientId, scope: oidcClientScope };
}
