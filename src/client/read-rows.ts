/**
 * Reads the rows of a CSV or JSON file: the plants to import.
 */
import { readCsv, separatorOf, type CsvRecord } from './csv.ts';
import { isFilled, type ImportRow } from './read-table.ts';
import { textFields, type NewPlant } from './types.ts';

/** What is in a file: the records of a table, or rows that name their fields. */
export type ImportFile = { encoding: string } & (
  { records: readonly CsvRecord[] } | { rows: readonly ImportRow[] }
);

/** The whole file cannot be imported. The message describes why, and how to fix it. */
export class InvalidFile extends Error {
  override readonly name = 'InvalidFile';
}

/** Reads a file of either format. Throws InvalidFile. */
export function readFile(bytes: Uint8Array<ArrayBuffer>): ImportFile {
  const { text, encoding } = decodeText(bytes);
  if (text.trim() === '') throw new InvalidFile('The file is empty.');
  if (/^\s*\[/.test(text)) return { encoding, rows: readArray(text) };
  if (/^\s*\{/.test(text)) return { encoding, rows: readLines(text) };
  const records = [...readCsv(text, separatorOf(text))].filter(isFilled);
  if (records.every((record) => 'fault' in record)) {
    throw new InvalidFile(`No line of the file can be read. ${records[0]?.fault ?? ''}`);
  }
  return { encoding, records };
}

/** Files of spreadsheets begin with these bytes: of xlsx and ods, and of xls. */
const workbook = /^(?:80,75,3,4|208,207,17,224)/;

/** Excel in many countries saves CSV in Windows-1252, and "Unicode text" in UTF-16 with a byte order mark. */
function decodeText(bytes: Uint8Array<ArrayBuffer>): { text: string; encoding: string } {
  if (workbook.test(bytes.subarray(0, 4).join())) {
    throw new InvalidFile(
      'This is a workbook of Excel or another spreadsheet. Open it there, and save it as "CSV UTF-8": File > Save as. Then import that file.',
    );
  }
  const mark = `${bytes[0]},${bytes[1]}`;
  const utf16 = { '255,254': 'utf-16le', '254,255': 'utf-16be' }[mark];
  const read = (label: string, fatal: boolean, ignoreBOM = false) =>
    new TextDecoder(label, { fatal, ignoreBOM }).decode(bytes);
  try {
    const text = read(utf16 ?? 'utf-8', true);
    if (!text.includes('\0')) return { text, encoding: utf16 === undefined ? 'UTF-8' : 'UTF-16' };
  } catch {
    if (utf16 === undefined && !bytes.includes(0)) {
      const damaged = read('utf-8', false, true);
      if (/[^\0-\x7f\ufffd]/.test(damaged)) {
        const line = damaged.slice(0, damaged.indexOf('\ufffd')).split(/\r\n|\r|\n/).length;
        throw new InvalidFile(
          `The file is UTF-8, but line ${line} has a damaged character, or the file is cut there. Correct it, or save the file as "CSV UTF-8" again.`,
        );
      }
      // Windows-1252 has a character for each byte.
      return { text: read('windows-1252', false), encoding: 'Windows-1252' };
    }
  }
  throw new InvalidFile('The file is not text. Import a CSV or JSON file.');
}

function readArray(text: string): ImportRow[] {
  try {
    return parseArray(text);
  } catch (error) {
    if (error instanceof InvalidFile) throw error;
    const { message } = error as Error; // the functions of JSON throw nothing else
    throw new InvalidFile(`The file cannot be read as JSON: ${message}.`, { cause: error });
  }
}

/** An object on each line. */
function readLines(text: string): ImportRow[] {
  return text.split(/\r\n|\r|\n/).flatMap((content, at) => {
    const line = at + 1;
    try {
      return parseArray(`[${content}]`).map((row) => ({ ...row, line }));
    } catch {
      const fault = 'The line is not valid JSON, or has a field twice.';
      return [{ line, fault, content: { name: content } }];
    }
  });
}

/** Throws an Error if the text is not JSON, or an object has a field twice. */
function parseArray(text: string): ImportRow[] {
  const values: readonly unknown[] = JSON.parse(text);
  // JSON.parse keeps only the last of two members with one name.
  if (membersIn(text) !== membersIn(JSON.stringify(values))) {
    throw new InvalidFile(
      'An object has the same field twice. To see which, save the file with one object per line.',
    );
  }
  return values.map(rowOf);
}

function membersIn(json: string): number {
  return json.replaceAll(/"[^"\\]*(?:\\.[^"\\]*)*"/g, '').split(':').length;
}

/** Keeps every field of the object, because the service checks them. */
function rowOf(value: unknown): ImportRow {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const fault = `A row must be a JSON object with the fields ${textFields.join(', ')} and id.`;
    return { fault, content: { name: JSON.stringify(value) } };
  }
  return { plant: value as NewPlant }; // the service checks it
}
