/**
 * Lists of plants in PostgreSQL.
 */
import { userKey, type ReadAccess } from '../../access/access.ts';
import type { UserStorage } from '../../access/user-storage.ts';
import { plantOf } from '../../plants/fields.ts';
import { isFiltered, listPlants, sourceOf, type StepReader } from '../../plants/lists.ts';
import type { PlantPage, PlantQuery } from '../../plants/plant-storage.ts';
import type { Servers } from '../servers.ts';
import { listSql } from './plant-statements.ts';

/** Plants of a step: it takes the server a few milliseconds, also for the maximum number of owners. */
const maxStepPlants = { store: 2_000, owner: 2_000, owners: 300 };

export function readPage(
  servers: Servers,
  caller: ReadAccess,
  query: PlantQuery,
  users: Pick<UserStorage, 'namesOf'>,
): Promise<PlantPage> {
  const readStep = stepReader(servers, caller);
  if (!isFiltered(query)) return listPlants(caller, query, users, readStep);
  const { scanSteps } = servers.placeOf(caller.store);
  return listPlants(caller, query, users, (...step) =>
    scanSteps.run(userKey(caller), () => readStep(...step)),
  );
}

function stepReader(servers: Servers, caller: ReadAccess): StepReader {
  const { store, read } = caller;
  const source = sourceOf(read);
  const owners = read === 'all' ? [] : read;
  let more = 1;
  return async (after, limit, filter) => {
    const count = Math.min(limit, maxStepPlants[source]);
    // Enough if the owners have similar numbers of plants. While one owner has most, steps read more of each.
    const each = Math.min(count, more * (8 + Math.ceil((2 * count) / owners.length)));
    const reach = { store: [], owner: owners, owners: [owners, each] }[source];
    const statement = listSql[source][filter?.by ?? 'all'];
    const values = [store, after, count, ...reach, ...(filter ? [filter.wanted] : [])];
    const rows = await servers.read(store, statement, values, userKey(caller));
    const [completeTo, nth, last] = rows.at(-1) ?? [];
    const readCount = nth ?? rows.length;
    more = readCount < count / 2 ? 2 * more : Math.max(1, more / 2);
    const isEnd = readCount < count && completeTo === null;
    const plants = rows.map(([, , id, owner, ...texts]) => plantOf(id, owner, texts));
    return { rows: plants, scannedTo: isEnd ? undefined : last };
  };
}
