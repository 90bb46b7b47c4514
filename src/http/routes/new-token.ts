/**
 * Creates a token with the token of a request: for its user, or for another one of the store.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { defaultScopes, scopes, stateOf, type Grant } from '../../access/access.ts';
import type { IdentityStorage, StoredToken } from '../../access/identity-storage.ts';
import { maxInvitationMs, maxInvitationUses, type OwnToken } from '../../access/own-tokens.ts';
import { deriveToken, hashToken, makeSalt, makeToken, tokenId } from '../../access/token.ts';
import { Tag } from '../../plants/plant.ts';
import { insufficientScope, invalidRequest, Problem } from '../../problem.ts';
import { formatTimestamp, parseTimestamp } from '../../shared/timestamp.ts';
import { Type } from '../../shared/typebox.ts';
import { tokenIn } from '../auth/auth.ts';
import { idempotencyKey } from '../request/idempotency-key.ts';

export type Scope = (typeof scopes)[number];
export const Scope = Type.Unsafe<Scope>({
  type: 'string',
  enum: scopes,
  description: 'One kind of operation.',
});

const Expiry = (meaning: string) =>
  Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'a time with an offset from UTC, as in RFC 3339',
      meaning,
      examples: ['2027-01-31T12:00:00Z'],
    }),
  );

const Invitation = Type.Object(
  {
    uses: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: maxInvitationUses,
        description: `an integer from 1 to ${maxInvitationUses}`,
        meaning: 'How many tokens it can create: 1 by default.',
        examples: [1],
      }),
    ),
    expiresAt: Expiry('When the invitation ends: after 7 days by default, and at the latest.'),
  },
  {
    additionalProperties: false,
    description: 'a JSON object with the fields uses and expiresAt',
    meaning:
      'Makes the token an invitation: it can only create tokens for the user, with these scopes and up to this expiry.',
    examples: [{ uses: 1 }],
  },
);

/** The body of a request for another token. */
export const NewToken = Type.Optional(
  Type.Object(
    {
      scopes: Type.Optional(
        Type.Array(Scope, {
          uniqueItems: true,
          minItems: 1,
          description: `a list of at least one of ${scopes.join(', ')}, each at most once`,
          meaning:
            'What the token allows. The default, and the maximum, are the scopes of the token of the request.',
          examples: [['plants:read']],
        }),
      ),
      expiresAt: Expiry(
        'When the token expires. The default is the expiry of the token of the request, and the latest time its `renewableUntil`, if it has one.',
      ),
      renewableUntil: Expiry(
        'For a device that stays signed in: until when the token can be used to create another one that takes its place. Without it, what the token creates does not outlast it.',
      ),
      label: Type.Optional({
        ...Tag,
        meaning: 'A note that helps you to distinguish your tokens.',
        examples: ['phone'],
      }),
      invitation: Type.Optional(Invitation),
    },
    {
      additionalProperties: false,
      description:
        'a JSON object with the fields scopes, expiresAt, renewableUntil, label and invitation',
      meaning:
        'The token to create. Without a body, it grants the same as the token of the request.',
      examples: [{ scopes: ['plants:read'], label: 'phone' }],
    },
  ),
);

/** What a token can be created with. */
interface TokenTerms {
  scopes?: Scope[];
  expiresAt?: string;
  renewableUntil?: string;
  label?: string;
  invitation?: { uses?: number; expiresAt?: string };
}

/** Creates a token, or returns the one that an earlier request with the same `Idempotency-Key` has created. */
export async function createTokenFor(
  identity: IdentityStorage,
  request: FastifyRequest,
  reply: FastifyReply,
  terms: TokenTerms | undefined,
  user?: string,
) {
  const { grant } = request;
  refuseForeign(grant);
  const { store } = grant.caller;
  const key = idempotencyKey(request);
  const random = makeToken(store);
  const salt = makeSalt(`${grant.tokenId} ${key ?? random}`, JSON.stringify([user, terms ?? {}]));
  const calling = tokenIn(request.headers.authorization);
  const textOf = (by: string) => (key === undefined ? random : deriveToken(store, calling, by));
  const allowed = ownTokenOf(terms ?? {}, grant, user !== undefined);
  const own = { ...allowed, hash: hashToken(textOf(salt)), salt };
  const earlier = await identity.createOwnToken(grant, own, request.id, user);
  if (earlier !== undefined) reply.header('idempotent-replayed', 'true');
  const unused = { revokedAtMs: undefined, lastUsedAtMs: undefined };
  const token = textOf(earlier?.salt ?? salt);
  const id = tokenId(hashToken(token), store);
  return { ...valueOf({ ...unused, ...own, ...earlier, id }, grant), token };
}

/** The token to create. Throws a Problem if it would grant more than the one of the request. */
function ownTokenOf(
  { scopes: named, label = '', invitation, ...times }: TokenTerms,
  grant: Grant,
  isForOther: boolean,
): Omit<OwnToken, 'hash' | 'salt'> {
  const createdAtMs = Date.now();
  const granted = new Set(grantedScopes(grant));
  const wanted = new Set(named ?? (isForOther ? defaultScopes : granted));
  const missing = [...wanted.difference(granted)].join(' ');
  if (missing !== '') {
    const detail = `Your token has only ${[...granted].join(' ')}, so a new token cannot have ${missing}.`;
    throw insufficientScope(missing, detail);
  }
  const latestMs = grant.renewableUntilMs ?? Infinity;
  const own = grant.invitation === undefined ? grant.expiresAtMs : grant.renewableUntilMs;
  const timeIn = (name: string, text: string | undefined, maxMs = latestMs) => {
    const timeMs = text === undefined ? undefined : parseTimestamp(text);
    if (timeMs !== undefined && timeMs <= createdAtMs) {
      throw refuseTime(name, 'is in the past. Send a later time.');
    }
    if ((timeMs ?? 0) > maxMs) {
      throw refuseTime(name, `is too late. Send ${formatTimestamp(maxMs)} or an earlier time.`);
    }
    return timeMs;
  };
  const expiresAtMs = timeIn('expiresAt', times.expiresAt) ?? own;
  const renewableUntilMs = timeIn('renewableUntil', times.renewableUntil);
  const inOrder = scopes.filter((scope) => wanted.has(scope));
  const token = { scopes: inOrder, label, createdAtMs };
  if (invitation === undefined) {
    if (renewableUntilMs !== undefined && (expiresAtMs ?? Infinity) > renewableUntilMs) {
      throw refuseTime('renewableUntil', 'is before the token expires. Send a later time.');
    }
    return { ...token, expiresAtMs, renewableUntilMs };
  }
  if (grant.invitation !== undefined) {
    const detail = 'An invitation cannot create another one.';
    throw invalidRequest([{ pointer: '/invitation', detail }]);
  }
  if (renewableUntilMs !== undefined) {
    throw refuseTime('renewableUntil', 'does not apply to an invitation. Leave it out.');
  }
  const endMs = Math.min(createdAtMs + maxInvitationMs, latestMs, expiresAtMs ?? latestMs);
  return {
    ...token,
    expiresAtMs: timeIn('invitation/expiresAt', invitation.expiresAt, endMs) ?? endMs,
    renewableUntilMs: expiresAtMs,
    uses: invitation.uses ?? 1,
  };
}

function refuseTime(name: string, fault: string) {
  const pointer = `/${name}`;
  return invalidRequest([{ pointer, detail: `"${name.split('/').at(-1)}" ${fault}` }]);
}

/** For an invitation, what the tokens grant that it creates. */
export function grantedScopes({ invitation, caller }: Grant): readonly Scope[] {
  return invitation?.scopes ?? [...caller.scopes];
}

/**
 * Refuses a token of an identity provider. The service cannot revoke it, and a token of the service would outlast the
 * role that the provider has given.
 */
export function refuseForeign({ isStored }: Grant): void {
  if (isStored) return;
  throw new Problem(
    'token-restricted',
    'This token is from your identity provider, so it cannot create tokens and cannot be revoked here.',
  );
}

/** A token as responses show it. Times that do not apply are absent. */
export function valueOf(
  { id, uses, ...token }: StoredToken & { id: string },
  { tokenId: currentId }: Grant,
) {
  return {
    id,
    label: token.label,
    scopes: token.scopes,
    state: stateOf(token, Date.now()),
    current: id === currentId,
    createdAt: formatTimestamp(token.createdAtMs),
    expiresAt: formatTimestamp(token.expiresAtMs),
    revokedAt: formatTimestamp(token.revokedAtMs),
    lastUsedAt: formatTimestamp(token.lastUsedAtMs),
    renewableUntil: formatTimestamp(token.renewableUntilMs),
    invitation: uses === undefined ? undefined : { uses },
  };
}
