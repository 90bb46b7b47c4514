import { inParallel } from '../../client/in-parallel.ts';
import { isProblem } from '../../client/problem.ts';
import { failWith, print, printError } from '../output.ts';
import { withStore, type StoreOptions } from './store.ts';

const concurrency = 32;

/** Deletes the plants that exist. If one does not, the exit status is 1. */
export async function removePlants(
  ids: readonly number[],
  { json, ...options }: StoreOptions & { json?: true },
): Promise<void> {
  await withStore(options, async (store) => {
    const results = inParallel(new Set(ids), concurrency, async (id) => {
      try {
        await store.delete(id);
        return { id, status: 'deleted' };
      } catch (error) {
        if (!isProblem(error, 'plant-not-found')) throw error;
        return { id, status: 'not found' };
      }
    });
    for await (const result of results) {
      if (result.status === 'not found') failWith(1);
      if (json) print(JSON.stringify(result));
      else if (result.status === 'deleted') print(`Deleted plant ${result.id}.`);
      else printError(`error: There is no plant ${result.id}, or you do not have access to it.`);
    }
  });
}
