import { SqliteStorage } from '../sqlite/storage.ts';

/** Opening brings the schema to the newest; there is no more to it. */
export async function migrate({ database }: { database: string }): Promise<void> {
  await new SqliteStorage(database, { create: true })[Symbol.asyncDispose]();
  console.log(`${database} has the newest schema.`);
}
