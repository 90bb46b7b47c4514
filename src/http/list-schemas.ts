/**
 * The parameters of lists. Schemas are the only source of validation, of the types of requests and of the OpenAPI
 * document.
 */
import type { TSchema } from '@sinclair/typebox';
import { publish, Type } from '../typebox.ts';

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
