/**
 * Fills a database file without the service in between: 1,000 members, each of them owning one plant
 * in a thousand, and a manager.
 */
import { openDatabase } from '../src/sqlite/database.ts';
import { SqliteStorage } from '../src/sqlite/storage.ts';
import { scopes } from '../src/access.ts';
import { hashToken, makeToken } from '../src/token.ts';

export const members = 1_000;

export interface Seeded {
  /** Token of a member who owns 1 plant in 1,000. */
  member: string;
  manager: string;
}

export async function seed(path: string, plants: number): Promise<Seeded> {
  await using storage = new SqliteStorage(path, { create: true });
  const token = async (user: string, role: 'member' | 'manager') => {
    const text = makeToken();
    const hash = hashToken(text);
    await storage.createToken({
      hash,
      store: 'main',
      user,
      role,
      scopes,
      label: '',
      createdAtMs: 0,
    });
    return text;
  };
  const tokens: string[] = [];
  for (let user = 1; user <= members; user++) tokens.push(await token(`member ${user}`, 'member'));
  const manager = await token('manager', 'manager');

  const database = openDatabase(path, { create: false });
  database.exec(`
    BEGIN IMMEDIATE;
    WITH RECURSIVE ids (id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM ids WHERE id < ${plants})
    INSERT INTO plants (store, id, owner, tag, name)
    SELECT 1, id, id % ${members} + 1, 'bed ' || (id % 20), 'Monstera deliciosa ' || id FROM ids;
    UPDATE stores SET last_id = ${plants};
    COMMIT;
    PRAGMA wal_checkpoint(TRUNCATE);`);
  database.close();
  return { member: tokens[0] ?? '', manager };
}
