// Generated from openapi.json by `npm run openapi`. Do not edit it.

/** A plant to create. A JSON object with the fields name, id and tag. */
export interface NewPlant {
  /** What the plant is called. A string of 1 to 200 characters (code points), not only white space, without control characters. U+0080 to U+009F and lone surrogates are refused too. */
  name: string;
  /** The id of the plant. By default, the service assigns the number after the largest id that the store has ever held. If no such number is left, it assigns a random free one. An integer from 1 to 9007199254740991. */
  id?: number;
  /** A word that helps you to find the plant. By default, the tag is empty. A string of at most 100 characters (code points), without control characters. U+0080 to U+009F and lone surrogates are refused too. */
  tag?: string;
}

/** A plant with the fields that `fields` names: `name` and `tag` by default. If a token without `plants:read` changes a plant, the response has only those that the request has sent, and the id. */
export interface Plant {
  /** What the plant is called, exactly as it was sent. */
  name?: string;
  /** Its tag; empty if it has none. */
  tag?: string;
  /** Its id, unique in the store. Present only if `fields` names it. */
  id?: number;
  /** The name of the user who owns it. Present only if `fields` names it. */
  owner?: string;
  /** What you can do with it: `write` includes changes. Present only if `fields` names it. */
  access?: 'read' | 'write';
}

export type PlantField = 'id' | 'name' | 'tag' | 'owner' | 'access';

/** What to change. Fields that you leave out stay as they are. A JSON object with the field name, tag or both. */
export interface PlantPatch {
  /** What the plant is called from now on. A string of 1 to 200 characters (code points), not only white space, without control characters. U+0080 to U+009F and lone surrogates are refused too. */
  name?: string;
  /** The new tag. A string of at most 100 characters (code points), without control characters, or null to clear it. U+0080 to U+009F and lone surrogates are refused too. */
  tag?: string | null;
}

/** A change to a plant. Ignore members that you do not know. */
export interface PlantChange {
  /** What happened to the plant. `moved`: whoever runs the service has given it to another user. */
  event: 'created' | 'updated' | 'deleted' | 'restored' | 'moved';
  /** When it happened (RFC 3339). */
  at: string;
  /** The name of the user who did it. Absent if it was whoever runs the service. */
  user?: string;
  /** The plant before the change. Absent if there was none. */
  before?: {
    /** The name that the plant had. */
    name: string;
    /** The tag that it had; empty if there was none. */
    tag: string;
    /** The name of the user who owned it. */
    owner: string;
  };
}

/** A change to a plant, and the plant as it is now, which is absent if it is gone or you do not have access to it any more. Ignore members that you do not know. */
export interface Change {
  /** The id of the plant. */
  id: number;
  /** What happened. `deleted` if `plant` is absent. Update a copy by `plant`: an event can be one of several. */
  event: 'created' | 'updated' | 'deleted' | 'restored' | 'moved';
  /** When the change was made (RFC 3339). */
  at: string;
  /** The name of the user who did it. Absent if it was whoever runs the service, or if you lost access to the plant. */
  user?: string;
  plant?: Plant;
}

/** A deleted plant that can be restored. Ignore members that you do not know. */
export interface DeletedPlant {
  /** The id that the plant had. */
  id: number;
  /** Its name when it was deleted. */
  name: string;
  /** Its tag; empty if it had none. */
  tag: string;
  /** The name of the user whose plant it was. */
  owner: string;
  /** When it was deleted (RFC 3339). */
  deletedAt: string;
  /** The name of the user who deleted it. Absent if it was whoever runs the service. */
  deletedBy?: string;
}

/** What a return to a time does. Ignore members that you do not know. */
export interface Return {
  /** The time, as it was sent. */
  since: string;
  /** The plants that differ: `now`, which is absent if they are deleted, and `before`, which is absent if they were not there. */
  plants: {
    /** The id of the plant that differs. */
    id: number;
    /** `restored`: it comes back. `deleted`: it was added since. `updated`: it gets its earlier name and tag. It is not put back with `changed-meanwhile`, with `id-used-again` by another user, or with `not-in-log`. */
    outcome: string;
    now?: Plant;
    before?: Plant;
  }[];
  /** The time just before the return, which undoes it. Absent from a preview. */
  undoSince?: string;
}

/** A share between the calling user and another one. */
export interface Share {
  /** The name of the other user. */
  user: string;
  access: ShareAccess;
  /** Present if the other user shares only with everyone. */
  team?: boolean;
}

/** The shares of the calling user. */
export interface Shares {
  /** Users who can access the plants of the calling user. */
  given: Share[];
  /** Users whose plants the calling user can access: those who shared first, at most 999. */
  received: Share[];
}

/** What the calling user shares with everyone in the store. */
export interface TeamShare {
  access: ShareAccess;
}

/** `read`: the user can list and get the plants. `write`: the user can also change, delete and restore them. Read or write. */
export type ShareAccess = 'read' | 'write';

/** What a token grants, to whom and until when. Ignore members that you do not know. */
export interface Token {
  /** The public id of the token, which does not grant access. */
  id: string;
  /** The name of the calling user. */
  user: string;
  /** The name of the store that the user belongs to. */
  store: string;
  /** The role of the user: a `member` can access their own plants and those shared with them, a `manager` every plant in the store. */
  role: 'member' | 'manager';
  /** The operations that the token allows. */
  scopes: Scope[];
  /** When the token expires (RFC 3339). Absent if it never does. */
  expiresAt?: string;
  /** The latest expiry of a token that takes its place. Absent if it is that of the token. Of an invitation: when the tokens that it creates expire. Absent if they do not. */
  renewableUntil?: string;
  invitation?: Invitation;
  /** For managers, if the service makes backups: when the last one began that was restored and compared. Absent if there is none yet. */
  lastBackup?: string;
}

/** The token to create. Without a body, it grants the same as the token of the request. A JSON object with the fields scopes, expiresAt, renewableUntil, label and invitation. */
export interface NewToken {
  /** What the token allows. The default, and the maximum, are the scopes of the token of the request. A list of at least one of plants:read, plants:write, shares:write, webhooks:write, users:write, each at most once. */
  scopes?: Scope[];
  /** When the token expires. The default is the expiry of the token of the request, and the latest time its `renewableUntil`, if it has one. A time with an offset from UTC, as in RFC 3339. */
  expiresAt?: string;
  /** For a device that stays signed in: until when the token can be used to create another one that takes its place. Without it, what the token creates does not outlast it. A time with an offset from UTC, as in RFC 3339. */
  renewableUntil?: string;
  /** A note that helps you to distinguish your tokens. A string of at most 100 characters (code points), without control characters. U+0080 to U+009F and lone surrogates are refused too. */
  label?: string;
  /** Makes the token an invitation: it can only create tokens for the user, with these scopes and up to this expiry. A JSON object with the fields uses and expiresAt. */
  invitation?: {
    /** How many tokens it can create: 1 by default. An integer from 1 to 100. */
    uses?: number;
    /** When the invitation ends: after 7 days by default, and at the latest. A time with an offset from UTC, as in RFC 3339. */
    expiresAt?: string;
  };
}

/** A token of the calling user. Ignore members that you do not know. */
export interface OwnToken {
  /** Its public id, which does not grant access. */
  id: string;
  /** Its note; empty if there is none. */
  label: string;
  /** What it allows. */
  scopes: Scope[];
  /** Whether the service accepts it. */
  state: 'active' | 'expired' | 'revoked';
  /** Whether it is the token of this request. */
  current: boolean;
  /** When it was created (RFC 3339). */
  createdAt: string;
  /** When it expires. Absent if it never does. */
  expiresAt?: string;
  /** When it was revoked. Absent if it was not. */
  revokedAt?: string;
  /** When it was last used, to the minute. Absent if it was not used yet. */
  lastUsedAt?: string;
  /** The latest expiry of a token that is created with it. Absent if it is its own. */
  renewableUntil?: string;
  invitation?: Invitation;
  /** The token itself. Present only when it is created: save it. */
  token?: string;
}

/** Present if the token is an invitation, which only creates tokens. */
export interface Invitation {
  /** How many tokens it can still create. */
  uses: number;
}

/** One kind of operation. */
export type Scope =
  'plants:read' | 'plants:write' | 'shares:write' | 'webhooks:write' | 'users:write';

/** A user of the store. Ignore members that you do not know. */
export interface User {
  /** The name of the user. */
  user: string;
  role: Role;
  /** How many plants the user owns. */
  plants: number;
  /** When one of their tokens was last used, to the minute. Absent if none was used. */
  lastUsedAt?: string;
  /** Their invitations that can still create tokens. Absent if there are none. */
  invitations?: string[];
}

/** `member`: own plants, and those shared with the user. `manager`: every plant in the store. Member or manager. */
export type Role = 'member' | 'manager';

/** What a user can do with a plant. Ignore members that you do not know. */
export interface Access {
  /** The user in question. */
  user: string;
  /** The plant in question. */
  plant: number;
  /** Who owns it. Absent if there is no such plant. */
  owner?: string;
  read: Decision;
  write: Decision;
}

/** Whether a user can do something with a plant, and why. */
export interface Decision {
  /** Whether the user can do it. */
  allowed: boolean;
  /** The reason. */
  rule:
    | 'owner'
    | 'manager'
    | 'share'
    | 'share-for-reading'
    | 'share-not-in-effect'
    | 'no-access'
    | 'no-plant';
}

/** A message to a webhook. Ignore members and types that you do not know. */
export interface WebhookMessage {
  /** `plants.changed`: changes, as `GET /changes` lists them. `plants.reset`: changes are missing, so list all plants again. `webhook.test`: nothing has happened. */
  type: 'plants.changed' | 'plants.reset' | 'webhook.test';
  /** When the last of the changes, or else the message, was made (RFC 3339). */
  timestamp: string;
  /** What has happened. */
  data: {
    /** Of `plants.changed`: up to 50 changes. */
    changes?: Change[];
    /** Of `plants.reset`: why changes are missing. */
    reason?: 'expired' | 'restored' | 'access-changed';
  };
}

/** Why a request failed (RFC 9457). */
export interface Problem {
  /** The address of a page about this kind of problem. Its last segment is a stable name: write code against it. */
  type: string;
  /** The kind of problem in a few words, for people. */
  title: string;
  /** The status code of the response. */
  status: number;
  /** What went wrong this time and how to fix it, for people. */
  detail: string;
  /** The faults of invalid input, up to 20; `detail` counts them all. */
  errors?: Fault[];
  /** Why a cursor of changes is no longer valid: only of `cursor-ended`. */
  reason?: 'expired' | 'restored' | 'access-changed';
}

/** One thing that is wrong with the input: in the body or in a parameter. */
export interface Fault {
  /** The place in the body, as a JSON Pointer (RFC 6901); empty for the whole body. */
  pointer?: string;
  /** The name of the parameter in the query, the path or the headers. */
  parameter?: string;
  /** What is wrong there and how to fix it. */
  detail: string;
}

/** The kinds of problems that the service responds with. */
export type ProblemKind =
  | 'invalid-request'
  | 'invalid-token'
  | 'insufficient-scope'
  | 'token-restricted'
  | 'manager-required'
  | 'plant-read-only'
  | 'quota-exceeded'
  | 'plant-not-found'
  | 'path-not-found'
  | 'changes-not-kept'
  | 'method-not-allowed'
  | 'request-timeout'
  | 'share-not-found'
  | 'token-not-found'
  | 'user-not-found'
  | 'webhook-not-found'
  | 'webhooks-disabled'
  | 'id-taken'
  | 'last-manager'
  | 'user-owns-plants'
  | 'too-many-shares'
  | 'too-many-tokens'
  | 'too-many-webhooks'
  | 'cursor-ended'
  | 'invitation-used'
  | 'precondition-failed'
  | 'body-too-large'
  | 'unsupported-media-type'
  | 'expectation-failed'
  | 'idempotency-key-reused'
  | 'rate-limited'
  | 'headers-too-large'
  | 'internal-error'
  | 'method-not-implemented'
  | 'overloaded'
  | 'storage-full'
  | 'storage-unavailable'
  | 'provider-unavailable'
  | 'outcome-unknown'
  | 'version-not-supported';

/** What a response can have of a plant. */
export const allFields = ['id', 'name', 'tag', 'owner', 'access'] as const;

/** The texts of a plant. */
export const textFields = ['name', 'tag'] as const;

/** Those that can be empty. */
export const optionalTexts = ['tag'] as const;
