/**
 * Saves all plants of the current view as CSV or JSON, not only those that are loaded.
 */
import { writeCsv } from '../../client/csv.ts';
import type { Connection } from '../session/connection.ts';
import { byId, element, onPress } from '../shared/dom.ts';
import { plantCount } from '../shared/format.ts';
import type { Plant } from '../table/plant-list.ts';
import { toast } from '../shared/toast.ts';

const pageSize = 1_000;

const fields = ['id', 'name', 'tag'] as const;

interface Format {
  type: string;
  start: string;
  row: (plant: Plant, isFirst: boolean) => string;
  end: string;
}

const formats: Record<'csv' | 'json', Format> = {
  csv: {
    type: 'text/csv',
    start: writeCsv(fields),
    row: (plant) => writeCsv(fields.map((field) => plant[field])),
    end: '',
  },
  json: {
    type: 'application/json',
    start: '[',
    row: (plant, isFirst) => `${isFirst ? '' : ','}\n${JSON.stringify(plant)}`,
    end: '\n]\n',
  },
};

export class Exporter {
  readonly #connection: Connection;
  readonly #filter: () => string | undefined;
  #abort = new AbortController();

  /** `filter` is the tag of the view, if it has only one. */
  constructor(connection: Connection, filter: () => string | undefined) {
    this.#connection = connection;
    this.#filter = filter;
    onPress('export-csv', () => this.#export('csv'));
    onPress('export-json', () => this.#export('json'));
  }

  stop(): void {
    this.#abort.abort();
  }

  async #export(extension: keyof typeof formats): Promise<void> {
    this.stop();
    byId('export', HTMLElement).hidePopover();
    const format = formats[extension];
    const { signal } = (this.#abort = new AbortController());
    const cancel = element('button', { type: 'button' }, 'Cancel');
    cancel.addEventListener('click', () => this.stop());
    const message = toast('Exporting …', cancel);
    try {
      // A Blob can be larger than the memory of the page: browsers move it to the disk.
      let file = new Blob([format.start], { type: format.type });
      let count = 0;
      for await (const plants of this.#pages(this.#filter(), signal)) {
        const rows = plants.map((plant, at) => format.row(plant, count + at === 0));
        file = new Blob([file, ...rows], { type: format.type });
        count += plants.length;
        message.update(`Exporting: ${plantCount(count)} so far.`);
      }
      save(new Blob([file, format.end], { type: format.type }), `plants.${extension}`);
      toast(`Exported ${plantCount(count)}.`);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      message.close();
    }
  }

  /** The plants of the view. Each page is read again after a problem, so a long export survives one. */
  async *#pages(tag: string | undefined, signal: AbortSignal): AsyncGenerator<Plant[], void> {
    const options = { fields, limit: pageSize, tag, signal };
    let plants = await this.#connection.page(options);
    while (plants.length > 0) {
      yield plants;
      plants = await this.#connection.page({ ...options, after: plants.at(-1)?.id });
    }
  }
}

/** Saves a file where the browser puts downloads. */
export function save(file: Blob, name: string): void {
  const href = URL.createObjectURL(file);
  element('a', { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000); // the browser may still be writing
}
