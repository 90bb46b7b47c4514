/**
 * The plants of the stores, as objects and as SQL. Plant `id` belongs to user `id % users + 1`, so the plants
 * of a user are spread over the store. wrk.lua uses the same rule.
 */

export const plantsPerUser = 100;

/** The first id of the disposable plants, which a workload deletes: far above the ids that a store assigns. */
export const disposableFirstId = 1_000_000_000_000;

export function plantOf(id: number): { name: string; tag: string } {
  return { name: `Monstera deliciosa ${id}`, tag: `bed ${id % 20}` };
}

/** A WITH clause with the rows generated (id, owner, tag, name) of `count` plants, for an INSERT. */
export function generatePlantsSql(firstId: number, count: number, users: number): string {
  return `
    WITH RECURSIVE
    ids (id) AS (
      VALUES (${firstId}) UNION ALL SELECT id + 1 FROM ids WHERE id < ${firstId + count - 1}
    ),
    generated (id, owner, tag, name) AS (
      SELECT id, id % ${users} + 1, 'bed ' || (id % 20), 'Monstera deliciosa ' || id FROM ids
    )`;
}
