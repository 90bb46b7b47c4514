import { Argument, Option, type Command } from '@commander-js/extra-typings';
import { defaultScopes, roles } from '../../access.ts';
import { Name, Tag } from '../../plant.ts';
import {
  databaseFlag,
  examples,
  jsonFlag,
  maxDuration,
  parseDurationMs,
  parserOf,
  parseScopeList,
  storeFlag,
} from '../options.ts';

export function addTokenCommands(plantStore: Command): void {
  const token = plantStore
    .command('token')
    .description('create, list, revoke and check tokens')
    .addHelpText('after', examples(['plant-store token create alice', 'plant-store token list']));

  token
    .command('create')
    .description('create a token and print it; it is shown only once')
    .addArgument(
      new Argument('<user>', 'user of the token; created if needed').argParser(parserOf(Name)),
    )
    .addOption(databaseFlag())
    .addOption(storeFlag('store of the user; created if needed').default('main'))
    .addOption(
      new Option('--role <role>', 'role of the user from now on; a new user is a member') //
        .choices(roles),
    )
    .addOption(
      new Option('--scope <list>', 'scopes that the token grants, separated by commas')
        .argParser(parseScopeList)
        .default([...defaultScopes], defaultScopes.join(',')),
    )
    .addOption(
      new Option(
        '--expires <duration>',
        `lifetime, such as 12h or 90d, at most ${maxDuration}d; without it, the token never expires`,
      ).argParser(parseDurationMs),
    )
    .addOption(
      new Option('--label <text>', 'note that "token list" shows')
        .argParser(parserOf(Tag))
        .default('', 'none'),
    )
    .addOption(
      new Option('--yes', 'create a new database, store or user without asking').default(false),
    )
    .addOption(jsonFlag())
    .addHelpText(
      'after',
      examples([
        'plant-store token create alice',
        'plant-store token create bob --store north --role manager',
        "plant-store token create shop --scope plants:read --expires 90d --label 'shop window'",
      ]),
    )
    .action(async (user, options) => (await import('./token.ts')).createToken(user, options));

  token
    .command('list')
    .description('list tokens, including expired and revoked ones')
    .addOption(databaseFlag())
    .addOption(storeFlag('list only the tokens of this store'))
    .addOption(jsonFlag())
    .addHelpText(
      'after',
      examples(['plant-store token list --store north', 'plant-store token list --json']),
    )
    .action(async (options) => (await import('./token.ts')).listTokens(options));

  token
    .command('revoke')
    .description('revoke a token immediately')
    .addArgument(new Argument('<id>', 'id of the token, as shown by "token list"'))
    .addOption(databaseFlag())
    .addOption(jsonFlag())
    .addHelpText('after', examples(['plant-store token revoke 000000001-22894e9580395e64']))
    .action(async (id, options) => (await import('./token.ts')).revokeToken(id, options));

  token
    .command('check')
    .description('read a string on standard input, and show whether it is a token, and whose')
    .addOption(databaseFlag())
    .addOption(jsonFlag())
    .addHelpText('after', examples(['plant-store token check < found-in-a-log.txt']))
    .action(async (options, command) => {
      const canBeMissing = command.getOptionValueSource('database') === 'default';
      await (await import('./token-check.ts')).checkToken({ ...options, canBeMissing });
    });
}
