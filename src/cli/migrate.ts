import { openStorage, displayName } from './database.ts';
import { printResult } from './output.ts';

/** Opening a storage already upgrades its schema and, on a cluster, distributes its tables. */
export async function migrate(options: {
  database: string;
  json?: true | undefined;
}): Promise<void> {
  const { database } = options;
  const storage = await openStorage(database, { create: true, distribute: true });
  await storage[Symbol.asyncDispose]();
  const name = displayName(database);
  printResult(options, { database: name }, `${name} has the newest schema.`);
}
