import type { Static, TString } from '@sinclair/typebox';
import { shownFields, type Texts } from './fields.ts';
import { maxId } from './ids.ts';
import { Type } from '../shared/typebox.ts';

const maxNameCodePoints = 200;
const maxTagCodePoints = 100;

// The description of a schema is its rule: a fragment that fits after "Use" and "must be". Problems quote it;
// openapi.json has it after the meaning of the value.

// Control characters (C0, DEL, C1) and lone surrogates: storages treat them differently.
const refused = '\\x00-\\x1F\\x7F-\\x9F\\uD800-\\uDFFF';

// The part that every regular expression engine can refuse, whether it reads bytes, UTF-16 or code points.
const refusedEverywhere = '\\x00-\\x1F\\x7F';

const without = (characters: string) => `^[^${characters}]*$`;

/** White space, then a character that is not, then any others: no lookahead, no backtracking. */
const notBlankWithout = (characters: string) =>
  `^[^\\S${characters}]*[^\\s${characters}][^${characters}]*$`;

/** Whether the text is valid for the schema of a name or a tag. */
export function conforms(
  { minLength = 0, maxLength = Infinity, pattern = '' }: TString,
  text: string,
) {
  const codePoints = Array.from(text).length;
  return codePoints >= minLength && codePoints <= maxLength && new RegExp(pattern, 'u').test(text);
}

/** The name of a plant, user or store. */
export const Name = Type.String({
  minLength: 1,
  maxLength: maxNameCodePoints,
  pattern: notBlankWithout(refused),
  portablePattern: notBlankWithout(refusedEverywhere),
  description: `a string of 1 to ${maxNameCodePoints} characters (code points), not only white space, without control characters`,
  meaning: 'What the plant is called.',
  examples: ['Monstera deliciosa'],
});

export const Tag = Type.String({
  maxLength: maxTagCodePoints,
  pattern: without(refused),
  portablePattern: without(refusedEverywhere),
  description: `a string of at most ${maxTagCodePoints} characters (code points), without control characters`,
  meaning: 'A word that helps you to find the plant. By default, the tag is empty.',
  examples: ['indoor'],
});

export const SearchText = Type.String({
  minLength: 1,
  maxLength: maxTagCodePoints,
  pattern: notBlankWithout(refused),
  portablePattern: notBlankWithout(refusedEverywhere),
  format: 'search-text',
  description: `a string of 1 to ${maxTagCodePoints} characters (code points), not only white space and accents, without control characters`,
  meaning: 'A part of a name or a tag.',
  examples: ['monstera'],
});

export const PlantId = Type.Integer({
  minimum: 1,
  maximum: maxId,
  description: `an integer from 1 to ${maxId}`,
  meaning:
    'The id of the plant. By default, the service assigns the number after the largest id that the store has ever held. If no such number is left, it assigns a random free one.',
  examples: [42],
});

const texts = { name: Name, tag: Tag } satisfies Texts<TString>;

/** A plant as it is stored. */
const Plant = Type.Object({ id: PlantId, ...texts });
export type Plant = Static<typeof Plant>;

/** A plant as a client sends it. `tag` defaults to `""`, and `id` to the next one. */
export const NewPlant = Type.Object(
  { name: Name, id: Type.Optional(PlantId), tag: Type.Optional(Tag) },
  {
    additionalProperties: false,
    description: 'a JSON object with the fields name, id and tag',
    meaning: 'A plant to create.',
    examples: [{ name: 'Monstera deliciosa', tag: 'indoor' }],
  },
);
export type NewPlant = Static<typeof NewPlant>;

/** What changes in a plant (RFC 7396): members that are left out stay the same, and `null` clears the tag. */
export const PlantPatch = Type.Object(
  {
    name: Type.Optional({ ...Name, meaning: 'What the plant is called from now on.' }),
    tag: Type.Optional(
      Type.Unsafe<string | null>({
        ...Tag,
        type: ['string', 'null'],
        description: `${Tag.description}, or null to clear it`,
        meaning: 'The new tag.',
      }),
    ),
  },
  {
    additionalProperties: false,
    minProperties: 1,
    description: 'a JSON object with the field name, tag or both',
    meaning: 'What to change. Fields that you leave out stay as they are.',
    examples: [{ name: 'Monstera deliciosa' }],
  },
);
export type PlantPatch = Static<typeof PlantPatch>;

export const PlantField = Type.Unsafe<(typeof shownFields)[number]>({
  type: 'string',
  enum: [...shownFields],
});
export type PlantField = Static<typeof PlantField>;
