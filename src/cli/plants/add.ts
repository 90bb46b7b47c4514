import type { NewPlant } from '../../client/client.ts';
import { io, print } from '../output.ts';
import { printable, printableJson } from '../terminal.ts';
import { withStore, type StoreOptions } from './store.ts';

export async function addPlant(
  name: string,
  { tag, id: wantedId, json, ...options }: StoreOptions & Partial<NewPlant> & { json?: true },
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
