import { pipeline } from 'node:stream/promises';
import type { PlantStore } from '../../client/client.ts';
import type { PlantField } from '../../plant.ts';
import { io } from '../output.ts';
import { shownOn } from '../terminal.ts';
import { chooseFormat, formats, type Pages } from './format.ts';
import { withStore, type StoreOptions } from './store.ts';

/** Number of plants per request, and in memory. */
const pagePlants = 1_000;

interface Selection {
  fields: readonly PlantField[];
  tag?: string | undefined;
  limit?: number | undefined;
}

export async function listPlants(
  options: StoreOptions & Selection & { json?: true; csv?: true },
): Promise<void> {
  await withStore(options, (store) =>
    print(formats[chooseFormat(options)](pagesOf(store, options), options.fields)),
  );
}

/** Writes as fast as the reader reads. Returns early if the output is lost: output.ts reports that. */
async function print(texts: AsyncIterable<string>): Promise<void> {
  let lost: unknown;
  const onError = (error: unknown) => (lost = error);
  io.stdout.once('error', onError);
  try {
    await pipeline(shown(texts), io.stdout, { end: false });
  } catch (error) {
    if (error !== lost) throw error;
  } finally {
    io.stdout.off('error', onError);
  }
}

async function* shown(texts: AsyncIterable<string>): AsyncGenerator<string, void> {
  for await (const text of texts) yield shownOn(io.stdout, text);
}

async function* pagesOf(store: PlantStore, selection: Selection): Pages {
  const { fields, tag, limit = Infinity } = selection;
  let left = limit;
  const pages = store.pages({ fields, tag, limit: Math.min(left, pagePlants) });
  for await (const page of pages) {
    yield page.slice(0, left);
    left -= page.length;
    if (left <= 0) return;
  }
}
