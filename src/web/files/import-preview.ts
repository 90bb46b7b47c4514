/**
 * What the page will import: a file, and its first rows.
 */
import { placeOf } from '../../client/send-rows.ts';
import {
  decodeText,
  importedFields,
  InvalidFile,
  readRows,
  type ImportRow,
} from '../../client/read-rows.ts';
import { byId, element, sentence, setText } from '../shared/dom.ts';
import { countOf, formatCount } from '../shared/format.ts';

const shownRows = 5;

/** What is imported. */
export interface ImportSource {
  name: string;
  text: string;
  rows: readonly ImportRow[];
  /** Identifies the import, so that it can continue after it was stopped. */
  key: string;
}

/** Rejects with InvalidFile. */
export async function sourceOf([file, ...others]: readonly File[]): Promise<ImportSource> {
  if (file === undefined || others.length > 0) {
    throw new InvalidFile('Import one file at a time.');
  }
  const { name } = file;
  const text = decodeText(new Uint8Array(await file.arrayBuffer().catch(refuseUnreadable)));
  const key = crypto.getRandomValues(new Uint32Array(4)).join('-'); // randomUUID() needs HTTPS
  return { name, text, rows: readRows(text), key };
}

function refuseUnreadable(cause: unknown): never {
  const message = 'The browser cannot read this file. Choose a CSV or JSON file, not a folder.';
  throw new InvalidFile(message, { cause });
}

export function showPreview({ name, rows }: ImportSource): void {
  setText('import-source', sentence`${name}: ${countOf(rows.length, 'row')}`);
  const cellsOf = (row: ImportRow) =>
    'fault' in row
      ? [element('td', { colSpan: importedFields.length, className: 'fault' }, row.fault)]
      : importedFields.map((field) => element('td', {}, textOf(row.plant[field])));
  const shown = rows.slice(0, shownRows).map((row, at) => {
    const place = placeOf({ row: at + 1, line: row.line });
    return element('tr', {}, element('td', {}, place), ...cellsOf(row));
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
