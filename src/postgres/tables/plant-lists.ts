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
  scanPlants,
  type NamesOf,
  type PlantScanStep,
} from '../../plants/lists.ts';
import type { PlantPage, PlantQuery } from '../../plants/plant-storage.ts';
import {
  listSql,
  maxScannedPlants,
  listValues,
  mergeSql,
  scanStepEndSql,
  scanStepPlants,
  scanStepSql,
  searchSql,
} from './plant-statements.ts';
import type { Servers } from '../servers.ts';
import type { Row, Statement } from '../../sql/statement.ts';

export async function listPlants(
  servers: Servers,
  caller: ReadAccess,
  query: PlantQuery,
  namesOf: NamesOf,
): Promise<PlantPage> {
  const kind = listKind(caller.read, query);
  if (kind === 'scan') {
    const step = caller.read === 'all' ? search : scanStep;
    const by = query.tag === undefined ? 'text' : 'tag';
    const { scanSteps } = servers.placeOf(caller.store);
    return scanPlants(caller, query, namesOf, (left) =>
      scanSteps.run(userKey(caller), () => step(servers, caller, left, by, left.tag ?? left.q)),
    );
  }
  if (kind === 'owners') return listOwners(servers, caller, query, namesOf);
  const values = listValues(kind, caller, query);
  const rows = await readRows(servers, caller, listSql[kind], values);
  return pageOf(rows, caller, query, namesOf);
}

function readRows<R extends Row>(
  servers: Servers,
  caller: ReadAccess,
  statement: Statement<R>,
  values: readonly unknown[],
): Promise<R[]> {
  return servers.read(caller.store, statement, values, userKey(caller));
}

/** Each step searches the next plants of the store for those in reach or, if few are, merges those of each owner. */
async function listOwners(
  servers: Servers,
  caller: ReadAccess,
  query: PlantQuery,
  namesOf: NamesOf,
): Promise<PlantPage> {
  let isSearching = caller.read.length >= minScannedOwners;
  // Enough if the owners have similar numbers of plants. If one owner has most, the next steps read more of each.
  let plantsEach = 8 + Math.ceil((2 * query.limit) / caller.read.length);
  return scanPlants(caller, query, namesOf, async (left) => {
    const { after, limit } = left;
    const wanted = limit + 1;
    if (isSearching) {
      const step = await search(servers, caller, left, 'owners', caller.read);
      isSearching = isDense(step.rows.length, maxScannedPlants);
      return step;
    }
    const step = await merge(servers, caller, after, wanted, plantsEach);
    const { rows, scannedTo = maxId } = step;
    if (rows.length < wanted / 2) plantsEach *= 2;
    isSearching = isDense(rows.length, scannedTo - after); // the store has at most one plant per id
    return step;
  });
}

/** Searches the next plants of the store for those of the owners, with the tag or with the text. */
async function search(
  servers: Servers,
  caller: ReadAccess,
  query: PlantQuery,
  by: keyof typeof searchSql,
  wanted: unknown,
): Promise<PlantScanStep> {
  const maxRows = maxRowsOf(query, maxScannedPlants);
  const values = [caller.store, query.after, maxRows, wanted];
  const rows = await readRows(servers, caller, searchSql[by], values);
  const [last, , , , , nth] = rows.at(-1) ?? [];
  return {
    rows: rows.filter(([, , , , isFound]) => isFound),
    scannedTo: nth === maxScannedPlants || rows.length === maxRows ? last : undefined,
  };
}

async function merge(
  servers: Servers,
  caller: ReadAccess,
  after: number,
  wanted: number,
  plantsEach: number,
): Promise<PlantScanStep> {
  const { store, read } = caller;
  const values = [store, after, maxId, wanted, read, Math.min(plantsEach, wanted)];
  const merged = await readRows(servers, caller, mergeSql, values);
  const completeTo = merged[0]?.[4] ?? maxId;
  const rows = merged.filter(([id]) => id <= completeTo);
  const isEnd = rows.length < wanted && completeTo === maxId;
  return { rows, scannedTo: isEnd ? undefined : rows.at(-1)?.[0] };
}

async function scanStep(
  servers: Servers,
  caller: ReadAccess,
  query: PlantQuery,
  by: keyof typeof scanStepSql,
  wanted: unknown,
): Promise<PlantScanStep> {
  const { store, read } = caller;
  const { after } = query;
  const maxRows = maxRowsOf(query, scanStepPlants);
  const [end] = await readRows(servers, caller, scanStepEndSql, [store, read, after, maxId]);
  const stepEnd = end?.[0] ?? undefined;
  const range = [store, after, stepEnd ?? maxId, maxRows, read, wanted];
  const rows = await readRows(servers, caller, scanStepSql[by], range);
  return { rows, scannedTo: rows.length === maxRows ? rows.at(-1)?.[0] : stepEnd };
}

/** Rows of a step. In a search, any of them may not contain the text, so the limit does not end a step. */
function maxRowsOf({ q, limit }: PlantQuery, plants: number): number {
  return q === undefined ? limit + 1 : plants + 1;
}
