import type { PlantStore } from './client.ts';

/**
 * The largest id that the user can see; 0 if there is none. Doubles its steps until no id is above, then halves them:
 * about 40 requests for 1,000,000 plants.
 */
export async function largestVisibleId(store: PlantStore, signal: AbortSignal): Promise<number> {
  let low = (await nextId(store, 0, signal)) ?? 0;
  let high = Number.MAX_SAFE_INTEGER; // no id is larger
  for (let step = 1; low < high; step *= 2) {
    const after = low + Math.min(step, Math.floor((high - low) / 2));
    const found = await nextId(store, after, signal);
    if (found === undefined) high = after;
    else low = found;
  }
  return low;
}

/** The smallest visible id above `after`. */
async function nextId(
  store: PlantStore,
  after: number,
  signal: AbortSignal,
): Promise<number | undefined> {
  const fields = ['id'] as const;
  const { value } = await store.list({ fields, after, pageSize: 1, signal }).next();
  return value?.id;
}
