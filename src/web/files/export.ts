/**
 * Saves all plants of the current view as CSV or JSON, not only those that are loaded.
 */
import type { Plant } from '../../client/client.ts';
import { byteOrderMark, writeCsv } from '../../client/csv.ts';
import { textFields } from '../../client/types.ts';
import { store } from '../session/session.ts';
import { element } from '../shared/dom.ts';
import { countOf } from '../shared/format.ts';
import { toast } from '../shared/toast.ts';
import { view } from '../table/plants.ts';

const fields = ['id', ...textFields] as const;
type Exported = Pick<Plant, (typeof fields)[number]>;

const formats = {
  csv: {
    type: 'text/csv',
    start: byteOrderMark + writeCsv(fields),
    row: (plant: Exported) => writeCsv(fields.map((field) => plant[field])),
    end: '',
  },
  json: {
    type: 'application/json',
    start: '[',
    row: (plant: Exported, isFirst: boolean) =>
      `${isFirst ? '' : ','}\n${JSON.stringify(plant, [...fields])}`,
    end: '\n]\n',
  },
};

let running = new AbortController();

export async function exportAs(extension: keyof typeof formats): Promise<void> {
  running.abort();
  const { type, start, row, end } = formats[extension];
  const { tag, q } = view;
  const { signal } = (running = new AbortController());
  const cancel = element('button', { type: 'button' }, 'Cancel');
  cancel.addEventListener('click', () => running.abort());
  const closeMessage = toast('Exporting …', cancel);
  try {
    // A Blob can be larger than the memory of the page: browsers move it to the disk.
    let file = new Blob([start], { type });
    let count = 0;
    // Sorted, each page would cost the service a search of all plants.
    for await (const plants of store.pages({ tag, q, fields, signal })) {
      const rows = plants.map((plant, at) => row(plant, count + at === 0));
      file = new Blob([file, ...rows], { type });
      count += plants.length;
    }
    save(new Blob([file, end], { type }), `plants.${extension}`);
    toast(`Exported ${countOf(count, 'plant')}.`);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    closeMessage();
  }
}

/** Saves a file where the browser puts downloads. */
export function save(file: Blob, name: string): void {
  const href = URL.createObjectURL(file);
  element('a', { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000); // the browser may still be writing
}
