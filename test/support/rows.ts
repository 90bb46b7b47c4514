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
