import type { DatabaseSync } from 'node:sqlite';
import { noQuotas } from '../../plants/quota.ts';
import type { WriteSettings } from '../../storage.ts';
import { preparerOf } from '../driver.ts';
import { openGrants } from './grants.ts';
import { openIdempotencyKeys } from './idempotency-keys.ts';
import { openLog } from './log.ts';
import { openCounts } from './plant-counts.ts';
import { openLists } from './plant-lists.ts';
import { openPlants } from './plants.ts';
import { openStatements } from './statements.ts';
import { openStores } from './stores.ts';

/** All tables on one connection. Those of the event loop only read, and those of the writer thread write. */
export type Tables = ReturnType<typeof openTables>;

export function openTables(
  database: DatabaseSync,
  { quotas = noQuotas, keepChangesMs }: WriteSettings = {},
) {
  const prepare = preparerOf(database);
  const grants = openGrants(prepare);
  const counts = openCounts(prepare, quotas);
  const stores = openStores(prepare);
  const statements = openStatements(prepare);
  const log = openLog(prepare, statements, stores, keepChangesMs);
  const keys = openIdempotencyKeys(prepare);
  const hasLog = keepChangesMs !== 0;
  return {
    grants,
    counts,
    stores,
    log,
    statements,
    hasLog,
    plants: openPlants(prepare, { quotas, hasLog }, grants, counts, stores, log, keys),
    lists: openLists(prepare),
  };
}
