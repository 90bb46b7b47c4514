import type { ShareAccess } from '../../access/access.ts';
import { Refusal, UsageError } from '../../refusal.ts';
import type { Share } from '../../access/share-storage.ts';
import type { Storage } from '../../storage.ts';
import { openStorage } from '../database.ts';
import { findStore, findUser, allPages } from './names.ts';
import type { InStoreOptions } from '../options.ts';
import { printResult } from '../output.ts';
import { tableOf } from '../table.ts';

export async function share(
  owner: string,
  user: string,
  access: ShareAccess,
  options: InStoreOptions,
): Promise<void> {
  if (owner === user) throw new UsageError('A user cannot share with themselves.');
  await using storage = await openStorage(options.database, { create: false });
  const { store } = await findUser(storage, options.store, owner);
  const isNew = await storage.shares.set(store, { owner, user, access }, Date.now());
  const found = await storage.users.find(options.store, user);
  const later = found.user?.role === undefined ? `, once there is a user ${user}` : '';
  const can = access === 'read' ? 'can read' : 'can read, change and delete';
  const text = `${user} ${can} all plants of ${owner}${later}.`;
  printResult(options, { owner, user, access, new: isNew }, text);
}

export async function unshare(owner: string, user: string, options: InStoreOptions): Promise<void> {
  await using storage = await openStorage(options.database, { create: false });
  const { store } = await findUser(storage, options.store, owner);
  if (!(await storage.shares.end(store, [{ owner, user }]))) {
    throw new Refusal(
      `${owner} does not share with ${user}. List all shares with "npx plant-store shares".`,
    );
  }
  printResult(options, { owner, user }, `${owner} no longer shares with ${user}.`);
}

export async function listShares(user: string | undefined, options: InStoreOptions): Promise<void> {
  await using storage = await openStorage(options.database, { create: false });
  const shares = await sharesIn(storage, options.store, user);
  const rows = shares.map(({ owner, user: other, access }) => [owner, other, access]);
  printResult(options, shares, tableOf(['OWNER', 'USER', 'ACCESS'], rows));
}

async function sharesIn(
  storage: Storage,
  storeName: string,
  user: string | undefined,
): Promise<Share[]> {
  if (user === undefined) {
    const store = await findStore(storage, storeName);
    return allPages((last, limit) => storage.shares.list(store, last, limit));
  }
  const { store } = await findUser(storage, storeName, user);
  const { given, received } = await storage.shares.of(store, user);
  return [...given, ...received];
}
