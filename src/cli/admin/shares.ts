import { Argument, type Command } from '@commander-js/extra-typings';
import { shareAccesses } from '../../access/access.ts';
import type { Share } from '../../access/share-storage.ts';
import { Refusal, UsageError } from '../../refusal.ts';
import type { Storage } from '../../storage.ts';
import { addShareServiceCommands } from '../account/shares.ts';
import { inStore, parseName } from '../options.ts';
import { listed, type Result } from '../output.ts';
import { allPages, databaseCommand, findStore, findUser, inDatabase } from './command.ts';

export function addShareCommands(plantStore: Command): void {
  const share = databaseCommand(plantStore, 'share', ['plant-store share alice bob read']);
  addShareServiceCommands(share);
  share
    .description('let a user access all plants of an owner')
    .enablePositionalOptions()
    .helpCommand(false) // an owner can have that name
    .argument('<owner>', 'user who owns the plants', parseName)
    .argument('<user>', 'user who gets access; can be created later', parseName)
    .addArgument(
      new Argument('<access>', 'kind of access; write includes read').choices(shareAccesses),
    )
    .addOption(inStore())
    .action(
      inDatabase(
        async (storage, owner, user, access, { store: name }) => {
          const { store } = await findUser(storage, name, owner);
          const isNew = await storage.shares.set(store, { owner, user, access }, Date.now());
          const found = await storage.users.find(name, user);
          const later = found.user?.role === undefined ? `, once there is a user ${user}` : '';
          const can = access === 'read' ? 'can read' : 'can read, change and delete';
          const text = `${user} ${can} all plants of ${owner}${later}.`;
          return { value: { owner, user, access, new: isNew }, text };
        },
        (owner, user) => {
          if (owner === user) throw new UsageError('A user cannot share with themselves.');
        },
      ),
    );

  databaseCommand(plantStore, 'unshare', ['plant-store unshare alice bob'])
    .description('end a share')
    .argument('<owner>', 'user who owns the plants', parseName)
    .argument('<user>', 'user who loses access', parseName)
    .addOption(inStore())
    .action(
      inDatabase(async (storage, owner, user, options) => {
        const { store } = await findUser(storage, options.store, owner);
        if (!(await storage.shares.end(store, [{ owner, user }]))) {
          throw new Refusal(
            `${owner} does not share with ${user}. List all shares with "npx plant-store shares".`,
          );
        }
        return { value: { owner, user }, text: `${owner} no longer shares with ${user}.` };
      }),
    );

  databaseCommand(plantStore, 'shares', ['plant-store shares', 'plant-store shares alice --json'])
    .description('list the shares of a user or of a whole store')
    .argument(
      '[user]',
      'owner or recipient of the shares; without it, all shares of the store',
      parseName,
    )
    .addOption(inStore())
    .action(inDatabase(listShares));
}

async function listShares(
  storage: Storage,
  user: string | undefined,
  options: { store: string },
): Promise<Result> {
  const columns = ['owner', 'user', 'access'] as const;
  if (user === undefined) {
    const store = await findStore(storage, options.store);
    const shares = await allPages((last: Share | undefined, limit) =>
      storage.shares.list(store, last, limit),
    );
    const rows = shares.map((share) => ({ ...share, user: share.user || '(everyone)' }));
    return listed(columns, rows);
  }
  const { store } = await findUser(storage, options.store, user);
  const { given, received } = await storage.shares.of(store, user);
  const rows = received.map(({ owner, access }) => ({ owner, user, access }));
  return listed(columns, [...given, ...rows]);
}
