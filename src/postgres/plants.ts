/**
 * Plants in PostgreSQL: the statements, and what they yield. Changes to plants are made in groups
 * (writer.ts).
 */
import { reachesWholeStore, type Identity } from '../access.ts';
import { idMax } from '../ids.ts';
import type { Plant, PlantField } from '../plant.ts';
import type { PlantPage, PlantQuery } from '../storage.ts';
import type { Row, Statement } from './connection.ts';

// The columns of an index in their order, so that a list is a range of it.
const lists = {
  store: 'store = $1',
  storeTag: 'store = $1 AND tag = $5',
  owner: 'store = $1 AND owner = $5',
  ownerTag: 'store = $1 AND owner = $5 AND tag = $6',
};
type ListKind = keyof typeof lists;

/**
 * A page in one row, with the version of the store that it shows, and whether others follow. The text
 * is put together here, because what PostgreSQL itself makes of an object has spaces in it.
 */
export function listSql(kind: ListKind, fields: readonly PlantField[]): Statement {
  const range = `plant_store.plants WHERE ${lists[kind]} AND id <= $3`;
  const members = fields.map((field) => `'"${field}":' || ${jsonOf[field]}`).join(` || ',' || `);
  return {
    name: `list_${kind}_${fields.join('_')}`,
    text: `
      SELECT page.json, page.last,
             page.plants = $4 AND EXISTS (SELECT 1 FROM ${range} AND id > page.last) AS more,
             (SELECT version FROM plant_store.stores WHERE store = $1) AS version
      FROM (
        SELECT coalesce(string_agg('{' || ${members} || '}', ',' ORDER BY id), '') AS json,
               max(id) AS last, count(*) AS plants
        FROM (SELECT id, name, tag FROM ${range} AND id > $2 ORDER BY id LIMIT $4) AS plants
      ) AS page`,
  };
}

const jsonOf: Record<PlantField, string> = {
  id: 'id',
  name: 'to_json(name)::text',
  tag: 'to_json(tag)::text',
};

/** What a row of it holds; an aggregate has one. */
type PageRow = readonly [json: string, last: number | null, more: boolean, version: number];

/** One plant is found by its key; an owner that is null does not count. */
export const findSql: Statement = {
  name: 'find',
  text: `
    SELECT id, name, tag FROM plant_store.plants
    WHERE store = $1 AND id = $2 AND ($3::bigint IS NULL OR owner = $3)`,
};

const listStatements = new Map<string, Statement>();

export function listOf(
  caller: Identity,
  { after, upTo = idMax, limit, tag, fields }: PlantQuery,
): { statement: Statement; values: readonly unknown[] } {
  const whole = reachesWholeStore(caller);
  const reach = whole ? 'store' : 'owner';
  const kind: ListKind = tag === undefined ? reach : `${reach}Tag`;
  const key = `${kind} ${fields.join()}`;
  const statement = listStatements.get(key) ?? listSql(kind, fields);
  listStatements.set(key, statement);
  const values: unknown[] = [caller.store, after, upTo, limit];
  if (!whole) values.push(caller.user);
  if (tag !== undefined) values.push(tag);
  return { statement, values };
}

export function pageOf(rows: readonly Row[]): { page: PlantPage; version: number } {
  const [json, last, more, version] = rows[0] as unknown as PageRow;
  return { page: { json, next: more ? (last ?? undefined) : undefined }, version };
}

export function plantOf([id, name, tag]: Row): Plant {
  return { id, name, tag } as Plant; // the columns of findSql
}

/** The owner whose plants a caller reaches; null for all of them. */
export function ownerFor(caller: Identity): number | null {
  return reachesWholeStore(caller) ? null : caller.user;
}
