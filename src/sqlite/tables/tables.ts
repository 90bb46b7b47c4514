import type { DatabaseSync } from 'node:sqlite';
import { noQuotas } from '../../plants/quota.ts';
import type { WriteSettings } from '../../storage.ts';
import { preparerOf } from '../driver.ts';
import { openGrants } from './grants.ts';
import { openCounts } from './plant-counts.ts';
import { openLists } from './plant-lists.ts';
import { openPlants } from './plants.ts';
import { openLog, openStatements } from './statements.ts';
import { openStores } from './stores.ts';

/** All tables on one connection. Those of the event loop only read, and those of the writer thread write. */
export type Tables = ReturnType<typeof openTables>;

export function openTables(
  database: DatabaseSync,
  { quotas = noQuotas, keepChangesMs }: WriteSettings = {},
) {
  const prepare = preparerOf(database);
  const stores = openStores(prepare);
  const statements = openStatements(prepare);
  const hasLog = keepChangesMs !== 0;
  const parts = {
    grants: openGrants(prepare, statements),
    counts: openCounts(prepare, quotas),
    stores,
    statements,
    log: openLog(prepare, statements, stores),
  };
  return {
    ...parts,
    hasLog,
    plants: openPlants(prepare, parts, { quotas, hasLog }, keepChangesMs),
    lists: openLists(prepare),
  };
}
