import { createWriteStream, existsSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { Refusal } from '../../refusal.ts';
import { publishFile, syncFile } from '../../sqlite/files.ts';
import { withTemporaryFile } from '../../sqlite/temporary-file.ts';
import { print } from '../output.ts';
import { withExitOnSignal } from '../signals.ts';
import { formats, type Pages } from './format.ts';
import { listPlants, pagesOf, type Selection } from './list.ts';
import { withStore, type StoreOptions } from './store.ts';

type ExportOptions = StoreOptions & Selection & { json?: true; csv?: true };

/** Like other programs, and without the bits of the umask. */
const defaultMode = 0o666;

export async function exportPlants(
  file: string | undefined,
  options: ExportOptions,
): Promise<void> {
  if (file === undefined) {
    await listPlants({ ...options, ...(!options.csv && { json: true }) });
    return;
  }
  if (existsSync(file)) throw new Refusal(`${file} already exists. Choose another name.`);
  const format = options.csv || (!options.json && /\.csv$/i.test(file)) ? 'csv' : 'json';
  let count = 0;
  await withStore(options, (store) => {
    const write = async (partial: string) => {
      const pages = counting(pagesOf(store, options), (plants) => (count += plants));
      await pipeline(formats[format](pages, options.fields), createWriteStream(partial));
      syncFile(partial);
      publishFile(partial, file);
    };
    return withExitOnSignal(() => withTemporaryFile(file, write, defaultMode));
  });
  print(`Exported ${count} ${count === 1 ? 'plant' : 'plants'} to ${file}.`);
}

async function* counting(pages: Pages, count: (plants: number) => void): Pages {
  for await (const page of pages) {
    count(page.length);
    yield page;
  }
}
