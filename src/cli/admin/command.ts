/**
 * Commands that open a database. They print their result as text for people, or with --json as JSON.
 */
import type { Command } from '@commander-js/extra-typings';
import type { Storage } from '../../storage.ts';
import { openStorage } from '../database.ts';
import { databaseFlag, examples } from '../options.ts';
import { printed, type Result } from '../output.ts';
import { tableOf, type Rows } from '../table.ts';

/** Adds a command that opens a database. */
export function databaseCommand(parent: Command, name: string, lines: readonly string[]) {
  return parent
    .command(name)
    .addOption(databaseFlag())
    .option('--json', 'print the result as JSON')
    .addHelpText('after', examples(lines));
}

/** Returns an action that opens the database, which must exist, and prints what `work` returns. */
export function inDatabase<Args extends unknown[]>(
  work: (storage: Storage, ...args: Args) => Promise<Result>,
) {
  return async function action(
    this: { opts(): { database: string; json?: true | undefined } },
    ...args: Args
  ): Promise<void> {
    await using storage = await openStorage(this.opts().database, { create: false });
    await printed(() => work(storage, ...args)).call(this);
  };
}

/** Returns an action that lists the rows that `read` returns: in these columns, or with all fields as JSON. */
export function lists<Column extends string, Args extends unknown[]>(
  columns: readonly Column[],
  read: (storage: Storage, ...args: Args) => Promise<Rows<Column>>,
) {
  return inDatabase<Args>(async (...args) => {
    const rows = await read(...args);
    return { value: rows, text: tableOf(columns, rows) };
  });
}
