/**
 * All commands and their options. The code of a command is loaded when it runs.
 * Exit status: 0 success, 1 failure or lost output, 2 invalid usage, 3 disk failure.
 */
import { readFileSync } from 'node:fs';
import { Argument, Command, CommanderError, Option } from '@commander-js/extra-typings';
import { defaultScopes, roles } from '../access.ts';
import { Name, Tag } from '../plant.ts';
import {
  databaseFlag,
  examples,
  flag,
  jsonFlag,
  maxDuration,
  parseBaseUrl,
  parseDatabaseUrl,
  parseDurationMs,
  parseHost,
  parseOrigins,
  parsePort,
  parseProxies,
  parserOf,
  parseRateOrOff,
  parseRedisUrl,
  parseRequestsInProgress,
  parseScopeList,
  parseQuota,
  parseWorkers,
  storeFlag,
} from './options.ts';
import { refuseFlagsOfNpm } from './npm.ts';
import { oidcFlags } from './oidc.ts';
import { failWhenOutputIsLost } from './output.ts';
import { addPlantsCommands } from './plants/commands.ts';
import { addShareCommands } from './share-commands.ts';
import { addUserCommands } from './user-commands.ts';
import { exitStatusOf, reasonOf } from './reason.ts';
import { replacePasswords } from './redact.ts';

const packageFile = new URL('../../package.json', import.meta.url);

export async function main(argv: readonly string[]): Promise<void> {
  failWhenOutputIsLost();
  try {
    await program().parseAsync(argv);
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode !== 0) process.exitCode = 2; // commander has printed the error
      return;
    }
    const reason = reasonOf(error);
    if (reason === undefined) throw error;
    console.error(replacePasswords(`error: ${reason}`, ':...'));
    process.exitCode = exitStatusOf(error);
  }
}

function program() {
  const { version, description } = JSON.parse(readFileSync(packageFile, 'utf8'));
  const plantStore = new Command('plant-store')
    .description(description)
    .version(version)
    .exitOverride()
    // An error quotes mistyped arguments, which can contain a password.
    .configureOutput({ writeErr: (text) => process.stderr.write(replacePasswords(text, ':...')) })
    .showHelpAfterError('(add --help for usage)')
    .addHelpText('after', examples(['plant-store serve', 'plant-store token create alice']))
    .hook('preSubcommand', (_, command) => refuseFlagsOfNpm(command));

  plantStore
    .command('serve')
    .description('start the HTTP service')
    .addOption(databaseFlag())
    .addOption(
      flag('--host <host>', 'address to listen on').argParser(parseHost).default('127.0.0.1'),
    )
    .addOption(
      flag('--port <number>', 'port to listen on; 0 chooses a free one')
        .argParser(parsePort)
        .default(8080),
    )
    .addOption(
      flag('--base-url <url>', 'public URL, if it differs; can include a path prefix')
        .argParser(parseBaseUrl)
        .default('', 'none'),
    )
    .addOption(
      flag(
        '--cors-origin <list>',
        'origins whose web pages can use the service, separated by commas; * for all',
      )
        .argParser(parseOrigins)
        .default([], 'none'),
    )
    .addOption(flag('--tls-cert <file>', 'certificate in PEM format, with its chain; for HTTPS'))
    .addOption(flag('--tls-key <file>', 'private key of the certificate, in PEM format'))
    .addOption(
      flag(
        '--max-plants-per-user <number>',
        'maximum number of plants that a user can own',
      ).argParser(parseQuota),
    )
    .addOption(
      flag('--max-plants-per-store <number>', 'maximum number of plants in a store').argParser(
        parseQuota,
      ),
    )
    .addOption(
      flag(
        '--workers <number>',
        'number of processes that serve requests; auto starts one per core',
      )
        .argParser(parseWorkers)
        .default(1),
    )
    .addOption(oidcFlags.issuer)
    .addOption(oidcFlags.audience)
    .addOption(oidcFlags.tokenType)
    .addOption(oidcFlags.userClaim)
    .addOption(oidcFlags.store)
    .addOption(oidcFlags.storeClaim)
    .addOption(oidcFlags.roleClaim)
    .addOption(oidcFlags.managerValue)
    .addOption(oidcFlags.scopePrefix)
    .addOption(oidcFlags.clientId)
    .addOption(oidcFlags.clientScope)
    .addOption(
      flag(
        '--rate-limit <rate>',
        'rate of requests with one token, such as 200/s or 600/m; counted by each process',
      )
        .argParser(parseRateOrOff)
        .default('off' as const, 'off'),
    )
    .addOption(
      flag(
        '--rate-limit-redis <url>',
        'Redis that counts for all processes: redis://... or rediss://...',
      ).argParser(parseRedisUrl),
    )
    .addOption(
      flag(
        '--auth-failure-limit <rate>',
        'rate of failed authentications from one address; counted by each process',
      )
        .argParser(parseRateOrOff)
        .default({ requests: 600, windowSeconds: 60 } as const, '600/m'),
    )
    .addOption(
      flag(
        '--max-requests-in-progress <number>',
        'requests with one token that are in progress; counted by each process',
      )
        .argParser(parseRequestsInProgress)
        .default(512),
    )
    .addOption(
      flag(
        '--trust-proxy <list>',
        'proxies that name their client, as addresses and networks separated by commas',
      )
        .argParser(parseProxies)
        .default([], 'none'),
    )
    .addOption(
      flag('--log-level <level>', 'lowest level to log; debug logs every request')
        .choices(['debug', 'info', 'warn', 'error', 'silent'])
        .default('info'),
    )
    .addHelpText(
      'after',
      examples([
        'plant-store serve',
        'plant-store serve --port 8081 --database sqlite:/var/lib/plants.db',
        'plant-store serve --workers auto --base-url https://plants.example/api',
      ]),
    )
    .action(async (options) => (await import('./serve.ts')).serve(options));

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
      flag('--role <role>', 'role of the user from now on; a new user is a member') //
        .choices(roles),
    )
    .addOption(
      flag('--scope <list>', 'scopes that the token grants, separated by commas')
        .argParser(parseScopeList)
        .default([...defaultScopes], defaultScopes.join(',')),
    )
    .addOption(
      flag(
        '--expires <duration>',
        `lifetime, such as 12h or 90d, at most ${maxDuration}d; without it, the token never expires`,
      ).argParser(parseDurationMs),
    )
    .addOption(
      flag('--label <text>', 'note that "token list" shows')
        .argParser(parserOf(Tag))
        .default('', 'none'),
    )
    .addOption(
      new Option('--yes', 'create a new database, store or user without asking').default(false),
    )
    .addOption(jsonFlag('print the result as one line of JSON'))
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
    .addOption(jsonFlag('print the result as one line of JSON'))
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
    .addOption(jsonFlag('print the result as one line of JSON'))
    .addHelpText('after', examples(['plant-store token revoke 22894e9580395e64']))
    .action(async (id, options) => (await import('./token.ts')).revokeToken(id, options));

  token
    .command('check')
    .description('read a string on standard input, and show whether it is a token, and whose')
    .addOption(databaseFlag())
    .addOption(jsonFlag('print the result as one line of JSON'))
    .addHelpText('after', examples(['plant-store token check < found-in-a-log.txt']))
    .action(async (options, command) => {
      const canBeMissing = command.getOptionValueSource('database') === 'default';
      await (await import('./token-check.ts')).checkToken({ ...options, canBeMissing });
    });

  addUserCommands(plantStore);
  addShareCommands(plantStore);

  plantStore
    .command('migrate')
    .description('create a database or upgrade its schema (serve also does this)')
    .addOption(databaseFlag())
    .addOption(jsonFlag('print the result as one line of JSON'))
    .addHelpText(
      'after',
      examples([
        'plant-store migrate',
        'plant-store migrate --database postgres://plants@db.example/plants',
      ]),
    )
    .action(async (options) => (await import('./migrate.ts')).migrate(options));

  plantStore
    .command('backup')
    .description('back up an SQLite database, even while it is in use, and verify the copy')
    .addArgument(new Argument('<file>', 'path of the backup; must not exist'))
    .addOption(databaseFlag())
    .addOption(jsonFlag('print the result as one line of JSON'))
    .addHelpText('after', examples(['plant-store backup plants.backup']))
    .action(async (file, options) => (await import('./backup.ts')).backup(file, options));

  plantStore
    .command('restore')
    .description('replace an SQLite database with a backup; stop the service first')
    .addArgument(new Argument('<file>', 'path of the backup'))
    .addOption(databaseFlag())
    .addOption(jsonFlag('print the result as one line of JSON'))
    .addHelpText(
      'after',
      examples(['plant-store restore plants.backup --database sqlite:plants.db']),
    )
    .action(async (file, options) => (await import('./backup.ts')).restore(file, options));

  plantStore
    .command('copy')
    .description('copy a database to another, empty one, and compare the two')
    .addOption(
      flag('--from <url>', 'database to copy').argParser(parseDatabaseUrl).makeOptionMandatory(),
    )
    .addOption(
      flag('--to <url>', 'empty database to copy it to')
        .argParser(parseDatabaseUrl)
        .makeOptionMandatory(),
    )
    .addOption(new Option('--resume', 'resume an interrupted copy').default(false))
    .addOption(jsonFlag('print the result as one line of JSON'))
    .addHelpText(
      'after',
      examples([
        'plant-store copy --from sqlite:plant-store.db --to postgres://plants@db.example/plants',
        'plant-store copy --from sqlite:plant-store.db --to sqlite:other.db --resume',
      ]),
    )
    .action(async (options) => (await import('./copy.ts')).copy(options));

  addPlantsCommands(plantStore);
  return plantStore;
}
