/**
 * Stores and users by their names, and whole lists of rows.
 */
import type { Identity, Role } from '../../access/access.ts';
import { Refusal } from '../../refusal.ts';
import type { Storage } from '../../storage.ts';

/** Throws Refusal if there is no such store. */
export async function findStore(storage: Storage, name: string): Promise<number> {
  const { store } = await storage.users.find(name);
  if (store !== undefined) return store;
  throw new Refusal(
    `There is no store ${name}. List all stores with "npx plant-store store list".`,
  );
}

/** Throws Refusal if there is no such user. */
export async function findUser(
  storage: Storage,
  store: string,
  name: string,
): Promise<Identity & { role: Role }> {
  const { user } = await storage.users.find(store, name);
  if (user?.role !== undefined) return { ...user, role: user.role };
  await findStore(storage, store);
  throw noUser(store, name);
}

export function noUser(store: string, user: string): Refusal {
  return new Refusal(
    `Store ${store} has no user ${user}. List all users with "npx plant-store user list".`,
  );
}

const pageRows = 500;

/** All rows of a list. `read` returns up to `limit` rows: those after `last`, or the first ones. */
export async function allPages<Row>(
  read: (last: Row | undefined, limit: number) => Promise<Row[]>,
): Promise<Row[]> {
  const all: Row[] = [];
  for (;;) {
    const page = await read(all.at(-1), pageRows);
    all.push(...page);
    if (page.length < pageRows) return all;
  }
}
