/**
 * Copies all rows between two storages, in batches, and compares the digests of both.
 */
import { Refusal } from '../refusal.ts';
import { tables, type Archive, type Target } from './archive.ts';
import { digestOf } from './digest.ts';

/** Shows the progress of `work`: its title, and how many rows of the total are done. */
type WithProgress = <T>(
  title: string,
  unit: string,
  work: (onProgress: (done: number, total: number) => void) => Promise<T>,
) => Promise<T>;

/** Copies all rows to an empty storage, and compares it with what was read. Returns the number of rows per table. */
export async function copyAndCompare(
  source: Archive,
  target: Target,
  withProgress: WithProgress,
): Promise<{ rows: Record<string, number>; digest: string }> {
  const version = await source.version();
  const rows: Record<string, number> = {};
  // One table after the other, because each can take long and use all machines.
  for (const table of tables) rows[table] = await source.count(table);
  const total = Object.values(rows).reduce((sum, count) => sum + count, 0);

  const digest = await withProgress('Copying', 'rows', (onProgress) => {
    let done = 0;
    return digestOf(source, async (table, batch) => {
      await target.add(table, batch);
      onProgress((done += batch.length), total);
    });
  });
  const copied = await withProgress('Comparing', 'rows', (onProgress) => {
    let done = 0;
    return digestOf(target, async (_, { length }) => onProgress((done += length), total));
  });
  if (digest !== copied || version !== (await source.version())) {
    throw new Refusal(
      'The copy differs from the original: one of them changed during the copy. ' +
        'Stop the service, then copy again.',
    );
  }
  return { rows, digest };
}
