/**
 * The commands about who can access whose plants.
 */
import { Argument, type Command } from '@commander-js/extra-typings';
import { shareAccesses } from '../../access.ts';
import { maxId } from '../../ids.ts';
import { Name } from '../../plant.ts';
import { databaseFlag, examples, jsonFlag, parseInteger, parserOf, storeFlag } from '../options.ts';

const inStore = () => storeFlag('store of the users').default('main');

export function addShareCommands(plantStore: Command): void {
  plantStore
    .command('share')
    .description('let a user access all plants of an owner')
    .addArgument(ownerArgument())
    .addArgument(
      new Argument('<user>', 'user who can access them; can be created later').argParser(
        parserOf(Name),
      ),
    )
    .addArgument(new Argument('<access>', 'write includes read').choices(shareAccesses))
    .addOption(databaseFlag())
    .addOption(inStore())
    .addOption(jsonFlag())
    .addHelpText('after', examples(['plant-store share alice bob read']))
    .action(async (owner, user, access, options) =>
      (await import('./shares.ts')).share(owner, user, access, options),
    );

  plantStore
    .command('unshare')
    .description('end a share')
    .addArgument(ownerArgument())
    .addArgument(userArgument())
    .addOption(databaseFlag())
    .addOption(inStore())
    .addOption(jsonFlag())
    .addHelpText('after', examples(['plant-store unshare alice bob']))
    .action(async (owner, user, options) =>
      (await import('./shares.ts')).unshare(owner, user, options),
    );

  plantStore
    .command('shares')
    .description('list the shares of a user, given and received, or of a whole store')
    .addArgument(new Argument('[user]', 'one of the users').argParser(parserOf(Name)))
    .addOption(databaseFlag())
    .addOption(inStore())
    .addOption(jsonFlag())
    .addHelpText('after', examples(['plant-store shares', 'plant-store shares alice --json']))
    .action(async (user, options) => (await import('./shares.ts')).listShares(user, options));

  plantStore
    .command('access')
    .description('explain whether a user can read and write a plant, and with which tokens')
    .addArgument(userArgument())
    .addArgument(
      new Argument('<id>', 'id of the plant').argParser((text) => parseInteger(text, 1, maxId)),
    )
    .addOption(databaseFlag())
    .addOption(inStore())
    .addOption(jsonFlag())
    .addHelpText('after', examples(['plant-store access bob 42']))
    .action(async (user, id, options) =>
      (await import('./access.ts')).explainAccess(user, id, options),
    );
}

function ownerArgument() {
  return new Argument('<owner>', 'user whose plants they are').argParser(parserOf(Name));
}

function userArgument() {
  return new Argument('<user>', 'name of the user').argParser(parserOf(Name));
}
