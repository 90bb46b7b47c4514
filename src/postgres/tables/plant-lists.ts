/**
 * Lists of plants in PostgreSQL.
 */
import { soleOwner, userKey, type ReadAccess } from '../../access/access.ts';
import { isFiltered, listPlants, type NamesOf, type StepReader } from '../../plants/lists.ts';
import type { PlantPage, PlantQuery } from '../../plants/plant-storage.ts';
import type { Servers } from '../servers.ts';
import { listSql } from './plant-statements.ts';

/** Plants of a step: it takes the server a few milliseconds, also for the maximum number of owners. */
const maxStepPlants = { store: 2_000, owner: 2_000, owners: 300 };

export function readPage(
  servers: Servers,
  caller: ReadAccess,
  query: PlantQuery,
  namesOf: NamesOf,
): Promise<PlantPage> {
  const readStep = stepReader(servers, caller);
  if (!isFiltered(query)) return listPlants(caller, query, namesOf, readStep);
  const { scanSteps } = servers.placeOf(caller.store);
  return listPlants(caller, query, namesOf, (...step) =>
    scanSteps.run(userKey(caller), () => readStep(...step)),
  );
}

function stepReader(servers: Servers, caller: ReadAccess): StepReader {
  const { store, read } = caller;
  const owner = soleOwner(read);
  const ownersInReach = read === 'all' ? 1 : read.length;
  const source = read === 'all' ? 'store' : owner === undefined ? 'owners' : 'owner';
  let more = 1;
  return async (after, limit, filter) => {
    const count = Math.min(limit, maxStepPlants[source]);
    // Enough if the owners have similar numbers of plants. While one owner has most, steps read more of each.
    const each = Math.min(count, more * (8 + Math.ceil((2 * count) / ownersInReach)));
    const owners = { store: [], owner: [owner], owners: [read, each] }[source];
    const statement = listSql[source][filter?.by ?? 'all'];
    const values = [store, after, count, ...owners, ...(filter ? [filter.wanted] : [])];
    const rows = await servers.read(store, statement, values, userKey(caller));
    const [last, , , , completeTo, nth = rows.length] = rows.at(-1) ?? [];
    more = nth < count / 2 ? 2 * more : Math.max(1, more / 2);
    return { rows, scannedTo: nth < count && completeTo === null ? undefined : last };
  };
}
