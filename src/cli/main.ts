/**
 * The commands: every one and every option, on one page. What a command does is loaded when it runs.
 * Exit status: 0 done, 1 failed or its output lost, 2 misused, 3 the disk failed.
 */
import { readFileSync } from 'node:fs';
import { Argument, Command, CommanderError, Option } from '@commander-js/extra-typings';
import { roles, scopes } from '../access.ts';
import { Name, Tag } from '../plant.ts';
import {
  baseUrl,
  databaseUrl,
  durationMs,
  flag,
  host,
  port,
  scopeList,
  textOf,
  workers,
} from './options.ts';
import { failWhenOutputIsLost } from './output.ts';
import { reasonOf, statusOf } from './reason.ts';
import { replacePasswords } from './redact.ts';

const packageFile = new URL('../../package.json', import.meta.url);

const defaultDatabase = 'sqlite:plant-store.db';

export async function main(argv: readonly string[]): Promise<void> {
  failWhenOutputIsLost();
  try {
    await program().parseAsync(argv);
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode !== 0) process.exitCode = 2; // it has told why
      return;
    }
    const reason = reasonOf(error);
    if (reason === undefined) throw error;
    console.error(replacePasswords(`error: ${reason}`, ':...'));
    process.exitCode = statusOf(error);
  }
}

function program() {
  const { version, description } = JSON.parse(readFileSync(packageFile, 'utf8'));
  const plantStore = new Command('plant-store')
    .description(description)
    .version(version)
    .exitOverride()
    // People mistype more than addresses, and what they have mistyped goes to a log.
    .configureOutput({ writeErr: (text) => process.stderr.write(replacePasswords(text, ':...')) })
    .showHelpAfterError('(add --help for what there is)');

  plantStore
    .command('serve')
    .description('serve the plants of a database over HTTP')
    .addOption(database())
    .addOption(flag('--host <host>', 'address to listen on').argParser(host).default('127.0.0.1'))
    .addOption(flag('--port <number>', 'port; 0 takes a free one').argParser(port).default(8080))
    .addOption(
      flag('--base-url <url>', 'public address, where it is another (a path prefix included)')
        .argParser(baseUrl)
        .default('', 'none'),
    )
    .addOption(
      flag('--workers <number>', 'processes that answer; auto takes one for each core')
        .argParser(workers)
        .default(1),
    )
    .addOption(
      flag('--log-level <level>', 'least level to log; debug tells each request')
        .choices(['debug', 'info', 'warn', 'error', 'silent'])
        .default('info'),
    )
    .action(async (options) => (await import('./serve.ts')).serve(options));

  const token = plantStore.command('token').description('make, list and revoke tokens');

  token
    .command('create')
    .description('make a token and print it: the only time that it is shown')
    .addArgument(new Argument('<user>', 'who will send it').argParser(textOf(Name)))
    .addOption(database())
    .addOption(storeName().default('main'))
    .addOption(
      flag('--role <role>', "the user's role in the store from now on (a new user is a member)") //
        .choices(roles),
    )
    .addOption(
      flag('--scope <list>', 'what the token is good for, with commas between')
        .argParser(scopeList)
        .default([...scopes], scopes.join(',')),
    )
    .addOption(
      flag('--expires <duration>', 'its lifetime, such as 12h or 90d').argParser(durationMs),
    )
    .addOption(
      flag('--label <text>', 'a note to tell it by').argParser(textOf(Tag)).default('', 'none'),
    )
    .action(async (user, options) => (await import('./token.ts')).createToken(user, options));

  token
    .command('list')
    .description('list the tokens, ended ones included')
    .addOption(database())
    .addOption(storeName())
    .action(async (options) => (await import('./token.ts')).listTokens(options));

  token
    .command('revoke')
    .description('end a token at once')
    .addArgument(new Argument('<id>', 'its id, as "token list" shows it'))
    .addOption(database())
    .action(async (id, options) => (await import('./token.ts')).revokeToken(id, options));

  plantStore
    .command('migrate')
    .description('bring a database to the newest schema (serve does so too)')
    .addOption(database())
    .action(async (options) => (await import('./migrate.ts')).migrate(options));

  plantStore
    .command('backup')
    .description('copy a database while it is in use, and check the copy')
    .addArgument(new Argument('<file>', 'the copy; must not exist'))
    .addOption(database())
    .action(async (file, options) => (await import('./backup.ts')).backup(file, options));

  plantStore
    .command('restore')
    .description('put a backup in the place of a database that is not in use')
    .addArgument(new Argument('<file>', 'the backup'))
    .addOption(database())
    .action(async (file, options) => (await import('./backup.ts')).restore(file, options));

  plantStore
    .command('copy')
    .description('copy all that a database holds to another one that is empty, and compare them')
    .addOption(flag('--from <url>', 'what is copied').argParser(databaseUrl).makeOptionMandatory())
    .addOption(
      flag('--to <url>', 'where it is copied to').argParser(databaseUrl).makeOptionMandatory(),
    )
    .addOption(new Option('--resume', 'go on with a copy that was broken off').default(false))
    .action(async (options) => (await import('./copy.ts')).copy(options));

  return plantStore;
}

function database() {
  return flag('--database <url>', 'where the plants are: sqlite:PATH or postgres://...')
    .argParser(databaseUrl)
    .default(defaultDatabase, defaultDatabase); // the second time without quotes, for --help
}

function storeName() {
  return flag('--store <name>', 'the store').argParser(textOf(Name));
}
