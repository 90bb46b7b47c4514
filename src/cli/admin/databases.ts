/**
 * The commands about whole databases: migrate, backup, restore, verify and copy.
 */
import { resolve } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { tables } from '../../copy/archive.ts';
import { Refusal } from '../../refusal.ts';
import { displayName, fileOf, openArchive, openExisting, openStorage } from '../database.ts';
import { examples, flag, keepChangesFlag, parseDatabaseUrl } from '../options.ts';
import { failWith, printed } from '../output.ts';
import { withProgress } from '../progress.ts';
import { databaseCommand } from './command.ts';

export function addDatabaseCommands(plantStore: Command): void {
  databaseCommand(plantStore, 'migrate', [
    'plant-store migrate',
    'plant-store migrate --database postgres://plants@db.example/plants',
  ])
    .description('create a database or upgrade its schema; serve also does this')
    .action(
      printed(async ({ database }) => {
        // Opening a storage already upgrades its schema and, on a cluster, distributes its tables.
        const existing = await openExisting(database, { distribute: true });
        const created = existing === undefined;
        await using _ =
          existing ?? (await openStorage(database, { create: true, distribute: true }));
        const name = displayName(database);
        const text = created ? `Created ${name} with` : `${name} has`;
        return { value: { database: name, created }, text: `${text} the newest schema.` };
      }),
    );

  databaseCommand(plantStore, 'backup', ['plant-store backup plants.backup'])
    .description('back up an SQLite database, even while it is in use, and verify the copy')
    .argument('<file>', 'path of the backup; must not exist')
    .addOption(keepChangesOfService())
    .action(
      printed(async (path, options) => {
        const { backupDatabase } = await import('../../sqlite/backup.ts');
        const [database, file] = [fileOf(options.database), resolve(path)];
        await withProgress('Copying', 'pages', (onProgress) =>
          backupDatabase(database, file, options.keepChanges !== 0, onProgress),
        );
        const text = `Backed up ${database} to ${file} and verified the copy.`;
        return { value: { database, file }, text };
      }),
    );

  databaseCommand(plantStore, 'restore', [
    'plant-store restore plants.backup --database sqlite:plants.db',
  ])
    .description('replace an SQLite database with a backup; stop the service first')
    .argument('<file>', 'path of the backup')
    .action(
      printed(async (path, options) => {
        const { restoreDatabase } = await import('../../sqlite/backup.ts');
        const { giveToFolderOwner } = await import('../../sqlite/file/files.ts');
        const [database, file] = [fileOf(options.database), resolve(path)];
        const previous = await withProgress('Restoring', 'pages', (onProgress) =>
          restoreDatabase(file, database, onProgress),
        );
        if (previous === undefined) giveToFolderOwner(database); // else it has the former owner
        const kept = previous && `\nThe previous database is kept at ${previous}.`;
        const text = `Restored ${file} to ${database}.${kept ?? ''}`;
        return { value: { database, file, previous }, text };
      }),
    );

  databaseCommand(plantStore, 'verify', ['plant-store verify', 'plant-store verify --json'])
    .description('compare a database, even while it is in use, with its log of changes')
    .addOption(keepChangesOfService())
    .action(
      printed(async ({ database, keepChanges }) => {
        const { verifyArchive } = await import('../../copy/verify.ts');
        await using archive = await openArchive(database, { create: false, isUnchanged: true });
        const { digest, ...result } = await withProgress('Verifying', 'rows', (onProgress) =>
          verifyArchive(archive, keepChanges !== 0, onProgress),
        );
        const { changes, plants, faults } = result;
        if (faults.length > 0) failWith(1);
        const text =
          `${faults.join('\n') || 'ok'}\n` +
          `Changes: ${changes}, plants: ${plants}\nSHA-256: ${digest}`;
        return { value: { sha256: digest, ...result }, text };
      }),
    );

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
    .action(printed(copy));
}

function keepChangesOfService() {
  return keepChangesFlag('set it as for "serve": with 0, there is no log to compare with');
}

function databaseUrl<const Flags extends string>(flags: Flags, description: string) {
  return flag(flags, description).argParser(parseDatabaseUrl).makeOptionMandatory();
}

/** Copies all data of one database to another, on the same engine or a different one. */
async function copy(options: { from: string; to: string }) {
  const { copyAndCompare } = await import('../../copy/copy.ts');
  const [from, to] = [displayName(options.from), displayName(options.to)];
  if (from === to) {
    throw new Refusal('--from and --to are the same database. Choose another with --to.');
  }
  await using source = await openArchive(options.from, { create: false });
  await using target = await openArchive(options.to, { create: true });
  const { rows, digest } = await target.fill(async (empty) => {
    for (const table of tables) {
      if ((await empty.read(table, undefined, 1)).length === 0) continue;
      throw new Refusal(`${to} is not empty: it contains ${table}. Copy to an empty database.`);
    }
    return copyAndCompare(source, empty, withProgress);
  });
  const summary = Object.entries(rows).map(([table, count]) => `${table}: ${count}`);
  const text = `Copied ${from} to ${to} (${summary.join(', ')}).\nSHA-256 of both: ${digest}`;
  return { value: { from, to, rows, sha256: digest }, text };
}
