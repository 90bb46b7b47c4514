import type { Command } from '@commander-js/extra-typings';
import type { Identity } from '../../access/access.ts';
import { forgetUser, ownsPlants, removeUser } from '../../access/remove-user.ts';
import type { UserRecord } from '../../access/user-storage.ts';
import type { PlantStore } from '../../client/client.ts';
import { Refusal, UsageError } from '../../refusal.ts';
import { formatTimestamp } from '../../shared/timestamp.ts';
import type { Storage } from '../../storage.ts';
import { isFile } from '../database.ts';
import { inStore, parseName, storeFlag } from '../options.ts';
import { addRestoreCommand } from './restore-user.ts';
import { addUserServiceCommands, listUsersByService } from '../account/users.ts';
import { agree, listed, type Result } from '../output.ts';
import { onService } from '../service.ts';
import {
  allPages,
  databaseCommand,
  either,
  eitherCommand,
  inDatabase,
  listStores,
  namesOfStores,
  noUser,
} from './command.ts';

export function addUserCommands(plantStore: Command): void {
  const user = plantStore.command('user').description('list, invite and remove users');

  eitherCommand(user, 'list', ['plant-store user list --store north'])
    .description('list users with their roles, and the tokens or the plants that they have')
    .addOption(storeFlag('list only the users of this store'))
    .action(either(inDatabase(listUsers), onService(listUsersByService)));

  removeCommand(user).action(either(inDatabase(remove, refuseOwnHeir), onService(removeByService)));
  databaseCommand(user, 'forget', ['plant-store user forget alice --store south'])
    .description('blank what the database has of a removed user: names, and texts of their plants')
    .argument('<user>', 'name of the user, who was removed', parseName)
    .addOption(inStore('store of the user'))
    .option('--yes', 'blank it without asking; required without a terminal', false)
    .action(inDatabase(forget));
  addRestoreCommand(user);
  addUserServiceCommands(user);

  const ofStores = plantStore.command('store').description('list stores');
  databaseCommand(ofStores, 'list', ['plant-store store list --json'])
    .description('list stores with their number of users and their largest plant id')
    .action(
      inDatabase(async (storage) => {
        return listed(['store', 'users', 'lastId'], await listStores(storage));
      }),
    );
}

async function listUsers(
  storage: Storage,
  { store: only }: { store?: string | undefined },
): Promise<Result> {
  const users: UserRecord[] = [];
  for (const store of await namesOfStores(storage, only)) {
    const list = (last: UserRecord | undefined, limit: number) =>
      storage.users.list(store, { after: last?.user, limit });
    users.push(...(await allPages(list)));
  }
  const rows = users.map(({ store, user, role, activeTokens, lastUsedAtMs }) => {
    return { store, user, role, activeTokens, lastUsedAt: formatTimestamp(lastUsedAtMs) };
  });
  return listed(['store', 'user', 'role', 'activeTokens'], rows);
}

function removeCommand(user: Command) {
  return eitherCommand(user, 'remove', [
    'plant-store user remove alice --plants-to bob',
    'plant-store user remove carol --store south --yes',
  ])
    .description("revoke a user's tokens, end their shares, and give their plants to another user")
    .argument('<user>', 'name of the user', parseName)
    .addOption(inStore('store of the user'))
    .option('--plants-to <user>', 'user of the store who gets the plants', parseName)
    .option('--yes', 'remove the user without asking; required without a terminal', false);
}

function refuseOwnHeir(name: string, { plantsTo }: { plantsTo?: string | undefined }): void {
  if (plantsTo !== name) return;
  throw new UsageError('The user cannot get their own plants. Choose another with --plants-to.');
}

type RemoveOptions = ReturnType<ReturnType<typeof removeCommand>['opts']>;

async function remove(storage: Storage, name: string, options: RemoveOptions): Promise<Result> {
  const { store, plantsTo } = options;
  const { user } = await storage.users.find(store, name);
  if (user === undefined) throw noUser(store, name);
  const hasHeir = (await findHeir(storage, user, options)) !== undefined;
  await confirmRemoval(name, `store ${store}`, hasHeir, options);

  const moved = await removeUser(storage, user, () => findHeir(storage, user, options));
  const text =
    `Removed user ${name} from store ${store}.` +
    (moved === 0 ? '' : ` Moved ${moved === 1 ? '1 plant' : `${moved} plants`} to ${plantsTo}.`);
  return { value: { store, user: name, plantsTo, movedPlants: moved }, text };
}

/** Throws a Refusal unless a person or an option agrees. */
async function confirmRemoval(
  name: string,
  place: string,
  hasHeir: boolean,
  { plantsTo, yes }: RemoveOptions,
): Promise<void> {
  const effect = hasHeir
    ? `revokes their tokens, ends their shares, and gives their plants to ${plantsTo}`
    : 'revokes their tokens and ends their shares';
  const question = `Remove user ${name} from ${place}? This ${effect}.`;
  await agree(yes, question, `remove user ${name}`);
}

async function forget(
  storage: Storage,
  name: string,
  { store, yes, database }: { store: string; yes: boolean; database: string },
): Promise<Result> {
  const { user } = await storage.users.find(store, name);
  if (user === undefined) throw noUser(store, name);
  if (user.role !== undefined) throw hasAccess(store, name);
  const question = `Forget user ${name} of store ${store}? This cannot be undone.`;
  await agree(yes, question, `forget user ${name}`);
  if (!(await forgetUser(storage, user, name))) throw hasAccess(store, name);
  const rest = isFile(database)
    ? 'in free pages of the file until you copy it'
    : 'in dead rows until VACUUM removes them, in archived WAL';
  const text =
    `Forgot user ${name} of store ${store}. Their texts can still be in earlier backups, ${rest}, ` +
    'with receivers of webhooks, and in logs of the service.';
  return { value: { store, user: name }, text };
}

function hasAccess(store: string, name: string): Refusal {
  return new Refusal(
    `User ${name} has access to store ${store} or plants there. First remove the user with "npx plant-store user remove".`,
  );
}

async function removeByService(
  service: PlantStore,
  name: string,
  options: RemoveOptions,
): Promise<Result> {
  const { plantsTo, url } = options;
  await confirmRemoval(name, url, plantsTo !== undefined, options);
  await service.removeUser(name, { plantsTo });
  return { value: { user: name, plantsTo }, text: `Removed user ${name} from ${url}.` };
}

/** The user who gets the plants. Throws Refusal if one is needed, and there is none. */
async function findHeir(
  storage: Storage,
  user: Identity,
  { store, plantsTo }: RemoveOptions,
): Promise<Identity | undefined> {
  if (plantsTo === undefined) {
    if (!(await ownsPlants(storage, user))) return undefined;
    throw new Refusal(
      'This user owns plants. Give them to another user of the store with --plants-to USER.',
    );
  }
  const { user: heir } = await storage.users.find(store, plantsTo);
  if (heir?.role === undefined) throw noUser(store, plantsTo);
  return heir;
}
