import { displayName, openExisting, openStorage } from '../database.ts';
import type { DatabaseOptions } from '../options.ts';
import { printResult } from '../output.ts';

/** Opening a storage already upgrades its schema and, on a cluster, distributes its tables. */
export async function migrate(options: DatabaseOptions): Promise<void> {
  const { database } = options;
  const existing = await openExisting(database, { distribute: true });
  const isNew = existing === undefined;
  const storage = existing ?? (await openStorage(database, { create: true, distribute: true }));
  await storage[Symbol.asyncDispose]();
  const name = displayName(database);
  const text = isNew ? `Created ${name} with the newest schema.` : `${name} has the newest schema.`;
  printResult(options, { database: name, created: isNew }, text);
}
