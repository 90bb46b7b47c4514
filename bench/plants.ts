/**
 * Which plants the stores hold, as objects and as SQL. Plant `id` belongs to user `id % users + 1`,
 * so that the plants of a user lie all over the store; wrk.lua goes by the same rule.
 */

export const plantsPerUser = 100;

/** Fodder, plants made to be deleted, has ids from here on: far above those that a store assigns. */
export const fodderFirstId = 1_000_000_000_000;

export function plantOf(id: number): { name: string; tag: string } {
  return { name: `Monstera deliciosa ${id}`, tag: `bed ${id % 20}` };
}

/** The rows made (id, owner, tag, name) of `count` plants, for an INSERT that follows. */
export function madeSql(firstId: number, count: number, users: number): string {
  return `
    WITH RECURSIVE
    ids (id) AS (
      VALUES (${firstId}) UNION ALL SELECT id + 1 FROM ids WHERE id < ${firstId + count - 1}
    ),
    made (id, owner, tag, name) AS (
      SELECT id, id % ${users} + 1, 'bed ' || (id % 20), 'Monstera deliciosa ' || id FROM ids
    )`;
}
