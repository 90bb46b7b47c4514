/**
 * TypeBox, to define schemas. An import loads it as 200 ES modules. As CommonJS, it takes about 6 ms and 1 MiB
 * less at each start.
 */
import { createRequire } from 'node:module';
import type * as TypeBox from '@sinclair/typebox';
import type { TSchema } from '@sinclair/typebox';

export const { Type, OptionalKind }: typeof TypeBox = createRequire(import.meta.url)(
  '@sinclair/typebox',
);

/** What openapi.json shows of a schema besides its rule. */
export interface Published {
  /** What the value means in this place, in complete sentences. */
  meaning: string;
  /** A pattern that every language supports, instead of the one that the service checks. */
  pattern?: string;
}

/** TypeBox copies symbols with a schema, and Ajv does not see them. */
const published = Symbol('published');

/** Attaches what openapi.json shows of the schema. Its `description` remains its rule. */
export function publish<Schema extends TSchema>(schema: Schema, shown: Published): Schema {
  return { ...schema, [published]: { ...publishedOf(schema), ...shown } };
}

/** Undefined for a schema that openapi.json shows as it is. */
export function publishedOf(schema: object): Published | undefined {
  return published in schema ? (schema[published] as Published) : undefined; // only `publish` sets it
}
