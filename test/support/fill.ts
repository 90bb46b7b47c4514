import { DatabaseSync } from 'node:sqlite';

/**
 * Puts plants of the first user of the first store into the file in one transaction: `columns` are
 * id, tag and name as SQL by a running id.
 */
export function fillPlants(path: string, count: number, columns = `id, '', 'n' || id`): void {
  const database = new DatabaseSync(path);
  database.exec(`
    WITH RECURSIVE ids (id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM ids WHERE id < ${count})
    INSERT INTO plants (store, owner, id, tag, name) SELECT 1, 1, ${columns} FROM ids`);
  database.close();
}
