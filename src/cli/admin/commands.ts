/**
 * The commands about tokens, users, stores and shares.
 */
import { Argument, Option, type Command } from '@commander-js/extra-typings';
import { defaultScopes, roles, shareAccesses } from '../../access/access.ts';
import { maxId } from '../../plants/ids.ts';
import { Name, Tag } from '../../plants/plant.ts';
import {
  databaseCommand,
  integer,
  keepChangesFlag,
  maxDuration,
  parseDurationMs,
  parserOf,
  parseScopeList,
  storeFlag,
} from '../options.ts';

export function addAdminCommands(plantStore: Command): void {
  addTokenCommands(plantStore);
  addUserCommands(plantStore);
  addShareCommands(plantStore);
  addLogCommand(plantStore);
}

function addTokenCommands(plantStore: Command): void {
  const token = plantStore.command('token').description('create, list, revoke and check tokens');

  databaseCommand(token, 'create', [
    'plant-store token create alice',
    'plant-store token create bob --store north --role manager',
    "plant-store token create shop --scope plants:read --expires 90d --label 'shop window'",
  ])
    .description('create a token and print it; it is shown only once')
    .argument('<user>', 'user of the token; created if needed', parserOf(Name))
    .addOption(storeFlag('store of the user; created if needed').default('main'))
    .addOption(
      new Option(
        '--role <role>',
        'new role of the user; without it, a new user is a member',
      ).choices(roles),
    )
    .addOption(
      new Option('--scope <list>', 'scopes that the token grants, separated by commas')
        .argParser(parseScopeList)
        .default([...defaultScopes], defaultScopes.join(',')),
    )
    .option(
      '--expires <duration>',
      `lifetime, such as 12h or 90d, at most ${maxDuration}d; without it, the token never expires`,
      parseDurationMs,
    )
    .addOption(
      new Option('--label <text>', 'note that "token list" shows')
        .argParser(parserOf(Tag))
        .default('', 'none'),
    )
    .option('--yes', 'create a new database, store or user without asking', false)
    .action(async (user, options) => (await import('./token.ts')).createToken(user, options));

  databaseCommand(token, 'list', [
    'plant-store token list --store north',
    'plant-store token list --json',
  ])
    .description('list tokens, including expired and revoked ones')
    .addOption(storeFlag('list only the tokens of this store'))
    .action(async (options) => (await import('./token.ts')).listTokens(options));

  databaseCommand(token, 'revoke', ['plant-store token revoke 000000001-22894e9580395e64'])
    .description('revoke a token immediately')
    .argument('<id>', 'id of the token, as shown by "token list"')
    .action(async (id, options) => (await import('./token.ts')).revokeToken(id, options));

  databaseCommand(token, 'check', ['plant-store token check < found-in-a-log.txt'])
    .description('read a string from standard input and show whether it is a token, and whose')
    .action(async (options, command) => {
      const canBeMissing = command.getOptionValueSource('database') === 'default';
      await (await import('./token-check.ts')).checkToken(options, canBeMissing);
    });
}

function addUserCommands(plantStore: Command): void {
  const user = plantStore.command('user').description('list and remove users');

  databaseCommand(user, 'list', ['plant-store user list --store north'])
    .description('list users with their roles and the number of their active tokens')
    .addOption(storeFlag('list only the users of this store'))
    .action(async (options) => (await import('./users.ts')).listUsers(options));

  databaseCommand(user, 'remove', [
    'plant-store user remove alice --plants-to bob',
    'plant-store user remove carol --store south --yes',
  ])
    .description("revoke a user's tokens, end their shares, and give their plants to another user")
    .argument('<user>', 'name of the user', parserOf(Name))
    .addOption(storeFlag('store of the user').default('main'))
    .option('--plants-to <user>', 'user of the store who gets the plants', parserOf(Name))
    .option('--yes', 'remove the user without asking; required without a terminal', false)
    .action(async (name, options) => (await import('./users.ts')).removeUser(name, options));

  const store = plantStore.command('store').description('list stores');
  databaseCommand(store, 'list', ['plant-store store list --json'])
    .description('list stores with their number of users and their largest plant id')
    .action(async (options) => (await import('./users.ts')).listStores(options));
}

function addShareCommands(plantStore: Command): void {
  const inStore = () => storeFlag('store of the users').default('main');

  databaseCommand(plantStore, 'share', ['plant-store share alice bob read'])
    .description('let a user access all plants of an owner')
    .argument('<owner>', 'user who owns the plants', parserOf(Name))
    .argument('<user>', 'user who gets access; can be created later', parserOf(Name))
    .addArgument(
      new Argument('<access>', 'kind of access; write includes read').choices(shareAccesses),
    )
    .addOption(inStore())
    .action(async (from, user, access, options) =>
      (await import('./shares.ts')).share(from, user, access, options),
    );

  databaseCommand(plantStore, 'unshare', ['plant-store unshare alice bob'])
    .description('end a share')
    .argument('<owner>', 'user who owns the plants', parserOf(Name))
    .argument('<user>', 'user who loses access', parserOf(Name))
    .addOption(inStore())
    .action(async (from, user, options) =>
      (await import('./shares.ts')).unshare(from, user, options),
    );

  databaseCommand(plantStore, 'shares', ['plant-store shares', 'plant-store shares alice --json'])
    .description('list the shares of a user or of a whole store')
    .argument(
      '[user]',
      'owner or recipient of the shares; without it, all shares of the store',
      parserOf(Name),
    )
    .addOption(inStore())
    .action(async (user, options) => (await import('./shares.ts')).listShares(user, options));

  databaseCommand(plantStore, 'access', ['plant-store access bob 42'])
    .description('explain whether a user can read and write a plant, and with which tokens')
    .argument('<user>', 'name of the user', parserOf(Name))
    .argument('<id>', 'id of the plant', integer(1, maxId))
    .addOption(inStore())
    .action(async (user, id, options) =>
      (await import('./access.ts')).explainAccess(user, id, options),
    );
}

function addLogCommand(plantStore: Command): void {
  databaseCommand(plantStore, 'log', [
    'plant-store log --since 2d',
    'plant-store log --plant 42 --json',
    'plant-store log --user alice | jq -r .event',
  ])
    .description(
      'show who changed what: a table on a terminal, otherwise a line of JSON for each change',
    )
    .addOption(storeFlag('store of the changes').default('main'))
    .option('--user <user>', 'only changes by this user', parserOf(Name))
    .option('--plant <id>', 'only changes to this plant', integer(1, maxId))
    .option(
      '--since <duration>',
      'only changes of this time until now, such as 2d',
      parseDurationMs,
    )
    .addOption(keepChangesFlag('older changes are hidden; set it as for "serve"'))
    .action(async (options) => (await import('./log.ts')).showLog(options));
}
