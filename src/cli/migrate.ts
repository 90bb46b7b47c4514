import { openStorage, shownDatabase } from './database.ts';

/** Opening brings the schema to the newest; there is no more to it. */
export async function migrate({ database }: { database: string }): Promise<void> {
  const storage = await openStorage(database, { create: true });
  await storage[Symbol.asyncDispose]();
  console.log(`${shownDatabase(database)} has the newest schema.`);
}
