/**
 * What the commands of the operator have in common: they open a database, find stores and users by name, and print
 * their result as text for people, or with --json as JSON.
 */
import type { Command, CommandUnknownOpts } from '@commander-js/extra-typings';
import type { Identity, Role } from '../../access/access.ts';
import type { StoreRecord } from '../../access/user-storage.ts';
import { NoDatabase, Refusal, UsageError } from '../../refusal.ts';
import type { Storage } from '../../storage.ts';
import { openStorage } from '../database.ts';
import { databaseFlag, examples, isFrom } from '../options.ts';
import { printed, type Result } from '../output.ts';
import { connectedCommand } from '../service.ts';

/** Adds a command that opens a database. */
export function databaseCommand(parent: Command, name: string, lines: readonly string[]) {
  return parent
    .command(name)
    .addOption(databaseFlag())
    .option('--json', 'print the result as JSON')
    .addHelpText('after', examples(lines));
}

/** Adds a command that opens a database, or for those who are signed in calls the service. */
export function eitherCommand(parent: Command, name: string, lines: readonly string[]) {
  return connectedCommand(parent, name, lines)
    .addOption(databaseFlag())
    .option('--json', 'print the result as JSON');
}

/** Returns an action of `eitherCommand`. A service is used if the command line or a profile has one, and a database is not set. */
export function either<A, B, Args extends unknown[]>(
  inItsDatabase: (this: A, ...args: Args) => Promise<void>,
  onItsService: (this: B, ...args: Args) => Promise<void>,
) {
  return async function action(
    this: A & B & Pick<CommandUnknownOpts, 'getOptionValueSource'>,
    ...args: Args
  ): Promise<void> {
    const isOnLine = ['url', 'token', 'profile'].some((option) => isFrom(this, option, 'cli'));
    if (isOnLine && isFrom(this, 'database', 'cli', 'env')) {
      throw new UsageError('A database and a service are set. Set only one of them.');
    }
    if (isOnLine || isFrom(this, 'url', 'config')) {
      const foreign = ['store', 'role'].find((option) => isFrom(this, option, 'cli'));
      if (foreign === undefined) return onItsService.apply(this, args);
      throw new UsageError(`Only a database takes --${foreign}. Set it with --database.`);
    }
    return inItsDatabase.apply(this, args).catch((error: unknown) => {
      if (!(error instanceof NoDatabase) || isFrom(this, 'database', 'cli', 'env')) throw error;
      const advice = 'To use a service, sign in with "npx plant-store login", or set --url.';
      throw new NoDatabase(`${error.message} ${advice}`, { cause: error });
    });
  };
}

/**
 * Returns an action that opens the database, which must exist, and prints what `work` returns. `check` can throw a
 * UsageError before.
 */
export function inDatabase<Args extends unknown[]>(
  work: (storage: Storage, ...args: Args) => Promise<Result>,
  check?: (...args: Args) => void,
) {
  return async function action(
    this: { opts(): { database: string; json?: true | undefined } },
    ...args: Args
  ): Promise<void> {
    check?.(...args);
    await using storage = await openStorage(this.opts().database, { create: false });
    await printed(() => work(storage, ...args)).call(this);
  };
}

/** Throws Refusal if there is no such store. */
export async function findStore(storage: Storage, name: string): Promise<number> {
  const { store } = await storage.users.find(name);
  if (store !== undefined) return store;
  throw new Refusal(
    `There is no store ${name}. List all stores with "npx plant-store store list".`,
  );
}

/** The names of all stores, or only this one. Throws Refusal if there is no such store. */
export async function namesOfStores(storage: Storage, only?: string): Promise<string[]> {
  if (only !== undefined) {
    await findStore(storage, only);
    return [only];
  }
  return (await listStores(storage)).map(({ store }) => store);
}

export function listStores(storage: Storage): Promise<StoreRecord[]> {
  return allPages((last, limit) => storage.users.listStores({ after: last?.store, limit }));
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
