import { setTimeout as pause } from 'node:timers/promises';
import { operatorOf, type Identity } from '../../access/access.ts';
import { Refusal, UsageError } from '../../refusal.ts';
import type { Storage } from '../../storage.ts';
import type { StoreRecord, UserRecord } from '../../access/user-storage.ts';
import { confirm, printResult } from '../output.ts';
import { openStorage } from '../database.ts';
import type { DatabaseOptions, InStoreOptions } from '../options.ts';
import { findStore, noUser, allPages } from './names.ts';
import { tableOf } from '../table.ts';

export async function listStores(options: DatabaseOptions): Promise<void> {
  await using storage = await openStorage(options.database, { create: false });
  const stores = await allStores(storage);
  const rows = stores.map(({ store, users, lastId }) => [store, users, lastId]);
  printResult(options, stores, tableOf(['STORE', 'USERS', 'LAST ID'], rows));
}

export async function listUsers(
  options: DatabaseOptions & { store?: string | undefined },
): Promise<void> {
  await using storage = await openStorage(options.database, { create: false });
  const { store: only } = options;
  if (only !== undefined) await findStore(storage, only);
  const stores = only === undefined ? await allStores(storage) : [{ store: only }];
  const users: UserRecord[] = [];
  for (const { store } of stores) {
    const list = (last: UserRecord | undefined, limit: number) =>
      storage.users.list(store, { after: last?.user, limit });
    users.push(...(await allPages(list)));
  }
  const rows = users.map(({ store, user, role, activeTokens }) => {
    return [store, user, role, activeTokens];
  });
  printResult(options, users, tableOf(['STORE', 'USER', 'ROLE', 'ACTIVE TOKENS'], rows));
}

function allStores(storage: Storage): Promise<StoreRecord[]> {
  return allPages((last, limit) => storage.users.listStores({ after: last?.store, limit }));
}

interface RemoveOptions extends InStoreOptions {
  plantsTo?: string | undefined;
  /** Removes the user without a question. */
  yes: boolean;
}

/** Plants or shares in one transaction, which takes a few milliseconds. */
const batchRows = 500;
/** Between two batches, for the writes of others: a process that waits for an SQLite file polls for its lock. */
const batchPauseMs = 5;

/**
 * Each step can be repeated, so the next run continues an interrupted one. It also gives away a plant that arrived
 * after the removal of its owner.
 */
export async function removeUser(name: string, options: RemoveOptions): Promise<void> {
  const { store, plantsTo, yes } = options;
  if (plantsTo === name) {
    throw new UsageError('The user cannot get their own plants. Choose another with --plants-to.');
  }
  await using storage = await openStorage(options.database, { create: false });
  const { user } = await storage.users.find(store, name);
  if (user === undefined) throw noUser(store, name);
  const hasHeir = (await findHeir(storage, user, options)) !== undefined;
  const effect = hasHeir
    ? `revokes their tokens, ends their shares, and gives their plants to ${plantsTo}`
    : 'revokes their tokens and ends their shares';
  const question = `Remove user ${name} from store ${store}? This ${effect}.`;
  if (!yes) await requireConsent(name, question);

  let moved = 0;
  // Repeats if a plant or a share was added meanwhile, or if the heir was removed.
  do {
    const heir = await findHeir(storage, user, options);
    await inBatches(() => storage.users.endAccess(user, Date.now(), batchRows));
    if (heir !== undefined) {
      moved += await inBatches(() => storage.users.movePlants(user, heir.user, batchRows));
    }
  } while (!(await storage.users.remove(user, Date.now())));
  const text =
    `Removed user ${name} from store ${store}.` +
    (moved === 0 ? '' : ` Moved ${moved === 1 ? '1 plant' : `${moved} plants`} to ${plantsTo}.`);
  printResult(options, { store, user: name, plantsTo, movedPlants: moved }, text);
}

async function requireConsent(user: string, question: string): Promise<void> {
  const answer = await confirm(question);
  if (answer) return;
  if (answer === false) throw new Refusal('Nothing was changed.');
  throw new UsageError(
    `Nothing was changed, because there is no terminal to ask on. Pass --yes to remove user ${user}.`,
  );
}

/** Repeats `change` until it changes nothing. Returns the number of changes. */
async function inBatches(change: () => Promise<number>): Promise<number> {
  for (let total = 0; ; await pause(batchPauseMs)) {
    const changed = await change();
    if (changed === 0) return total;
    total += changed;
  }
}

/** The user who gets the plants. Throws Refusal if one is needed, and there is none. */
async function findHeir(
  storage: Storage,
  user: Identity,
  { store, plantsTo }: RemoveOptions,
): Promise<Identity | undefined> {
  if (plantsTo === undefined) {
    const ofUser = operatorOf(user.store, [user.user]);
    const plants = await storage.plants.list(ofUser, { after: 0, limit: 1, fields: ['id'] });
    if (plants.json === '') return undefined;
    throw new Refusal(
      'This user owns plants. Give them to another user of the store with --plants-to USER.',
    );
  }
  const { user: heir } = await storage.users.find(store, plantsTo);
  if (heir?.role === undefined) throw noUser(store, plantsTo);
  return heir;
}
