/**
 * The commands about whole databases.
 */
import type { Command } from '@commander-js/extra-typings';
import { databaseCommand, examples, flag, parseDatabaseUrl } from '../options.ts';

export function addDatabaseCommands(plantStore: Command): void {
  databaseCommand(plantStore, 'migrate', [
    'plant-store migrate',
    'plant-store migrate --database postgres://plants@db.example/plants',
  ])
    .description('create a database or upgrade its schema; serve also does this')
    .action(async (options) => (await import('./migrate.ts')).migrate(options));

  databaseCommand(plantStore, 'backup', ['plant-store backup plants.backup'])
    .description('back up an SQLite database, even while it is in use, and verify the copy')
    .argument('<file>', 'path of the backup; must not exist')
    .action(async (file, options) => (await import('./backup.ts')).backup(file, options));

  databaseCommand(plantStore, 'restore', [
    'plant-store restore plants.backup --database sqlite:plants.db',
  ])
    .description('replace an SQLite database with a backup; stop the service first')
    .argument('<file>', 'path of the backup')
    .action(async (file, options) => (await import('./backup.ts')).restore(file, options));

  plantStore
    .command('copy')
    .description('copy a database to another, empty one, and compare the two')
    .addOption(databaseUrl('--from <url>', 'database to copy'))
    .addOption(databaseUrl('--to <url>', 'new file or empty database to copy it to'))
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      examples([
        'plant-store copy --from sqlite:plant-store.db --to postgres://plants@db.example/plants',
      ]),
    )
    .action(async (options) => (await import('./copy.ts')).copy(options));
}

function databaseUrl<const Flags extends string>(flags: Flags, description: string) {
  return flag(flags, description).argParser(parseDatabaseUrl).makeOptionMandatory();
}
