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
import { openShares } from './shares.ts';
import { openStores } from './stores.ts';
import { openTokens } from './tokens.ts';
import { openUsers } from './users.ts';

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
  const log = openLog(prepare, stores, keepChangesMs);
  const keys = openIdempotencyKeys(prepare);
  const users = openUsers(prepare, counts, stores, log);
  const rules = { quotas, hasLog: keepChangesMs !== 0 };
  return {
    grants,
    counts,
    stores,
    log,
    plants: openPlants(prepare, rules, grants, counts, stores, log, keys),
    lists: openLists(prepare),
    tokens: openTokens(prepare, grants, users, log),
    shares: openShares(prepare, grants, log),
    users,
  };
}

/** A call of a method of a table, as plain data. */
export type Call = { [Name in keyof Called]: CallOf<Name, Called[Name]> }[keyof Called];
type Called = Pick<Tables, 'plants' | 'tokens' | 'shares' | 'users' | 'log' | 'stores'>;
type CallOf<Name, Table> = {
  [Method in keyof Table]: Table[Method] extends (...args: infer Args) => unknown
    ? readonly [table: Name, method: Method, ...args: Args]
    : never;
}[keyof Table];

export function call(tables: Tables, [name, method, ...args]: Call): unknown {
  // The type of the call has checked this combination, which the compiler cannot follow here.
  const table = tables[name] as unknown as Record<typeof method, (...args: unknown[]) => unknown>;
  return table[method](...args);
}
