/**
 * What an operation is: its input, as the only source of validation and of the types of requests, and what openapi.json
 * says about it (tools/openapi.ts).
 */
import type { TObject, TSchema } from '@sinclair/typebox';
import type { ProblemKind } from '../../problem.ts';
import { publish, Type } from '../../shared/typebox.ts';

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
  /** By status. */
  successes: Record<number, Success>;
  /** Besides those that every operation can have, or every one with a token or a body. */
  problems: readonly ProblemKind[];
}

export interface Success {
  description: string;
  /** Undefined if there is no content. */
  schema?: TSchema;
  /** What was created, and an example of its address. */
  created?: readonly [what: string, location: string];
  /** Whether a response can have the address of the next page. */
  isPage?: boolean;
}

/** A page is held in memory. */
const maxLimit = 1_000;

/** No other parameters. */
export const strict = { additionalProperties: false };

export function limitOf(items: string) {
  return Type.Optional(
    publish(
      Type.Integer({
        minimum: 1,
        maximum: maxLimit,
        description: `an integer from 1 to ${maxLimit}, or left out for the whole list`,
        examples: [100],
      }),
      {
        meaning: `The maximum number of ${items} in the response. Without it, the response has all of them.`,
      },
    ),
  );
}

export function afterOf<Schema extends TSchema>(items: string, schema: Schema) {
  return Type.Optional(
    publish(schema, {
      meaning: `The cursor: only ${items} after this one. The \`Link\` header of a page has the next one.`,
    }),
  );
}
