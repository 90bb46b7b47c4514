import { io, print } from '../output.ts';
import { printableJson } from '../terminal.ts';
import { tableOf } from '../table.ts';
import { withStore, type StoreOptions } from './store.ts';

export async function getPlant(
  id: number,
  { json, ...options }: StoreOptions & { json?: true },
): Promise<void> {
  await withStore(options, async (store) => {
    const { name, tag } = await store.get(id);
    if (json || !io.stdout.isTTY) print(printableJson({ id, name, tag }));
    else print(tableOf(['ID', 'NAME', 'TAG'], [[id, name, tag]]));
  });
}
