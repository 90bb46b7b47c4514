import type { DatabaseSync } from 'node:sqlite';
import type { Quotas } from '../quota.ts';
import { Grants } from './grants.ts';
import { PlantCounts } from './plant-counts.ts';
import { PlantLists } from './plant-lists.ts';
import { Plants } from './plants.ts';
import { Shares } from './shares.ts';
import { Tokens } from './tokens.ts';
import { Users } from './users.ts';

/** All tables on one connection. Those of the event loop only read, and those of the writer thread write. */
export type Tables = ReturnType<typeof openTables>;

export function openTables(database: DatabaseSync, quotas: Quotas | undefined) {
  const grants = new Grants(database);
  const counts = quotas && new PlantCounts(database, quotas);
  return {
    grants,
    counts,
    plants: new Plants(database, grants, counts),
    lists: new PlantLists(database),
    tokens: new Tokens(database, grants),
    shares: new Shares(database, grants),
    users: new Users(database, counts),
  };
}
