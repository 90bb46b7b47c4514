/**
 * First pages are asked for again and again, so storages keep them; a cursor is walked over once.
 */
import { reachesWholeStore, type Identity } from './access.ts';
import type { PlantQuery } from './storage.ts';

/** Plants of a first page that is kept. */
const firstPagePlantsMax = 100;

/** What a first page is kept under: the same for all who see the same. Undefined for other pages. */
export function firstPageKey(caller: Identity, query: PlantQuery): string | undefined {
  const { after, upTo, limit, tag, fields } = query;
  const isFirst = after === 0 && upTo === undefined && tag === undefined;
  if (!isFirst || limit > firstPagePlantsMax) return undefined;
  const owner = reachesWholeStore(caller) ? 'all' : caller.user;
  return `${caller.store} ${owner} ${limit} ${fields.join()}`;
}
