/**
 * What an operation is: its input, as the only source of validation and of the types of requests, and what it does, for
 * openapi.json. Its responses are described in tools/openapi-responses.ts, because only openapi.json needs that.
 */
import type { TObject, TSchema } from '@sinclair/typebox';
import { Type } from '../../shared/typebox.ts';
import type { Storage } from '../../storage.ts';
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
}

/** What the routes of plants, shares and tokens need. */
export interface RouteOptions extends ListOptions {
  storage: Storage;
  authentication: Authentication;
}

/** A page is held in memory. */
const maxLimit = 1_000;

/** No other parameters. */
export const strict = { additionalProperties: false };

export function limitOf(items: string) {
  return Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: maxLimit,
      description: `an integer from 1 to ${maxLimit}, or left out for the whole list`,
      meaning: `The maximum number of ${items} in the response. Without it, the response has all of them.`,
      examples: [100],
    }),
  );
}

export function afterOf<Schema extends TSchema>(items: string, schema: Schema) {
  const meaning = `The cursor: only ${items} after this one. The \`Link\` header of a page has the next one.`;
  return Type.Optional({ ...schema, meaning });
}
