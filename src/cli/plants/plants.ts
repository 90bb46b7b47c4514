/**
 * Single plants of a running service.
 */
import type { NewPlant, Plant } from '../../client/client.ts';
import { maxHistory } from '../../log/change-log.ts';
import { plantFields, textFields, textsOf } from '../../plants/fields.ts';
import type { PlantPatch } from '../../plants/plant.ts';
import { UsageError } from '../../refusal.ts';
import { inParallel } from '../../client/in-parallel.ts';
import { printable } from '../../client/printable.ts';
import { isProblem } from '../../client/problem.ts';
import { failWith, io, print, printError } from '../output.ts';
import { tableOf } from '../table.ts';
import { printableJson } from '../terminal.ts';
import { withStore, type StoreOptions } from './store.ts';

/** What a history shows of the plant before a change. */
const pastFields = [...textFields, 'owner'] as const;

/** Plants that are deleted at the same time. */
const concurrency = 32;

export async function getPlant(id: number, { json, ...options }: StoreOptions): Promise<void> {
  await withStore(options, async (store) => {
    const plant = await store.get(id, { fields: plantFields });
    if (json || !io.stdout.isTTY) print(printableJson(plant));
    else print(tableOf(plantFields, [plantFields.map((field) => plant[field])]));
  });
}

export async function addPlant(
  name: string,
  { url, token, json, ...others }: StoreOptions & Partial<NewPlant>,
): Promise<void> {
  const plant = { ...others, name };
  await withStore({ url, token }, async (store) => {
    const { id } = await store.create(plant);
    printPlant('Added', { id, ...textsOf(plant) }, json);
  });
}

export async function editPlant(
  id: number,
  { url, token, json, ...patch }: StoreOptions & PlantPatch,
): Promise<void> {
  if (Object.keys(patch).length === 0) {
    const ways = textFields.map((field) => `a new ${field} with --${field}`).join(', or ');
    throw new UsageError(`Nothing to change. Set ${ways}.`);
  }
  await withStore({ url, token }, async (store) => {
    printPlant('Updated', await store.update(id, patch, { fields: plantFields }), json);
  });
}

export async function restorePlant(id: number, { json, ...options }: StoreOptions): Promise<void> {
  await withStore(options, async (store) => {
    printPlant('Restored', await store.restore(id, { fields: plantFields }), json);
  });
}

/** A token without `plants:read` does not get all of the plant. */
function printPlant(
  done: string,
  plant: Pick<Plant, 'id'> & Partial<Plant>,
  json: true | undefined,
): void {
  const { id, name } = plant;
  if (json || !io.stdout.isTTY) print(printableJson(plant));
  else print(`${done} plant ${id}${name === undefined ? '' : `: ${printable(name)}`}.`);
}

export async function showHistory(id: number, { json, ...options }: StoreOptions): Promise<void> {
  await withStore(options, async (store) => {
    const changes = await store.history(id);
    if (json || !io.stdout.isTTY) {
      for (const change of changes) print(printableJson(change));
      return;
    }
    const rows = changes.map(({ at, user = 'the operator', event, before }) => [
      at,
      user,
      event,
      ...pastFields.map((field) => before?.[field] ?? ''),
    ]);
    const headings = pastFields.map((field) => `${field}Before`);
    print(tableOf(['at', 'user', 'change', ...headings], rows));
    const isCut = changes.length === maxHistory && changes.at(-1)?.event !== 'created';
    if (isCut) printError(`Only the latest ${maxHistory} changes are shown.`);
  });
}

/**
 * Deletes the plants that exist. If one does not, or can only be read, the exit status is 1. The command that undoes it has
 * these flags.
 */
export async function removePlants(
  ids: readonly number[],
  { json, ...options }: StoreOptions,
  undoFlags: string,
): Promise<void> {
  await withStore(options, async (store) => {
    const results = inParallel(new Set(ids), concurrency, async (id) => {
      const { name } = await store.get(id).catch((error: unknown) => {
        // A token can lack the scope to read.
        if (isProblem(error, 'insufficient-scope') || isProblem(error, 'plant-not-found'))
          return { name: undefined };
        throw error;
      });
      try {
        await store.delete(id);
        return { id, name, status: 'deleted' };
      } catch (error) {
        if (isProblem(error, 'plant-not-found')) return { id, status: 'not found' };
        if (isProblem(error, 'plant-read-only')) return { id, name, status: 'read only' };
        throw error;
      }
    });
    for await (const { id, name, status } of results) {
      if (status !== 'deleted') failWith(1);
      if (json) print(printableJson({ id, name, status }));
      else if (status === 'deleted') {
        const named = name === undefined ? '' : `: ${printable(name)}`;
        print(
          `Deleted plant ${id}${named}. Undo: npx plant-store plants restore ${id}${undoFlags}`,
        );
      } else if (status === 'not found') {
        printError(`error: There is no plant ${id}, or you do not have access to it.`);
      } else printError(`error: You can see plant ${id}, but not delete it.`);
    }
  });
}
