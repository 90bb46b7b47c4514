/**
 * Lists of plants in PostgreSQL.
 */
import { userKey, type ReadAccess } from '../../access/access.ts';
import { maxId } from '../../plants/ids.ts';
import {
  isDense,
  listKind,
  minScannedOwners,
  pageOf,
  scan,
  type NamesOf,
  type ScanStep,
} from '../../plants/lists.ts';
import type { PlantPage, PlantQuery } from '../../plants/plant-storage.ts';
import {
  listSql,
  maxScannedPlants,
  listValues,
  mergeSql,
  scanStepEndSql,
  scanStepSql,
  searchSql,
} from './plant-statements.ts';
import type { Cluster } from '../citus/cluster.ts';
import type { Row, Statement } from '../pool/connection.ts';

export async function listPlants(
  cluster: Cluster,
  caller: ReadAccess,
  query: PlantQuery,
  namesOf: NamesOf,
): Promise<PlantPage> {
  const kind = listKind(caller.read, query);
  if (kind === 'scan') {
    const { tag } = query;
    return scan(caller, query, namesOf, (left) =>
      caller.read === 'all'
        ? search(cluster, caller, left, 'tag', tag)
        : scanStep(cluster, caller, left),
    );
  }
  if (kind === 'owners') return listOwners(cluster, caller, query, namesOf);
  const values = listValues(kind, caller, query);
  const rows = await readRows(cluster, caller, listSql[kind], values);
  return pageOf(rows, caller, query, namesOf);
}

function readRows<R extends Row>(
  cluster: Cluster,
  caller: ReadAccess,
  statement: Statement<R>,
  values: readonly unknown[],
): Promise<R[]> {
  return cluster.read(caller.store, statement, values, userKey(caller));
}

/** Each step searches the next plants of the store for those in reach or, if few are, merges those of each owner. */
async function listOwners(
  cluster: Cluster,
  caller: ReadAccess,
  query: PlantQuery,
  namesOf: NamesOf,
): Promise<PlantPage> {
  let isSearching = caller.read.length >= minScannedOwners;
  // Enough if the owners have similar numbers of plants. If one owner has most, the next steps read more of each.
  let plantsEach = 8 + Math.ceil((2 * query.limit) / caller.read.length);
  return scan(caller, query, namesOf, async (left) => {
    const { after, limit } = left;
    const wanted = limit + 1;
    if (isSearching) {
      const step = await search(cluster, caller, left, 'owners', caller.read);
      isSearching = isDense(step.rows.length, maxScannedPlants);
      return step;
    }
    const step = await merge(cluster, caller, after, wanted, plantsEach);
    const { rows, scannedTo = maxId } = step;
    if (rows.length < wanted / 2) plantsEach *= 2;
    isSearching = isDense(rows.length, scannedTo - after); // the store has at most one plant per id
    return step;
  });
}

/** Searches the next plants of the store for those of the owners, or with the tag. */
async function search(
  cluster: Cluster,
  caller: ReadAccess,
  { after, limit }: PlantQuery,
  by: keyof typeof searchSql,
  wanted: unknown,
): Promise<ScanStep> {
  const values = [caller.store, after, limit + 1, wanted];
  const rows = await readRows(cluster, caller, searchSql[by], values);
  const [last, , , , , nth] = rows.at(-1) ?? [];
  return {
    rows: rows.filter(([, , , , isFound]) => isFound),
    scannedTo: nth === maxScannedPlants ? last : undefined,
  };
}

async function merge(
  cluster: Cluster,
  caller: ReadAccess,
  after: number,
  wanted: number,
  plantsEach: number,
): Promise<ScanStep> {
  const { store, read } = caller;
  const values = [store, after, maxId, wanted, read, Math.min(plantsEach, wanted)];
  const merged = await readRows(cluster, caller, mergeSql, values);
  const completeTo = merged[0]?.[4] ?? maxId;
  const rows = merged.filter(([id]) => id <= completeTo);
  const isEnd = rows.length < wanted && completeTo === maxId;
  return { rows, scannedTo: isEnd ? undefined : rows.at(-1)?.[0] };
}

async function scanStep(
  cluster: Cluster,
  caller: ReadAccess,
  query: PlantQuery,
): Promise<ScanStep> {
  const { store, read } = caller;
  const { after, limit, tag } = query;
  const [end] = await readRows(cluster, caller, scanStepEndSql, [store, read, after, maxId]);
  const scannedTo = end?.[0] ?? undefined;
  const range = [store, after, scannedTo ?? maxId, limit, read, tag];
  return { rows: await readRows(cluster, caller, scanStepSql, range), scannedTo };
}
