import { openStorage, shownDatabase } from './database.ts';

/** Opening brings the schema to the newest, and on a cluster distributes it; there is no more to it. */
export async function migrate({ database }: { database: string }): Promise<void> {
  const storage = await openStorage(database, { create: true, distribute: true });
  await storage[Symbol.asyncDispose]();
  console.log(`${shownDatabase(database)} has the newest schema.`);
}
