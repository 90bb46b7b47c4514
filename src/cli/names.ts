import type { Role } from '../access.ts';
import { Refusal } from '../refusal.ts';
import type { Storage } from '../storage.ts';
import { program } from './program.ts';

/** Throws Refusal if there is no such store. */
export async function findStore(storage: Storage, name: string): Promise<number> {
  const { store } = await storage.findNames({ store: name, user: '' });
  if (store === undefined) throw noStore(name);
  return store;
}

/** Throws Refusal if there is no such user. */
export async function findUser(
  storage: Storage,
  storeName: string,
  user: string,
): Promise<{ store: number; role: Role }> {
  const { store, role } = await storage.findNames({ store: storeName, user });
  if (store === undefined) throw noStore(storeName);
  if (role === undefined) throw noUser(storeName, user);
  return { store, role };
}

function noStore(name: string): Refusal {
  return new Refusal(`There is no store ${name}. "${program} store list" shows every store.`);
}

export function noUser(store: string, user: string): Refusal {
  return new Refusal(
    `Store ${store} has no user ${user}. "${program} user list" shows every user.`,
  );
}
