/**
 * Statements for both engines that add many rows faster than the service would. They are for a database with one store,
 * before anything was read from it.
 */

/** Begins a statement that can select from `ids`: the numbers from 1 on. Not by recursion, which Citus does not have here. */
export function withIds(count: number): string {
  const digits = Array.from({ length: 10 }, (_, digit) => `(${digit})`).join();
  const places = Array.from(String(count), (_, place) => place);
  const number = places.map((place) => `${10 ** place} * at${place}.digit`).join(' + ');
  const tables = places.map((place) => `digits AS at${place}`).join();
  return `
    WITH digits (digit) AS (VALUES ${digits}),
      ids (id) AS (SELECT 1 + ${number} FROM ${tables} WHERE ${number} < ${count})`;
}

/** Lets "owner 1", "owner 2" and so on share with the first user, in this order. Each has the plant of its number. */
export function addOwners(count: number, firstUser: string): string {
  const ids = withIds(count);
  return `
    INSERT INTO users (store, id, name, role)
    ${ids} SELECT store, id + 1, 'owner ' || id, 'member' FROM stores, ids;
    INSERT INTO shares ${ids} SELECT store, id + 1, '${firstUser}', 'read', id FROM stores, ids;
    INSERT INTO plants (store, id, owner, tag, name)
    ${ids} SELECT store, id, id + 1, CASE id % 2 WHEN 1 THEN 'odd' ELSE '' END, 'n' || id FROM stores, ids;`;
}

/** Lets the first user share with "user 1", "user 2" and so on. */
export function addGivenShares(count: number): string {
  return `INSERT INTO shares ${withIds(count)} SELECT store, 1, 'user ' || id, 'read', 0 FROM stores, ids`;
}
