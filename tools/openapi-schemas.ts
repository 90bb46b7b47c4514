/**
 * The schemas of what the service returns. It sends JSON text and validates none of it, so they only serve openapi.json,
 * and the types of the client, which come from there.
 */
import type { TSchema } from '@sinclair/typebox';
import {
  roles,
  shareAccesses,
  type GrantState,
  type Role,
  type ShareAccess as ShareAccessName,
} from '../src/access/access.ts';
import { ShareAccess } from '../src/http/routes/share-schemas.ts';
import { Scope } from '../src/http/routes/token-schemas.ts';
import { plantEvents, type PlantEvent } from '../src/log/change-log.ts';
import { maxId } from '../src/plants/ids.ts';
import type { PlantField } from '../src/plants/plant.ts';
import { Type } from '../src/shared/typebox.ts';

const Time = (description: string) => Type.String({ format: 'date-time', description });

/** Its strings have no constraints: a client that counts length in another way must not reject what the service has stored. */
export const Plant = Type.Object(
  {
    name: Type.Optional(
      Type.String({ description: 'What the plant is called, exactly as it was sent.' }),
    ),
    tag: Type.Optional(Type.String({ description: 'Its tag; empty if it has none.' })),
    id: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: maxId,
        description: 'Its id, unique in the store. Present only if `fields` names it.',
      }),
    ),
    owner: Type.Optional(
      Type.String({
        description: 'The name of the user who owns it. Present only if `fields` names it.',
      }),
    ),
    access: Type.Optional(
      Type.Unsafe<ShareAccessName>({
        type: 'string',
        enum: [...shareAccesses],
        description:
          'What you can do with it: `write` includes changes. Present only if `fields` names it.',
      }),
    ),
  } satisfies Record<PlantField, TSchema>,
  {
    additionalProperties: false,
    description:
      'A plant with the fields that `fields` names: `name` and `tag` by default. If a token without `plants:read` changes a plant, the response has only those that the request has sent, and the id.',
    examples: [{ id: 42, name: 'Monstera deliciosa', tag: 'indoor' }],
  },
);

export const PlantChange = Type.Object(
  {
    event: Type.Unsafe<PlantEvent>({
      type: 'string',
      enum: plantEvents,
      description:
        'What happened to the plant. `moved`: whoever runs the service has given it to another user.',
    }),
    at: Time('When it happened (RFC 3339).'),
    user: Type.Optional(
      Type.String({
        description: 'The name of the user who did it. Absent if it was whoever runs the service.',
      }),
    ),
    before: Type.Optional(
      Type.Object(
        {
          name: Type.String({ description: 'The name that the plant had.' }),
          tag: Type.String({ description: 'The tag that it had; empty if there was none.' }),
          owner: Type.String({ description: 'The name of the user who owned it.' }),
        },
        { description: 'The plant before the change. Absent if there was none.' },
      ),
    ),
  },
  {
    description: 'A change to a plant. Ignore members that you do not know.',
    examples: [
      {
        event: 'updated',
        at: '2026-02-01T09:30:00.000Z',
        user: 'alice',
        before: { name: 'Monstera', tag: 'indoor', owner: 'alice' },
      },
    ],
  },
);

export const DeletedPlant = Type.Object(
  {
    id: Type.Integer({ minimum: 1, maximum: maxId, description: 'The id that the plant had.' }),
    name: Type.String({ description: 'Its name when it was deleted.' }),
    tag: Type.String({ description: 'Its tag; empty if it had none.' }),
    owner: Type.String({ description: 'The name of the user whose plant it was.' }),
    deletedAt: Time('When it was deleted (RFC 3339).'),
    deletedBy: Type.Optional(
      Type.String({
        description:
          'The name of the user who deleted it. Absent if it was whoever runs the service.',
      }),
    ),
  },
  {
    description: 'A deleted plant that can be restored. Ignore members that you do not know.',
    examples: [
      {
        id: 42,
        name: 'Monstera deliciosa',
        tag: 'indoor',
        owner: 'alice',
        deletedAt: '2026-02-01T09:30:00.000Z',
        deletedBy: 'bob',
      },
    ],
  },
);

export const Share = Type.Object(
  {
    user: Type.String({ description: 'The name of the other user.' }),
    access: ShareAccess,
  },
  {
    description: 'A share between the calling user and another one.',
    examples: [{ user: 'bob', access: 'read' }],
  },
);

export const Shares = Type.Object(
  {
    given: Type.Array(Share, {
      description: 'Users who can access the plants of the calling user.',
    }),
    received: Type.Array(Share, {
      description:
        'Users whose plants the calling user can access: those who shared first, at most 999.',
    }),
  },
  {
    description: 'The shares of the calling user.',
    examples: [{ given: [{ user: 'bob', access: 'read' }], received: [] }],
  },
);

const TokenRole = Type.Unsafe<Role>({
  type: 'string',
  enum: roles,
  description:
    'The role of the user: a `member` can access their own plants and those shared with them, a `manager` every plant in the store.',
});

export const Token = Type.Object(
  {
    id: Type.String({
      description: 'The public id of the token, which does not grant access.',
    }),
    user: Type.String({ description: 'The name of the calling user.' }),
    store: Type.String({ description: 'The name of the store that the user belongs to.' }),
    role: TokenRole,
    scopes: Type.Array(Scope, { description: 'The operations that the token allows.' }),
    expiresAt: Type.Optional(Time('When the token expires (RFC 3339). Absent if it never does.')),
  },
  {
    description:
      'What a token grants, to whom and until when. Ignore members that you do not know.',
    examples: [
      {
        id: '000000001-22894e9580395e64',
        user: 'alice',
        store: 'main',
        role: 'member',
        scopes: ['plants:read', 'plants:write'],
        expiresAt: '2027-01-31T12:00:00.000Z',
      },
    ],
  },
);

export const OwnToken = Type.Object(
  {
    id: Type.String({ description: 'Its public id, which does not grant access.' }),
    label: Type.String({ description: 'Its note; empty if there is none.' }),
    scopes: Type.Array(Scope, { description: 'What it allows.' }),
    state: Type.Unsafe<GrantState>({
      type: 'string',
      enum: ['active', 'expired', 'revoked'],
      description: 'Whether the service accepts it.',
    }),
    current: Type.Boolean({ description: 'Whether it is the token of this request.' }),
    createdAt: Time('When it was created (RFC 3339).'),
    expiresAt: Type.Optional(Time('When it expires. Absent if it never does.')),
    revokedAt: Type.Optional(Time('When it was revoked. Absent if it was not.')),
    lastUsedAt: Type.Optional(
      Time('When it was last used, to the minute. Absent if it was not used yet.'),
    ),
    token: Type.Optional(
      Type.String({ description: 'The token itself. Present only when it is created: save it.' }),
    ),
  },
  {
    description: 'A token of the calling user. Ignore members that you do not know.',
    examples: [
      {
        id: '000000001-22894e9580395e64',
        label: 'phone',
        scopes: ['plants:read'],
        state: 'active',
        current: false,
        createdAt: '2026-01-31T12:00:00.000Z',
        lastUsedAt: '2026-02-01T09:30:00.000Z',
      },
    ],
  },
);

export const Health = Type.Object(
  { status: Type.Unsafe<'ok'>({ type: 'string', enum: ['ok'], description: 'Always `ok`.' }) },
  {
    description: 'The response of a successful health check.',
    examples: [{ status: 'ok' }],
  },
);

export const Readiness = Type.Object(
  {
    status: Type.Unsafe<'ok'>({
      type: 'string',
      enum: ['ok'],
      description: 'Ready for requests.',
    }),
    reads: Type.Unsafe<'ok'>({ type: 'string', enum: ['ok'], description: 'Reads work.' }),
    writes: Type.Unsafe<'ok' | 'other-primary'>({
      type: 'string',
      enum: ['ok', 'other-primary'],
      description:
        '`other-primary` if a second PostgreSQL server accepts writes. Requests do not reach it, but it must be stopped.',
    }),
  },
  {
    description: 'The response of a service that is ready.',
    examples: [{ status: 'ok', reads: 'ok', writes: 'ok' }],
  },
);

export const Fault = Type.Object(
  {
    pointer: Type.Optional(
      Type.String({
        description:
          'The place in the body, as a JSON Pointer (RFC 6901); empty for the whole body.',
        examples: ['/name'],
      }),
    ),
    parameter: Type.Optional(
      Type.String({
        description: 'The name of the parameter in the query, the path or the headers.',
        examples: ['limit'],
      }),
    ),
    detail: Type.String({ description: 'What is wrong there and how to fix it.' }),
  },
  {
    description: 'One thing that is wrong with the input: in the body or in a parameter.',
    examples: [{ pointer: '/name', detail: '"name" is missing.' }],
  },
);

export const Problem = Type.Object(
  {
    type: Type.String({
      format: 'uri-reference',
      description:
        'The address of a page about this kind of problem. Its last segment is a stable name: write code against it.',
      examples: ['/problems/invalid-request'],
    }),
    title: Type.String({ description: 'The kind of problem in a few words, for people.' }),
    status: Type.Integer({
      minimum: 400,
      maximum: 599,
      description: 'The status code of the response.',
    }),
    detail: Type.String({
      description: 'What went wrong this time and how to fix it, for people.',
    }),
    errors: Type.Optional(
      Type.Array(Fault, {
        description: 'The faults of invalid input, up to 20; `detail` counts them all.',
      }),
    ),
  },
  { description: 'Why a request failed (RFC 9457).' },
);
