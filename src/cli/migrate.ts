import { openStorage, displayName } from './database.ts';

/** Opening a storage already upgrades its schema and, on a cluster, distributes its tables. */
export async function migrate({ database }: { database: string }): Promise<void> {
  const storage = await openStorage(database, { create: true, distribute: true });
  await storage[Symbol.asyncDispose]();
  console.log(`${displayName(database)} has the newest schema.`);
}
