/**
 * An operation: its input, from which validation and the types of requests derive, and its description in openapi.json.
 */
import type { TObject, TSchema } from '@sinclair/typebox';
import { Type } from '../../shared/typebox.ts';
import type { Storage } from '../../storage.ts';
import type { ProblemKind } from '../../problem.ts';
import type { Authentication } from '../auth/auth.ts';
import type { ListOptions } from '../response/send-list.ts';

declare module 'fastify' {
  interface FastifySchema {
    operationId?: string;
  }
}

export interface Operation {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  /** Empty if it needs no token. */
  security?: [];
  params?: TObject;
  querystring?: TObject;
  body?: TSchema;
  requestHeaders?: readonly ('If-Match' | 'If-None-Match' | 'Idempotency-Key')[];
  /** By status. */
  successes: Record<number, Success>;
  /** Besides those that every operation can have, or every one with a token or a body. */
  problems: readonly ProblemKind[];
}

export interface Success {
  description: string;
  /** A name in tools/openapi-schemas.ts, because the service validates nothing of what it sends. Absent without content. */
  schema?: string;
  /** The same for each item of a list. */
  items?: string;
  /** What was created, and an example of its address. */
  created?: readonly [what: string, location: string];
  headers?: readonly ('ETag' | 'Idempotent-Replayed' | 'Link')[];
}

/** What the routes of plants, shares and tokens need. */
export interface RouteOptions extends ListOptions {
  storage: Storage;
  authentication: Authentication;
}

/** There is a maximum, because a page is held in memory. */
const maxLimit = 1_000;

/** No other parameters. */
export const strict = { additionalProperties: false };

export function limitOf(items: string) {
  return Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: maxLimit,
      description: `an integer from 1 to ${maxLimit}, or no "limit" for the whole list`,
      meaning: `The maximum number of ${items} in the response.`,
      examples: [100],
    }),
  );
}

export function afterOf<Schema extends TSchema>(items: string, schema: Schema) {
  const meaning = `The cursor: the response has only ${items} after this one. The \`Link\` header of a page has the next cursor.`;
  return Type.Optional({ ...schema, meaning });
}
