/**
 * The fields of a plant that a call selects, and the type of the plant that it gets.
 */
import type { CallOptions } from './options.ts';
import type { Plant as PartialPlant, PlantField } from './types.ts';

/** A plant with all its fields. */
export type Plant = Required<PartialPlant>;

export type Fields = readonly PlantField[];

/** The fields of a result if a call names none. */
export type DefaultFields = readonly ['name', 'tag'];

/** A plant with these fields. Each is optional if the compiler does not know which fields you select. */
export type PlantWith<F extends Fields> = number extends F['length']
  ? Partial<Plant>
  : Pick<Plant, F[number]>;

export interface FieldsOptions<F extends Fields> extends CallOptions {
  /** Which fields a plant has; by default `name` and `tag`. */
  fields?: F | undefined;
}

export const defaultFields: DefaultFields = ['name', 'tag'];

export function select<F extends Fields>(
  plant: Partial<Plant>,
  fields: Fields = defaultFields,
): PlantWith<F> {
  const entries = fields.map((field) => [field, plant[field]]);
  return Object.fromEntries(entries) as PlantWith<F>; // `fields` is F, or absent
}
