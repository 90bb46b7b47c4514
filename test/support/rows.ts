import type { Plant } from '../../src/plants/plant.ts';
import { openPostgresArchive } from '../../src/postgres/archive.ts';
import { fileOf, isFile } from '../../src/cli/database.ts';
import { tables, type Row, type Table } from '../../src/copy/archive.ts';
import { insertRows } from '../../src/sqlite/archive.ts';
import { commitAfter } from '../../src/sqlite/driver.ts';
import { openDatabase } from '../../src/sqlite/file/open.ts';

export type Rows = Partial<Record<Table, readonly Row[]>>;

/** Adds rows to a database, also while it is in use. The values are those of `copiedColumns`. */
export async function addRows(url: string, rows: Rows): Promise<void> {
  const all = tables.map((table) => [table, rows[table] ?? []] as const);
  if (isFile(url)) {
    using database = openDatabase(fileOf(url), { create: false });
    database.exec('BEGIN IMMEDIATE');
    commitAfter(database, () => {
      for (const [table, part] of all) insertRows(database, table, part);
    });
    return;
  }
  await using archive = await openPostgresArchive(url, { create: false });
  await archive.fill(async (target) => {
    for (const [table, part] of all) if (part.length > 0) await target.add(table, part);
  });
}

/** The rows of stores whose plants belong to users with the ids from 1 to `owners`. */
export function rowsOf(
  stores: readonly { store: number; plants: readonly (Plant & { owner: number })[] }[],
  owners: number,
) {
  const users = Array.from({ length: owners }, (_, at) => [
    at + 1,
    `user ${at}`,
    'member',
    null,
    0,
  ]);
  return {
    stores: stores.map(({ store, plants }) => {
      return [store, `store ${store}`, plants.at(-1)?.id ?? 0, owners, 0];
    }),
    users: stores.flatMap(({ store }) => users.map((user) => [store, ...user])),
    plants: stores.flatMap(({ store, plants }) =>
      plants.map(({ id, owner, tag, name }) => [store, id, owner, 0, name, tag]),
    ),
  };
}
