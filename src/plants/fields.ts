/**
 * The fields of a plant: columns, rows, messages, the log, CSV, commands and forms follow from this list, and the rules of
 * each field are in plant.ts. The writer thread and every engine load this module, so it must not load the library of
 * the schemas.
 */
import type { OwnedPlant } from './plant-storage.ts';

/** The texts that a plant has besides its id. A new one needs a column in `plants` and `changes` of both engines. */
export const textFields = ['name', 'tag'] as const;
export type TextField = (typeof textFields)[number];

/** Those that can be left out: they are then empty. */
export const optionalTexts = textFields.filter((field) => field !== 'name');

/** What is stored of a plant for its client, in the default order of columns. */
export const plantFields = ['id', ...textFields] as const;

/** What a response can show: also the name of the owner, and what the caller can do with the plant. */
export const shownFields = [...plantFields, 'owner', 'access'] as const;

/** The texts of a plant, or something else for each of them. */
export type Texts<Value = string> = Record<TextField, Value>;

/** Adds a value for each text to a new object, because to copy its members costs more. */
export function withTexts<Rest extends object, Value>(
  rest: Rest,
  valueOf: (field: TextField, at: number) => Value,
): Rest & Texts<Value> {
  const all: Partial<Texts<Value>> = rest;
  let at = 0;
  for (const field of textFields) all[field] = valueOf(field, at++);
  return all as Rest & Texts<Value>; // the loop has set each
}

export function eachText<Value>(valueOf: (field: TextField, at: number) => Value): Texts<Value> {
  return withTexts({}, valueOf);
}

/** The texts of what a client has sent, or of a plant. */
export function textsOf(plant: Partial<Texts<string | null | undefined>>): Texts {
  return eachText((field) => plant[field] ?? '');
}

/** The texts in the order of the columns. */
export function textValues<Value>(texts: Texts<Value>): Value[] {
  return textFields.map((field) => texts[field]);
}

/** The columns of the texts in SQL. */
export const textColumns = textFields.join(', ');

/** What statements select of a plant: the columns `id`, `owner` and `textColumns`, behind any others. */
export type PlantRow = readonly [id: number, owner: number, ...texts: string[]];

export function plantOf(id: number, owner: number, texts: readonly string[]): OwnedPlant {
  return withTexts({ id, owner }, (_, at) => texts[at] ?? '');
}
