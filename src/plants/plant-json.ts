/**
 * Plants as JSON. The threads that read and write SQLite use it: it must not load the library of the schemas.
 */
import type { Plant, PlantField } from './plant.ts';

/** The fields of a response if the request names none. */
export const defaultFields: readonly PlantField[] = ['name', 'tag'];

/** One plant as JSON with these fields in this order, exactly as in a list. */
export function plantJson(plant: Plant, fields: readonly PlantField[] = defaultFields): string {
  return `{${fields.map((field) => `"${field}":${JSON.stringify(plant[field])}`).join()}}`;
}
