/**
 * What the page will import: the rows of a file, its columns, and what they mean.
 */
import {
  mappingOf,
  readFile,
  rowsOf,
  type ImportFile,
  type Mapping,
  type ImportRow,
} from '../../client/import-file.ts';
import { byId, element, setText, show } from '../shared/dom.ts';
import { countOf, formatCount } from '../shared/format.ts';

const shownRows = 5;
const fields = ['name', 'tag', 'id'] as const;

/** What is imported. */
export interface ImportSource {
  name: string;
  text: string;
  rows: readonly ImportRow[];
  /** The unit that numbers the rows: JSON can have many rows on a line. */
  place: 'Line' | 'Row';
}

export class ImportPreview {
  readonly #selects = {
    name: byId('import-name', HTMLSelectElement),
    tag: byId('import-tag', HTMLSelectElement),
    id: byId('import-id', HTMLSelectElement),
  };
  #given = { name: '', text: '' };
  #file: ImportFile = { format: 'json', rows: [] };

  constructor() {
    for (const select of Object.values(this.#selects)) {
      select.addEventListener('change', () => this.#draw());
    }
  }

  /** Shows a text. Throws InvalidFile. */
  show(name: string, text: string): void {
    this.#file = readFile(text);
    this.#given = { name, text };
    show('import-mapping', this.#file.format === 'csv');
    if (this.#file.format === 'csv') this.#offer(this.#file.columns);
    this.#draw();
  }

  get source(): ImportSource {
    const file = this.#file;
    if (file.format === 'json') return { ...this.#given, rows: file.rows, place: 'Row' };
    return { ...this.#given, rows: rowsOf(file, this.#mapping), place: 'Line' };
  }

  get #mapping(): Mapping {
    const chosen = fields.map((field) => [field, Number(this.#selects[field].value)] as const);
    return Object.fromEntries(chosen.filter(([, column]) => column >= 0));
  }

  /** Gives the focus to what is to be done next. */
  focus(): void {
    if (this.#hasNames) byId('import-submit', HTMLButtonElement).focus();
    else this.#selects.name.focus();
  }

  /** Every plant needs a name, and a guess could import numbers as names. */
  get #hasNames(): boolean {
    return this.#file.format === 'json' || this.#mapping.name !== undefined;
  }

  #offer(columns: readonly string[]): void {
    const mapping = mappingOf(columns);
    for (const field of fields) {
      const options = columns.map((column, at) =>
        element('option', { value: String(at) }, column === '' ? `Column ${at + 1}` : column),
      );
      const none = element('option', { value: '-1' }, field === 'name' ? 'choose …' : 'none');
      this.#selects[field].replaceChildren(none, ...options);
      this.#selects[field].value = String(mapping[field] ?? -1);
    }
  }

  #draw(): void {
    const { name, rows, place } = this.source;
    setText('import-source', `${name}: ${countOf(rows.length, 'row')}`);
    setText('import-place', place);
    byId('import-rows', HTMLElement).replaceChildren(
      ...rows
        .slice(0, shownRows)
        .map((row, at) =>
          element(
            'tr',
            {},
            element('td', {}, formatCount(place === 'Line' ? row.line : at + 1)),
            ...('fault' in row
              ? [element('td', { colSpan: fields.length, className: 'fault' }, row.fault)]
              : fields.map((field) => element('td', {}, textOf(row.plant[field])))),
          ),
        ),
    );
    const more = rows.length - shownRows;
    setText('import-more', more > 0 ? `and ${formatCount(more)} more` : '');
    setText('import-submit', `Import ${countOf(rows.length, 'row')}`);
    byId('import-submit', HTMLButtonElement).disabled = !this.#hasNames;
    show('import-name-hint', !this.#hasNames);
  }
}

/** JSON can have anything in place of a text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
}
