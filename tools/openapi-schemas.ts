/**
 * The schemas of what the service returns. It sends JSON text and validates none of it, so they only serve openapi.json,
 * and the types of the client, which come from there.
 */
import type { TSchema } from '@sinclair/typebox';
import { roles, shareAccesses, type GrantState } from '../src/access/access.ts';
import { rules } from '../src/access/explain.ts';
import { maxInvitationUses } from '../src/access/own-tokens.ts';
import { NewShare, ShareAccess } from '../src/http/routes/shares.ts';
import { NewToken, Scope } from '../src/http/routes/new-token.ts';
import { Role } from '../src/http/routes/users.ts';
import { NewWebhook } from '../src/http/routes/webhooks.ts';
import { plantEvents } from '../src/log/change-log.ts';
import { cursorEnds } from '../src/log/feed.ts';
import { maxId } from '../src/plants/ids.ts';
import { NewPlant, PlantField, PlantPatch } from '../src/plants/plant.ts';
import { Type } from '../src/shared/typebox.ts';

const Text = (description: string) => Type.String({ description });
const Time = (description: string) => Type.String({ format: 'date-time', description });
const Id = (description: string) => Type.Integer({ minimum: 1, maximum: maxId, description });
const OneOf = <Value extends string>(values: readonly Value[], description: string) =>
  Type.Unsafe<Value>({ type: 'string', enum: [...values], description });

/** Its strings have no constraints: a client that counts length in another way must not reject what the service has stored. */
const Plant = Type.Object(
  {
    name: Type.Optional(Text('What the plant is called, exactly as it was sent.')),
    tag: Type.Optional(Text('Its tag; empty if it has none.')),
    id: Type.Optional(Id('Its id, unique in the store. Present only if `fields` names it.')),
    owner: Type.Optional(
      Text('The name of the user who owns it. Present only if `fields` names it.'),
    ),
    access: Type.Optional(
      OneOf(
        shareAccesses,
        'What you can do with it: `write` includes changes. Present only if `fields` names it.',
      ),
    ),
  } satisfies Record<PlantField, TSchema>,
  {
    additionalProperties: false,
    description:
      'A plant with the fields that `fields` names: `name` and `tag` by default. If a token without `plants:read` changes a plant, the response has only those that the request has sent, and the id.',
    examples: [{ id: 42, name: 'Monstera deliciosa', tag: 'indoor' }],
  },
);

const PlantChange = Type.Object(
  {
    event: OneOf(
      plantEvents,
      'What happened to the plant. `moved`: whoever runs the service has given it to another user.',
    ),
    at: Time('When it happened (RFC 3339).'),
    user: Type.Optional(
      Text('The name of the user who did it. Absent if it was whoever runs the service.'),
    ),
    before: Type.Optional(
      Type.Object(
        {
          name: Text('The name that the plant had.'),
          tag: Text('The tag that it had; empty if there was none.'),
          owner: Text('The name of the user who owned it.'),
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

const ChangeWithoutPlant = Type.Object(
  {
    id: Id('The id of the plant.'),
    event: OneOf(
      plantEvents,
      'What happened. `deleted` if `plant` is absent. Update a copy by `plant`: an event can be one of several.',
    ),
    at: Time('When the change was made (RFC 3339).'),
    user: Type.Optional(
      Text(
        'The name of the user who did it. Absent if it was whoever runs the service, or if you lost access to the plant.',
      ),
    ),
  },
  {
    description:
      'A change to a plant, and the plant as it is now, which is absent if it is gone or you do not have access to it any more. Ignore members that you do not know.',
    examples: [
      {
        id: 42,
        event: 'updated',
        at: '2026-02-01T09:30:00.000Z',
        user: 'alice',
        plant: { name: 'Monstera deliciosa', tag: 'indoor' },
      },
    ],
  },
);

/** The plant is optional. Type.Optional would copy its schema. */
const Change: TSchema = {
  ...ChangeWithoutPlant,
  properties: { ...ChangeWithoutPlant.properties, plant: Plant },
};

const DeletedPlant = Type.Object(
  {
    id: Id('The id that the plant had.'),
    name: Text('Its name when it was deleted.'),
    tag: Text('Its tag; empty if it had none.'),
    owner: Text('The name of the user whose plant it was.'),
    deletedAt: Time('When it was deleted (RFC 3339).'),
    deletedBy: Type.Optional(
      Text('The name of the user who deleted it. Absent if it was whoever runs the service.'),
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

const StepWithoutPlants = Type.Object({
  id: Id('The id of the plant that differs.'),
  outcome: Text(
    '`restored`: it comes back. `deleted`: it was added since. `updated`: it gets its earlier name and tag. It is not put back with `changed-meanwhile`, with `id-used-again` by another user, or with `not-in-log`.',
  ),
});

/** As in `Change`, the plants are optional. */
const Step: TSchema = {
  ...StepWithoutPlants,
  properties: { ...StepWithoutPlants.properties, now: Plant, before: Plant },
};

const Return = Type.Object(
  {
    since: Text('The time, as it was sent.'),
    plants: Type.Array(Step, {
      description:
        'The plants that differ: `now`, which is absent if they are deleted, and `before`, which is absent if they were not there.',
    }),
    undoSince: Type.Optional(
      Text('The time just before the return, which undoes it. Absent from a preview.'),
    ),
  },
  {
    description: 'What a return to a time does. Ignore members that you do not know.',
    examples: [
      {
        since: '2026-02-01T09:00:00Z',
        plants: [
          { id: 43, outcome: 'deleted', now: { name: 'Oak', tag: '' } },
          { id: 42, outcome: 'restored', before: { name: 'Monstera deliciosa', tag: 'indoor' } },
        ],
      },
    ],
  },
);

const Share = Type.Object(
  {
    user: Text('The name of the other user.'),
    access: ShareAccess,
    team: Type.Optional(
      Type.Literal(true, { description: 'Present if the other user shares only with everyone.' }),
    ),
  },
  {
    description: 'A share between the calling user and another one.',
    examples: [{ user: 'bob', access: 'read' }],
  },
);

const TeamShare = Type.Object(
  { access: ShareAccess },
  {
    description: 'What the calling user shares with everyone in the store.',
    examples: [{ access: 'read' }],
  },
);

const Shares = Type.Object(
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

const Invitation = Type.Optional(
  Type.Object(
    {
      uses: Type.Integer({
        minimum: 0,
        maximum: maxInvitationUses,
        description: 'How many tokens it can still create.',
      }),
    },
    { description: 'Present if the token is an invitation, which only creates tokens.' },
  ),
);

const Token = Type.Object(
  {
    id: Text('The public id of the token, which does not grant access.'),
    user: Text('The name of the calling user.'),
    store: Text('The name of the store that the user belongs to.'),
    role: OneOf(
      roles,
      'The role of the user: a `member` can access their own plants and those shared with them, a `manager` every plant in the store.',
    ),
    scopes: Type.Array(Scope, { description: 'The operations that the token allows.' }),
    expiresAt: Type.Optional(Time('When the token expires (RFC 3339). Absent if it never does.')),
    renewableUntil: Type.Optional(
      Time(
        'The latest expiry of a token that takes its place. Absent if it is that of the token. Of an invitation: when the tokens that it creates expire. Absent if they do not.',
      ),
    ),
    invitation: Invitation,
    lastBackup: Type.Optional(
      Time(
        'For managers, if the service makes backups: when the last one began that was restored and compared. Absent if there is none yet.',
      ),
    ),
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

const OwnToken = Type.Object(
  {
    id: Text('Its public id, which does not grant access.'),
    label: Text('Its note; empty if there is none.'),
    scopes: Type.Array(Scope, { description: 'What it allows.' }),
    state: OneOf<GrantState>(['active', 'expired', 'revoked'], 'Whether the service accepts it.'),
    current: Type.Boolean({ description: 'Whether it is the token of this request.' }),
    createdAt: Time('When it was created (RFC 3339).'),
    expiresAt: Type.Optional(Time('When it expires. Absent if it never does.')),
    revokedAt: Type.Optional(Time('When it was revoked. Absent if it was not.')),
    lastUsedAt: Type.Optional(
      Time('When it was last used, to the minute. Absent if it was not used yet.'),
    ),
    renewableUntil: Type.Optional(
      Time('The latest expiry of a token that is created with it. Absent if it is its own.'),
    ),
    invitation: Invitation,
    token: Type.Optional(Text('The token itself. Present only when it is created: save it.')),
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

const User = Type.Object(
  {
    user: Text('The name of the user.'),
    role: Role,
    plants: Type.Integer({
      minimum: 0,
      maximum: maxId,
      description: 'How many plants the user owns.',
    }),
    lastUsedAt: Type.Optional(
      Time('When one of their tokens was last used, to the minute. Absent if none was used.'),
    ),
    invitations: Type.Optional(
      Type.Array(Text('The public id of the invitation.'), {
        description: 'Their invitations that can still create tokens. Absent if there are none.',
      }),
    ),
  },
  {
    description: 'A user of the store. Ignore members that you do not know.',
    examples: [{ user: 'ann', role: 'member', plants: 12, lastUsedAt: '2026-02-01T09:30:00.000Z' }],
  },
);

const UserRole = Type.Object(
  { user: Text('Whose role it is.'), role: Role },
  { description: 'A user and their role.', examples: [{ user: 'bob', role: 'member' }] },
);

const Decision = Type.Object(
  {
    allowed: Type.Boolean({ description: 'Whether the user can do it.' }),
    rule: OneOf(rules, 'The reason.'),
  },
  { description: 'Whether a user can do something with a plant, and why.' },
);

const Access = Type.Object(
  {
    user: Text('The user in question.'),
    plant: Id('The plant in question.'),
    owner: Type.Optional(Text('Who owns it. Absent if there is no such plant.')),
    read: Decision,
    write: Decision,
  },
  {
    description: 'What a user can do with a plant. Ignore members that you do not know.',
    examples: [
      {
        user: 'bob',
        plant: 42,
        owner: 'alice',
        read: { allowed: true, rule: 'share' },
        write: { allowed: false, rule: 'share-for-reading' },
      },
    ],
  },
);

const Status = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 100, maximum: 999, description }));

const Webhook = Type.Object(
  {
    id: Text('Its id.'),
    url: Text('Where messages are sent.'),
    state: OneOf(
      ['active', 'failing', 'retired'],
      '`failing`: the last attempt failed, and there will be another one. `retired`: nothing is sent any more.',
    ),
    after: Text('The receiver has all changes up to this cursor of `GET /changes`.'),
    lag: Type.Integer({
      minimum: 0,
      maximum: maxId,
      description:
        'How many changes of the store there are after it, including those that the user cannot see.',
    }),
    status: Status('The status of the last response of the receiver. Absent if there was none.'),
    error: Type.Optional(Text('Why the last attempt got no response.')),
    failingSince: Type.Optional(Time('Since when every attempt has failed.')),
    nextAttemptAt: Type.Optional(Time('When the next attempt is due.')),
    reason: Type.Optional(Text('Why the webhook is retired.')),
    secret: Type.Optional(
      Text('The key of the signatures. Present only when the webhook is created: save it.'),
    ),
  },
  {
    description: 'A webhook of the calling user. Ignore members that you do not know.',
    examples: [
      {
        id: '5f2c8d0e9b1a4c37',
        url: 'https://receiver.example/plants',
        state: 'active',
        after: '9ugxnorjls.4821.mkvvx2yo.7',
        lag: 0,
        status: 204,
      },
    ],
  },
);

const WebhookTest = Type.Object(
  {
    status: Status('The status of the response. Absent if there was none.'),
    error: Type.Optional(Text('Why there was no response.')),
  },
  {
    description: 'How the receiver has responded to a test. Ignore members that you do not know.',
    examples: [{ status: 204 }],
  },
);

/** What is sent to receivers, with an example of each type. */
export const messages = {
  'plants.changed': {
    changes: [
      {
        id: 42,
        event: 'created',
        at: '2026-02-01T09:30:00.000Z',
        user: 'alice',
        plant: { name: 'Monstera deliciosa', tag: 'indoor' },
      },
    ],
  },
  'plants.reset': { reason: 'access-changed' },
  'webhook.test': {},
};
const messageTypes = Object.keys(messages);
const cursorEndReasons = Object.keys(cursorEnds);

export const WebhookMessage = Type.Object(
  {
    type: OneOf(
      messageTypes,
      '`plants.changed`: changes, as `GET /changes` lists them. `plants.reset`: changes are missing, so list all plants again. `webhook.test`: nothing has happened.',
    ),
    timestamp: Time('When the last of the changes, or else the message, was made (RFC 3339).'),
    data: Type.Object(
      {
        changes: Type.Optional(
          Type.Array(Change, { description: 'Of `plants.changed`: up to 50 changes.' }),
        ),
        reason: Type.Optional(
          OneOf(cursorEndReasons, 'Of `plants.reset`: why changes are missing.'),
        ),
      },
      { description: 'What has happened.' },
    ),
  },
  {
    description: 'A message to a webhook. Ignore members and types that you do not know.',
  },
);

const Health = Type.Object(
  { status: OneOf(['ok'], 'Always `ok`.') },
  {
    description: 'The response of a successful health check.',
    examples: [{ status: 'ok' }],
  },
);

const Readiness = Type.Object(
  {
    status: OneOf(['ok'], 'Ready for requests.'),
    reads: OneOf(['ok'], 'Reads work.'),
    writes: OneOf(
      ['ok', 'other-primary'],
      '`other-primary` if a second PostgreSQL server accepts writes. Requests do not reach it, but it must be stopped.',
    ),
  },
  {
    description: 'The response of a service that is ready.',
    examples: [{ status: 'ok', reads: 'ok', writes: 'ok' }],
  },
);

const Fault = Type.Object(
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
    detail: Text('What is wrong there and how to fix it.'),
  },
  {
    description: 'One thing that is wrong with the input: in the body or in a parameter.',
    examples: [{ pointer: '/name', detail: '"name" is missing.' }],
  },
);

const Problem = Type.Object(
  {
    type: Type.String({
      format: 'uri-reference',
      description:
        'The address of a page about this kind of problem. Its last segment is a stable name: write code against it.',
      examples: ['/problems/invalid-request'],
    }),
    title: Text('The kind of problem in a few words, for people.'),
    status: Type.Integer({
      minimum: 400,
      maximum: 599,
      description: 'The status code of the response.',
    }),
    detail: Text('What went wrong this time and how to fix it, for people.'),
    errors: Type.Optional(
      Type.Array(Fault, {
        description: 'The faults of invalid input, up to 20; `detail` counts them all.',
      }),
    ),
    reason: Type.Optional(
      OneOf(
        cursorEndReasons,
        'Why a cursor of changes is no longer valid: only of `cursor-ended`.',
      ),
    ),
  },
  { description: 'Why a request failed (RFC 9457).' },
);

/** All schemas with a name in openapi.json, those of requests too. */
export const schemas: Record<string, TSchema> = {
  NewPlant,
  Plant,
  PlantField,
  PlantPatch,
  PlantChange,
  Change,
  DeletedPlant,
  Return,
  Share,
  Shares,
  TeamShare,
  NewShare,
  ShareAccess,
  Token,
  NewToken,
  OwnToken,
  Invitation,
  Scope,
  User,
  UserRole,
  Role,
  Access,
  Decision,
  Webhook,
  NewWebhook,
  WebhookTest,
  WebhookMessage,
  Problem,
  Fault,
  Health,
  Readiness,
};
