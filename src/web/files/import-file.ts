/**
 * The file of an import, and the one with its refused rows.
 */
import { writeCsv } from '../../client/csv.ts';
import type { ImportOutcome } from '../../client/send-rows.ts';
import {
  decodeText,
  importedFields,
  InvalidFile,
  readRows,
  type ImportRow,
} from '../../client/read-rows.ts';

export interface ImportFile {
  name: string;
  text: string;
  rows: readonly ImportRow[];
  /** Identifies the import, so that it can continue after it was stopped. */
  key: string;
}

/** Rejects with InvalidFile. */
export async function readFile([file, ...others]: readonly File[]): Promise<ImportFile> {
  if (file === undefined || others.length > 0) {
    throw new InvalidFile('Import one file at a time.');
  }
  const bytes = await file.arrayBuffer().catch((cause: unknown) => {
    const message = 'The browser cannot read this file. Choose a CSV or JSON file, not a folder.';
    throw new InvalidFile(message, { cause });
  });
  const text = decodeText(new Uint8Array(bytes));
  const key = crypto.getRandomValues(new Uint32Array(4)).join('-'); // randomUUID() needs HTTPS
  return { name: file.name, text, rows: readRows(text), key };
}

/** The refused rows as CSV, with their reasons. */
export function refusedRows({ text, rows }: ImportFile, refusals: readonly ImportOutcome[]): Blob {
  const lines = text.split(/\r\n|\r|\n/);
  const records = refusals.map(({ row, line, reason = '' }) => {
    const source = rows[row - 1];
    const plant: Record<string, unknown> =
      source && 'plant' in source
        ? { ...source.plant }
        : { name: source?.text ?? lines[(line ?? 0) - 1] };
    const cells = importedFields.map((field) => textOf(plant[field]));
    return writeCsv([...cells, line ?? `row ${row}`, reason]);
  });
  const header = writeCsv([...importedFields, 'line', 'reason']);
  return new Blob([header, ...records], { type: 'text/csv' });
}

/** JSON can have anything in place of a text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
}
