/**
 * Single plants of a running service.
 */
import type { NewPlant } from '../../client/client.ts';
import { inParallel } from '../../client/in-parallel.ts';
import { isProblem } from '../../client/problem.ts';
import { failWith, io, print, printError } from '../output.ts';
import { tableOf } from '../table.ts';
import { printable, printableJson } from '../terminal.ts';
import { withStore, type StoreOptions } from './store.ts';

/** Plants that are deleted at the same time. */
const concurrency = 32;

export async function getPlant(id: number, { json, ...options }: StoreOptions): Promise<void> {
  await withStore(options, async (store) => {
    const { name, tag } = await store.get(id);
    if (json || !io.stdout.isTTY) print(printableJson({ id, name, tag }));
    else print(tableOf(['ID', 'NAME', 'TAG'], [[id, name, tag]]));
  });
}

export async function addPlant(
  name: string,
  { tag, id: wantedId, json, ...options }: StoreOptions & Partial<NewPlant>,
): Promise<void> {
  const plant = {
    name,
    ...(tag !== undefined && { tag }),
    ...(wantedId !== undefined && { id: wantedId }),
  };
  await withStore(options, async (store) => {
    const { id } = await store.create(plant);
    if (json || !io.stdout.isTTY) print(printableJson({ id, name, tag: tag ?? '' }));
    else print(`Added plant ${id}: ${printable(name)}.`);
  });
}

/** Deletes the plants that exist. If one does not, the exit status is 1. */
export async function removePlants(
  ids: readonly number[],
  { json, ...options }: StoreOptions,
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
