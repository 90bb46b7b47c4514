/**
 * Plants in PostgreSQL: the statements, and what they yield. Changes to plants are made in groups
 * (writer.ts).
 */
import { reachesWholeStore, type Identity } from '../access.ts';
import { idMax } from '../ids.ts';
import { plantJson, type Plant } from '../plant.ts';
import type { PlantPage, PlantQuery } from '../storage.ts';
import type { Step } from '../walk.ts';
import type { Row, Statement } from './connection.ts';

// The columns of an index in their order, so that a list is a range of it.
const lists = {
  store: 'store = $1',
  storeTag: 'store = $1 AND tag = $5',
  owner: 'store = $1 AND owner = $5',
};
type ListKind = keyof typeof lists;

/**
 * A page, and one plant more where others follow. The JSON is made here and not there: for PostgreSQL
 * it would be half of what a page costs.
 */
export function listSql(kind: ListKind): Statement {
  return {
    name: `list_${kind}`,
    text: `
      SELECT id, name, tag FROM plant_store.plants
      WHERE ${lists[kind]} AND id > $2 AND id <= $3 ORDER BY id LIMIT $4::bigint + 1`,
  };
}

/** Plants that a step of a walk takes: some milliseconds of the server. */
const stepPlants = 10_000;

/** Where a step over a member's plants ends. */
export const endOfStepSql: Statement = {
  name: 'end_of_step',
  text: `
    SELECT id FROM plant_store.plants
    WHERE store = $1 AND owner = $2 AND id > $3 AND id <= $4
    ORDER BY id LIMIT 1 OFFSET ${stepPlants - 1}`,
};

/**
 * A member's plants with a tag, which no index has (decision 7). The inner LIMIT, which a step never
 * exceeds, keeps PostgreSQL from another plan: the index by tag is a walk over the plants of all owners.
 */
export const stepSql: Statement = {
  name: 'step',
  text: `
    SELECT id, name, tag FROM (
      SELECT id, name, tag FROM plant_store.plants
      WHERE store = $1 AND owner = $5 AND id > $2 AND id <= $3 ORDER BY id LIMIT ${stepPlants}
    ) AS walked
    WHERE tag = $6 ORDER BY id LIMIT $4::bigint + 1`,
};

/** One plant is found by its key; an owner that is null does not count. */
export const findSql: Statement = {
  name: 'find',
  text: `
    SELECT id, name, tag FROM plant_store.plants
    WHERE store = $1 AND id = $2 AND ($3::bigint IS NULL OR owner = $3)`,
};

export function listOf(
  caller: Identity,
  { after, upTo = idMax, limit, tag }: PlantQuery,
): { statement: Statement; values: readonly unknown[] } {
  const range = [caller.store, after, upTo, limit];
  if (!reachesWholeStore(caller)) {
    return { statement: listSql('owner'), values: [...range, caller.user] };
  }
  if (tag === undefined) return { statement: listSql('store'), values: range };
  return { statement: listSql('storeTag'), values: [...range, tag] };
}

/** `walkedTo` is what `endOfStepSql` has found. */
export function stepOf(
  rows: readonly Row[],
  query: PlantQuery,
  walkedTo: number | undefined,
): Step {
  const plants = Math.min(rows.length, query.limit);
  return {
    json: pageOf(rows, query).json,
    plants,
    last: plants === query.limit ? plantOf(rows[plants - 1] ?? []).id : undefined,
    moreFollow: rows.length > query.limit,
    walkedTo,
  };
}

export function pageOf(rows: readonly Row[], { limit, fields }: PlantQuery): PlantPage {
  const plants = rows.slice(0, limit).map(plantOf);
  const next = rows.length > limit ? plants.at(-1)?.id : undefined;
  return { json: plants.map((plant) => plantJson(plant, fields)).join(), next };
}

export function plantOf([id, name, tag]: Row): Plant {
  return { id, name, tag } as Plant; // the columns of each statement here
}

/** The owner whose plants a caller reaches; null for all of them. */
export function ownerFor(caller: Identity): number | null {
  return reachesWholeStore(caller) ? null : caller.user;
}
