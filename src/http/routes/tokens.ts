/**
 * The operations with which users manage their own tokens. None requires a scope. `GET /token` costs no query of its
 * own, because authentication has loaded the grant.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { defaultScopes, scopes, stateOf, userKey, type Grant } from '../../access/access.ts';
import type { IdentityStorage, StoredToken } from '../../access/identity-storage.ts';
import { maxInvitationMs, maxInvitationUses, type OwnToken } from '../../access/own-tokens.ts';
import { deriveToken, hashToken, makeSalt, makeToken, tokenId } from '../../access/token.ts';
import { Tag } from '../../plants/plant.ts';
import { insufficientScope, invalidRequest, Problem, type ProblemKind } from '../../problem.ts';
import { runInSlice } from '../../shared/time-slices.ts';
import { formatTimestamp, parseTimestamp } from '../../shared/timestamp.ts';
import { Type } from '../../shared/typebox.ts';
import { tokenIn } from '../auth/auth.ts';
import { afterOf, limitOf, operationsOf, strict, type RouteOptions } from './operation.ts';
import { idempotencyKey } from '../request/idempotency-key.ts';
import { sendJson } from '../response/send.ts';
import type { TypeBoxProvider } from '../request/validation.ts';

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

export const tokenProblems: readonly ProblemKind[] = [
  'insufficient-scope',
  'token-restricted',
  'too-many-tokens',
  'invitation-used',
  'idempotency-key-reused',
];

export const tokenOperations = operationsOf('tokens', {
  getToken: {
    summary: 'Get your token',
    description: 'Describes the token of the request: its user, store, role, scopes and expiry.',
    scopes: [],
    forInvitations: true,
    successes: { 200: { description: 'What the token grants.', schema: 'Token' } },
  },
  revokeOwnToken: {
    summary: 'Revoke your token',
    description:
      'Revokes the token of the request. From the next request on, every process of the service refuses it with 401.',
    scopes: [],
    successes: { 204: { description: 'The token of the request is revoked.' } },
    problems: ['token-restricted'],
  },
  createToken: {
    summary: 'Create a token',
    description:
      'Creates another token for the calling user, with at most the scopes and the lifetime of the token of the request. Without a body, it grants the same. With an invitation, it creates a token that takes its place. Only the response contains the token itself. With an `Idempotency-Key`, you can repeat the request: the response has the same token, which follows from the key and from the token of the request.',
    scopes: [],
    forInvitations: true,
    requestHeaders: ['Idempotency-Key'],
    body: NewToken,
    successes: {
      201: {
        description: 'The token is created.',
        schema: 'OwnToken',
        created: ['token', '/tokens/000000001-22894e9580395e64'],
        headers: ['Idempotent-Replayed'],
      },
    },
    problems: tokenProblems,
  },
  listTokens: {
    summary: 'List your tokens',
    description:
      'Returns all tokens of the calling user in ascending order of id, including expired and revoked ones. If more tokens follow a page with a `limit`, `Link` has the address of the next page.',
    scopes: [],
    querystring: strict({
      limit: limitOf('tokens'),
      after: afterOf(
        'tokens with ids',
        Type.String({ format: 'token-id', description: 'the id of a token' }),
      ),
    }),
    successes: { 200: { description: 'The tokens.', items: 'OwnToken', headers: ['Link'] } },
  },
  revokeToken: {
    summary: 'Revoke a token',
    description:
      'Revokes a token of the calling user. From the next request on, every process of the service refuses it. If you repeat the request, the response is the same. A token that was created with another token can revoke itself and its descendants. Any other token can revoke tokens that have at most its scopes.',
    scopes: [],
    params: strict({
      tokenId: Type.String({
        description: 'The public id of the token.',
        examples: ['000000001-22894e9580395e64'],
      }),
    }),
    successes: { 204: { description: 'The token is revoked.' } },
    problems: ['insufficient-scope', 'token-restricted', 'token-not-found'],
  },
});

export function tokenRoutes(
  app: FastifyInstance,
  { storage: { identity }, optionsOf, lists, baseUrl }: RouteOptions,
): void {
  const routes = app.withTypeProvider<TypeBoxProvider>();
  const { getToken, revokeOwnToken, createToken, listTokens, revokeToken } = tokenOperations;

  routes.get('/token', optionsOf(getToken), async ({ grant }, reply) =>
    sendJson(reply, grantJson(grant)),
  );

  routes.delete('/token', optionsOf(revokeOwnToken), async ({ grant, id }, reply) => {
    refuseForeign(grant);
    await identity.revokeToken(grant.tokenId, Date.now(), grant, id);
    return reply.code(204).send();
  });

  routes.post('/tokens', optionsOf(createToken), async (request, reply) => {
    const created = await createTokenFor(identity, request, reply.code(201), request.body);
    reply.header('location', `${baseUrl}/tokens/${created.id}`);
    return sendJson(reply, JSON.stringify(created));
  });

  routes.get('/tokens', optionsOf(listTokens), async (request, reply) => {
    const { query, grant } = request;
    const { store, user } = grant.caller;
    return lists.send(request, reply, {
      query,
      maxBatchItems: 50,
      read: async ({ after, limit }) => {
        const wanted = { store, user, after, limit: limit + 1 };
        const found = await runInSlice(userKey(wanted), () => identity.listTokens(wanted));
        const tokens = found.slice(0, limit);
        const items = tokens.map((token) => JSON.stringify(valueOf(token, grant)));
        return {
          arrays: [items.join()],
          next: found.length > limit ? tokens.at(-1)?.id : undefined,
        };
      },
    });
  });

  routes.delete('/tokens/:tokenId', optionsOf(revokeToken), async (request, reply) => {
    const { grant, params, id } = request;
    const revoked = await identity.revokeToken(params.tokenId, Date.now(), grant, id);
    // The same for a token of another user.
    if (revoked === undefined) {
      const detail = 'You have no token with this id. "GET /tokens" lists your tokens.';
      throw new Problem('token-not-found', detail);
    }
    return reply.code(204).send();
  });
}

function grantJson(grant: Grant): string {
  const { expiresAtMs, renewableUntilMs, invitation } = grant;
  return JSON.stringify({
    id: grant.tokenId,
    user: grant.userName,
    store: grant.storeName,
    role: grant.role,
    scopes: grantedScopes(grant),
    expiresAt: formatTimestamp(expiresAtMs),
    renewableUntil:
      renewableUntilMs === expiresAtMs && invitation === undefined
        ? undefined
        : formatTimestamp(renewableUntilMs),
    invitation: invitation && { uses: invitation.uses },
  });
}

/** For an invitation, what the tokens grant that it creates. */
function grantedScopes({ invitation, caller }: Grant): readonly Scope[] {
  return invitation?.scopes ?? [...caller.scopes];
}

/**
 * Creates a token with that of the request, for its user or another one of the store. If the
 * request has an `Idempotency-Key`, a repeated one gets the same token.
 */
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
  const token =
    key === undefined
      ? makeToken(store)
      : deriveToken(store, tokenIn(request.headers.authorization), [grant.salt, user ?? '', key]);
  const own = ownTokenOf(terms ?? {}, grant, hashToken(token), user !== undefined);
  const earlier = await identity.createOwnToken(grant, own, request.id, user);
  if (earlier !== undefined) reply.header('idempotent-replayed', 'true');
  const unused = { revokedAtMs: undefined, lastUsedAtMs: undefined };
  return {
    ...valueOf({ ...unused, ...own, ...earlier, id: tokenId(own.hash, store) }, grant),
    token,
  };
}

/**
 * Refuses a token of an identity provider. The service cannot revoke it, and a token of the service would outlast the
 * role that the provider has given.
 */
function refuseForeign({ isStored }: Grant): void {
  if (isStored) return;
  throw new Problem(
    'token-restricted',
    'This token is from your identity provider, so it cannot create tokens and cannot be revoked here.',
  );
}

/** The token to create. Throws a Problem if it would grant more than the one of the request. */
function ownTokenOf(
  { scopes: named, label = '', invitation, ...times }: TokenTerms,
  grant: Grant,
  hash: Uint8Array,
  isForOther: boolean,
): OwnToken {
  const createdAtMs = Date.now();
  const granted = new Set(grantedScopes(grant));
  const wanted = new Set(
    named ?? (isForOther ? granted.intersection(new Set(defaultScopes)) : granted),
  );
  const missing = [...wanted.difference(granted)].join(' ');
  if (missing !== '' || wanted.size === 0) {
    const others = missing || defaultScopes.join(' or ');
    const detail = `Your token has only ${[...granted].join(' ')}, so a new token cannot have ${others}.`;
    throw insufficientScope(missing || defaultScopes.join(' '), detail);
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
  const token = { hash, scopes: inOrder, label, createdAtMs, salt: makeSalt() };
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

/** A token as responses show it. Times that do not apply are absent. */
function valueOf(
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
