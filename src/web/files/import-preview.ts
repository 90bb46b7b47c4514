/**
 * What the page will import: a file, and its first rows.
 */
import { readFile, type ImportRow } from '../../client/import-file.ts';
import { byId, element, setText } from '../shared/dom.ts';
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

/** Throws InvalidFile. */
export function sourceOf(name: string, text: string): ImportSource {
  const { format, rows } = readFile(text);
  return { name, text, rows, place: format === 'csv' ? 'Line' : 'Row' };
}

export function showPreview({ name, rows, place }: ImportSource): void {
  setText('import-source', `${name}: ${countOf(rows.length, 'row')}`);
  setText('import-place', place);
  const cellsOf = (row: ImportRow) =>
    'fault' in row
      ? [element('td', { colSpan: fields.length, className: 'fault' }, row.fault)]
      : fields.map((field) => element('td', {}, textOf(row.plant[field])));
  const shown = rows.slice(0, shownRows).map((row, at) => {
    const number = formatCount(place === 'Line' ? row.line : at + 1);
    return element('tr', {}, element('td', {}, number), ...cellsOf(row));
  });
  byId('import-rows', HTMLElement).replaceChildren(...shown);
  const more = rows.length - shownRows;
  setText('import-more', more > 0 ? `and ${formatCount(more)} more` : '');
  setText('import-submit', `Import ${countOf(rows.length, 'row')}`);
  byId('import-submit', HTMLButtonElement).focus();
}

/** JSON can have anything in place of a text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
}
