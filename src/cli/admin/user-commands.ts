/**
 * The commands about users and stores.
 */
import { Argument, Option, type Command } from '@commander-js/extra-typings';
import { Name } from '../../plant.ts';
import { databaseFlag, examples, jsonFlag, parserOf, storeFlag } from '../options.ts';

export function addUserCommands(plantStore: Command): void {
  const user = plantStore
    .command('user')
    .description('list and remove users')
    .addHelpText('after', examples(['plant-store user list', 'plant-store user remove alice']));

  user
    .command('list')
    .description('list users with their roles and the number of their active tokens')
    .addOption(databaseFlag())
    .addOption(storeFlag('list only the users of this store'))
    .addOption(jsonFlag())
    .addHelpText('after', examples(['plant-store user list --store north']))
    .action(async (options) => (await import('./users.ts')).listUsers(options));

  user
    .command('remove')
    .description("end a user's tokens and shares, and give their plants to another user")
    .addArgument(new Argument('<user>', 'name of the user').argParser(parserOf(Name)))
    .addOption(databaseFlag())
    .addOption(storeFlag('store of the user').default('main'))
    .addOption(
      new Option('--plants-to <user>', 'user of the store who gets the plants').argParser(
        parserOf(Name),
      ),
    )
    .addOption(
      new Option('--yes', 'remove the user without asking; necessary without a terminal').default(
        false,
      ),
    )
    .addOption(jsonFlag())
    .addHelpText(
      'after',
      examples([
        'plant-store user remove alice --plants-to bob',
        'plant-store user remove carol --store south --yes',
      ]),
    )
    .action(async (name, options) => (await import('./users.ts')).removeUser(name, options));

  plantStore
    .command('store')
    .description('list stores')
    .addHelpText('after', examples(['plant-store store list']))
    .command('list')
    .description('list stores with the number of their users and their largest id')
    .addOption(databaseFlag())
    .addOption(jsonFlag())
    .addHelpText('after', examples(['plant-store store list --json']))
    .action(async (options) => (await import('./users.ts')).listStores(options));
}
