/**
 * An operation: its input, from which validation and the types of requests derive, and its description in openapi.json.
 */
import type { TObject, TProperties, TSchema } from '@sinclair/typebox';
import type { Scope } from '../../access/access.ts';
import { Type } from '../../shared/typebox.ts';
import type { Storage } from '../../storage.ts';
import type { ProblemKind } from '../../problem.ts';
import type { Authentication, Authorized, PageReader } from '../auth/auth.ts';
import type { Lists } from '../response/send-list.ts';

declare module 'fastify' {
  interface FastifySchema {
    operationId?: string;
    tags?: string[];
  }
}

export interface Operation {
  summary: string;
  description: string;
  /** A token needs one of these, if there are any. Absent if the operation needs no token. */
  scopes?: readonly Scope[];
  /** Whether an invitation can call it too. */
  forInvitations?: true;
  /** Whether only managers can call it. */
  forManagers?: true;
  params?: TObject;
  querystring?: TObject;
  body?: TSchema;
  requestHeaders?: readonly ('If-Match' | 'If-None-Match' | 'Idempotency-Key')[];
  /** By status. */
  successes: Record<number, Success>;
  /** Besides those that every operation can have, or every one with a token, with scopes or with a body. */
  problems?: readonly ProblemKind[];
}

export interface Success {
  description: string;
  /** A name in tools/openapi-schemas.ts, because the service validates nothing of what it sends. Absent without content. */
  schema?: string;
  /** The same for each item of a list. */
  items?: string;
  /** What was created, and an example of its address. */
  created?: readonly [what: string, location: string];
  headers?: readonly (
    'Change-Position' | 'ETag' | 'Idempotent-Replayed' | 'Link' | 'Total-Count'
  )[];
}

/** Input with these members and no others. */
export function strict<Properties extends TProperties>(properties: Properties) {
  return Type.Object(properties, { additionalProperties: false });
}

/** The operations of a tag, by their ids. Those that need a token refuse parameters that they do not name. */
export function operationsOf<const Table extends Record<string, Operation>>(
  tag: string,
  table: Table,
) {
  const operations = Object.entries(table).map(([operationId, operation]) => {
    const querystring = operation.scopes && { querystring: strict({}) };
    return [operationId, { operationId, tags: [tag], ...querystring, ...operation }];
  });
  // Entries lose the types of their keys.
  return Object.fromEntries(operations) as {
    [Id in keyof Table]: Table[Id] & { operationId: string; tags: string[] };
  };
}

/** What the routes of plants, shares and tokens need. */
export interface RouteOptions {
  storage: Storage;
  optionsOf: ReturnType<typeof optionsFor>;
  lists: Lists;
  /** Prefix of URLs in responses, without a trailing slash; empty for path-absolute URLs. */
  baseUrl: string;
}

/** Returns a function for the options of routes: who can call an operation, and with which input. */
export function optionsFor(authentication: Authentication) {
  return <Schema extends Authorized>(schema: Schema, readPage?: PageReader) => ({
    onRequest: authentication.requireScope(schema, readPage),
    schema,
  });
}

/** There is a maximum, because a page is held in memory. */
export const maxLimit = 1_000;

/** `whole` is what the response has without a limit. */
export function limitOf(items: string, whole = 'the whole list') {
  return Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: maxLimit,
      description: `an integer from 1 to ${maxLimit}, or no "limit" for ${whole}`,
      meaning: `The maximum number of ${items} in the response.`,
      examples: [100],
    }),
  );
}

export function afterOf<Schema extends TSchema>(items: string, schema: Schema) {
  const meaning = `The cursor: the response has only ${items} after this one. The \`Link\` header of a page has the next cursor.`;
  return Type.Optional({ ...schema, meaning });
}
