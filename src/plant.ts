import type { Static } from '@sinclair/typebox';
import { idMax } from './ids.ts';
import { Type } from './typebox.ts';

export const nameCodePointsMax = 200;
export const tagCodePointsMax = 100;

// The description of a schema is one sentence fragment that fits behind "must be": the reference
// page shows it and a refusal quotes it, so the rule is worded once.

// Control characters (C0, DEL, C1) and lone surrogates: no two storages treat them alike.
const plainText = '[^\\u0000-\\u001F\\u007F-\\u009F\\uD800-\\uDFFF]*$';

/** Any text that people name things with: plants, users, stores. */
export const Name = Type.String({
  minLength: 1,
  maxLength: nameCodePointsMax,
  pattern: `^(?!\\s*$)${plainText}`,
  description: `a string of 1 to ${nameCodePointsMax} Unicode code points, at least one of them not white space, without control characters and lone surrogates`,
  examples: ['Monstera deliciosa'],
});

export const Tag = Type.String({
  maxLength: tagCodePointsMax,
  pattern: `^${plainText}`,
  description: `a string of at most ${tagCodePointsMax} Unicode code points, without control characters and lone surrogates`,
  examples: ['indoor'],
});

export const PlantId = Type.Integer({
  minimum: 1,
  maximum: idMax,
  description: `an integer from 1 to ${idMax}`,
  examples: [42],
});

/** A plant as it is stored. */
export const Plant = Type.Object({ id: PlantId, name: Name, tag: Tag });
export type Plant = Static<typeof Plant>;

/** A plant as it is sent to be created: no `tag` means `""`, no `id` means the next one. */
export const NewPlant = Type.Object(
  { name: Name, id: Type.Optional(PlantId), tag: Type.Optional(Tag) },
  {
    title: 'NewPlant',
    additionalProperties: false,
    description: 'a JSON object with the fields name, id and tag',
    examples: [{ name: 'Monstera deliciosa', tag: 'indoor' }],
  },
);
export type NewPlant = Static<typeof NewPlant>;

/**
 * A new one also goes into changes.ts, archive.ts, lists.ts, http/operations.ts, and the plants.ts, archive.ts and
 * migrations of each engine: the compiler does not read SQL.
 */
export const plantFields = ['id', 'name', 'tag'] as const;
export type PlantField = (typeof plantFields)[number];

/** The fields that are answered unless others are asked for. */
export const defaultFields: readonly PlantField[] = ['name', 'tag'];

/** One plant as JSON with these fields in this order: the bytes that a list has for it. */
export function plantJson(plant: Plant, fields: readonly PlantField[] = defaultFields): string {
  return `{${fields.map((field) => `"${field}":${JSON.stringify(plant[field])}`).join()}}`;
}
