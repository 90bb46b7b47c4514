/** A program of a user of the client. */
import {
  PlantStore,
  PlantStoreError,
  type NewPlant,
  type PlantStoreOptions,
} from 'plant-store-client';

/** Uses the client, and returns what a reader can check. */
export async function useClient(options: PlantStoreOptions): Promise<string[]> {
  const store = new PlantStore(options);
  const plants: NewPlant[] = [{ name: 'Monstera' }, { name: 'Ficus', tag: 'indoor', id: 40 }];
  for (const plant of plants) await store.create(plant);

  const seen: string[] = [];
  for await (const { id, name } of store.list({ fields: ['id', 'name'], pageSize: 1 })) {
    seen.push(`${id.toFixed()} ${name.toUpperCase()}`);
  }
  for await (const page of store.pages({ tag: 'indoor' })) seen.push(`${page.length} indoor`);
  const { tag } = await store.get(40, { fields: ['tag'], signal: AbortSignal.timeout(10_000) });
  seen.push(tag);
  seen.push((await store.token()).user);
  const stop = new AbortController();
  const mirror = await store.mirror({ fields: ['name'], signal: stop.signal });
  seen.push([...mirror.plants.values()].map(({ name }) => name).join());
  for (const id of [1, 40]) await store.delete(id);
  await mirror.until();
  seen.push(`${mirror.plants.size.toFixed()} left`);
  stop.abort();
  await mirror.ended;
  try {
    await store.delete(40);
  } catch (error) {
    if (!(error instanceof PlantStoreError) || error.kind !== 'plant-not-found') throw error;
    seen.push(`${error.status} ${error.title}`);
  }
  // @ts-expect-error: `name` is required
  await store.create({ tag: 'indoor' }).catch((error: PlantStoreError) => {
    seen.push(error.errors.map(({ pointer }) => pointer).join());
  });
  return seen;
}
