/**
 * The flags of `serve` for an identity provider (docs/sign-on.md).
 */
import { InvalidArgumentError } from '@commander-js/extra-typings';
import { scopes } from '../../access.ts';
import { isProtected } from '../../oidc/fetch.ts';
import {
  tokenTypes,
  type OidcOptions,
  type PageSignOn,
  type TokenType,
} from '../../oidc/options.ts';
import { Name } from '../../plant.ts';
import { UsageError } from '../../refusal.ts';
import { flag, parserOf } from '../options.ts';

/** What commander makes of the flags. */
export interface OidcFlags {
  oidcIssuer?: string | undefined;
  oidcAudience?: string | undefined;
  oidcTokenType: TokenType;
  oidcUserClaim: string;
  oidcStore: string;
  oidcStoreClaim?: string | undefined;
  oidcRoleClaim?: string | undefined;
  oidcManagerValue?: string | undefined;
  oidcScopePrefix: string;
  oidcClientId?: string | undefined;
  oidcClientScope?: string | undefined;
}

export const oidcFlags = {
  issuer: flag(
    '--oidc-issuer <url>',
    'identity provider whose access tokens are accepted: its issuer URL',
  ).argParser(parseIssuer),
  audience: flag('--oidc-audience <text>', 'audience (aud) of those tokens: the name of this API'),
  tokenType: flag('--oidc-token-type <type>', 'their type (typ); jwt also accepts JWT and none')
    .choices(tokenTypes)
    .default(tokenTypes[0]),
  userClaim: flag('--oidc-user-claim <claim>', 'claim with the name of the user').default('sub'),
  store: flag('--oidc-store <name>', 'store of their users; created if needed')
    .argParser(parserOf(Name))
    .default('main'),
  storeClaim: flag(
    '--oidc-store-claim <claim>',
    'claim with the name of the store, if not all users have the same',
  ).conflicts('oidcStore'),
  roleClaim: flag('--oidc-role-claim <claim>', 'claim that makes a user a manager; else a member'),
  managerValue: flag('--oidc-manager-value <text>', 'value of that claim for a manager'),
  scopePrefix: flag('--oidc-scope-prefix <text>', 'what precedes the scopes in the token').default(
    '',
    'none',
  ),
  clientId: flag(
    '--oidc-client-id <text>',
    'id of the page at the provider; lets people sign in there',
  ),
  clientScope: flag(
    '--oidc-client-scope <list>',
    'scopes that the page requests, separated by spaces; openid and all of the service without it',
  ),
};

/** Undefined without an issuer. Throws UsageError if flags do not fit together. */
export function oidcOptions(flags: OidcFlags): OidcOptions | undefined {
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
    scopePrefix: flags.oidcScopePrefix,
  };
}

/** Undefined if people cannot sign in on the page. Throws UsageError if flags do not fit together. */
export function pageSignOn(flags: OidcFlags): PageSignOn | undefined {
  const { oidcIssuer: issuer, oidcClientId: clientId, oidcScopePrefix: prefix } = flags;
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

/** The text as it is, because tokens have exactly this text in `iss`. */
function parseIssuer(text: string): string {
  if (!isProtected(text) || /[?#@\s]/.test(text)) {
    throw new InvalidArgumentError(
      'Use an https URL without a query, a fragment or a user name, such as https://login.example/realms/plants. ' +
        'On this machine, http works too.',
    );
  }
  return text;
}
