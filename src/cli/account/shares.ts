/**
 * What users share, over HTTP.
 */
import type { Command } from '@commander-js/extra-typings';
import { UsageError } from '../../refusal.ts';
import { parseName } from '../options.ts';
import { listed } from '../output.ts';
import { onService, serviceCommand } from '../service.ts';

export function addShareServiceCommands(share: Command): void {
  receiverCommand(share, 'add', ['plant-store share add bob', 'plant-store share add --everyone'])
    .description('let another user, or everyone in the store, access all of your plants')
    .option('--write', 'let them change and delete the plants too')
    .action(
      onService(async (store, user, { everyone, write }) => {
        const access = write ? 'write' : 'read';
        const name = nameOf(user, everyone);
        if (user === undefined) await store.shareWithTeam(access);
        else await store.share(user, access);
        const can = write ? 'read, change and delete' : 'read';
        return {
          value: { user, everyone, access },
          text: `${name} can ${can} all of your plants.`,
        };
      }),
    );

  receiverCommand(share, 'end', ['plant-store share end bob', 'plant-store share end --everyone'])
    .description('end the shares between you and another user, or your share with everyone')
    .action(
      onService(async (store, user, { everyone }) => {
        const name = nameOf(user, everyone);
        if (user === undefined) await store.unshareWithTeam();
        else await store.unshare(user);
        return { value: { user, everyone }, text: `You no longer share with ${name}.` };
      }),
    );

  serviceCommand(share, 'list', ['plant-store share list'])
    .description('list with whom you share your plants, and who shares theirs with you')
    .action(
      onService(async (store) => {
        const [{ given, received }, team] = await Promise.all([
          store.listShares(),
          store.teamShare(),
        ]);
        const everyone = team === undefined ? [] : [{ user: '(everyone)', access: team }];
        const rows = Object.entries({ given: [...everyone, ...given], received });
        const shares = rows.flatMap(([direction, those]) =>
          those.map((each) => ({ direction, ...each })),
        );
        return listed(['direction', 'user', 'access'], shares);
      }),
    );
}

function receiverCommand(share: Command, name: string, lines: readonly string[]) {
  return serviceCommand(share, name, lines)
    .argument('[user]', 'name of the user', parseName)
    .option('--everyone', 'everyone in the store, including users who join later');
}

/** Throws a UsageError unless there is exactly one of the two. */
function nameOf(user: string | undefined, everyone: true | undefined): string {
  if ((user === undefined) === (everyone ?? false)) return user ?? 'everyone';
  throw new UsageError('Name a user, or pass --everyone.');
}
