/**
 * The file of an import, what the store has of it already, and the file with its refused rows.
 */
import type { Plant, PlantStore } from '../../client/client.ts';
import { byteOrderMark, writeCsv } from '../../client/csv.ts';
import { isUpdated } from '../../client/lost-response.ts';
import { InvalidFile, readFile, type ImportFile as Content } from '../../client/read-rows.ts';
import {
  importedFields,
  rowsOf,
  tableOf,
  type ImportRow,
  type Table,
} from '../../client/read-table.ts';
import { placeOf, textOf, type ImportOutcome } from '../../client/send-rows.ts';
import { textFields } from '../../client/types.ts';
import { newKey } from '../shared/form.ts';

export interface ImportFile {
  name: string;
  encoding: string;
  /** Undefined for JSON, which names the fields. */
  table?: Table | undefined;
  rows: readonly ImportRow[];
  /** Identifies the import, so that it can continue after it was stopped. */
  key: string;
}

/** Rejects with InvalidFile. */
export async function openFile([file, ...others]: readonly File[]): Promise<ImportFile> {
  if (file === undefined || others.length > 0) {
    throw new InvalidFile('Import one file at a time.');
  }
  const bytes = await file.arrayBuffer().catch((cause: unknown) => {
    const message = 'The browser cannot read this file. Choose a CSV or JSON file, not a folder.';
    throw new InvalidFile(message, { cause });
  });
  const key = newKey();
  const content: Content = readFile(new Uint8Array(bytes));
  const { name } = file;
  if ('rows' in content) return { ...content, name, key };
  const table = tableOf(content.records);
  return { name, encoding: content.encoding, table, rows: rowsOf(table), key };
}

/** The plants of a larger store are not compared: each 1,000 are a request. */
const maxCompared = 20_000;

type Known = readonly Pick<Plant, 'id' | 'name' | 'tag'>[];

/** The plants that the user can see, or undefined if there are too many. */
export async function readKnown(store: PlantStore): Promise<Known | undefined> {
  const known = await store.listUpTo(maxCompared + 1, { fields: ['id', ...textFields] });
  return known.length > maxCompared ? undefined : known;
}

/**
 * How many rows change a plant, are like their plant, add one, and of these have the texts of one that is there. Also the
 * names that change.
 */
export function compare(rows: readonly ImportRow[], known: Known) {
  const counts = { updated: 0, unchanged: 0, added: 0, again: 0 };
  const renamed: { from: string; to: unknown }[] = [];
  const byId = new Map(known.map((plant) => [plant.id, plant]));
  const textsIn = (plant: object & { name?: unknown; tag?: unknown }) =>
    JSON.stringify(textFields.map((field) => plant[field] ?? ''));
  const texts = new Set(known.map(textsIn));
  for (const row of rows) {
    if ('fault' in row) continue;
    const { id, ...patch } = row.plant;
    const current = id === undefined ? undefined : byId.get(id);
    if (current) counts[isUpdated(current, patch) ? 'unchanged' : 'updated']++;
    else counts.added++;
    if (current === undefined && texts.has(textsIn(patch))) counts.again++;
    const isRenamed = current && !isUpdated(current, { name: patch.name });
    if (isRenamed) renamed.push({ from: current.name, to: patch.name });
  }
  return { ...counts, renamed };
}

/** The refused rows as CSV, with their reasons. */
export function refusedRows({ rows }: ImportFile, refusals: readonly ImportOutcome[]): Blob {
  const records = refusals.map(({ row, line, reason = '' }) => {
    const source = rows[row - 1];
    const content: Record<string, unknown> =
      source === undefined ? {} : { ...('fault' in source ? source.content : source.plant) };
    const cells = importedFields.map((field) => textOf(content[field]));
    return writeCsv([...cells, line ?? placeOf({ row }), reason]);
  });
  const header = writeCsv([...importedFields, 'line', 'reason']);
  return new Blob([byteOrderMark, header, ...records], { type: 'text/csv' });
}
