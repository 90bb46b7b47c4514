/**
 * What an import has done, in a file beside the one that was imported: `plants import --undo` reads it.
 */
import { appendFileSync } from 'node:fs';
import { readFile, unlink } from 'node:fs/promises';
import { PlantStore, type PlantStoreOptions } from '../../client/client.ts';
import { printable } from '../../client/printable.ts';
import { undoImport, type Done } from '../../client/send-rows.ts';
import { systemReason } from '../../shared/system-errors.ts';
import { refuseUnreadable } from '../errors.ts';
import { failWith, print, printError } from '../output.ts';

/** Plants that are undone at the same time. */
const concurrency = 32;

const recordOf = (file: string) => `${file}.undo`;

/** Adds to the record at once, because an import can be killed. Returns false, with a message, if it cannot. */
export function record(file: string, key: string, { id, plant, before }: Done): boolean {
  try {
    appendFileSync(recordOf(file), `${JSON.stringify({ key, id, plant, before })}\n`);
    return true;
  } catch (error) {
    const reason = systemReason(error, 'the folder does not exist');
    if (reason === undefined) throw error;
    printError(
      printable(`The import cannot be undone. Cannot write ${recordOf(file)}: ${reason}.`),
    );
    return false;
  }
}

/** Undoes the last import of a file. */
export async function undoLastImport(options: PlantStoreOptions, file: string): Promise<void> {
  const text = await readFile(recordOf(file), 'utf8').catch(refuseUnreadable(recordOf(file)));
  const lines = text.trimEnd().split('\n');
  const all = lines.map((line): Done & { key: string } => JSON.parse(line));
  const last = all.filter(({ key }) => key === all.at(-1)?.key);
  const store = new PlantStore(options);
  const outcomes = await Array.fromAsync(undoImport(store, last, concurrency));
  await unlink(recordOf(file));
  const kept = outcomes.filter((isUndone) => !isUndone).length;
  print(`Plants whose import was undone: ${last.length - kept}.`);
  if (kept === 0) return;
  printError(`Plants that stay as they are, because they were changed since then: ${kept}.`);
  failWith(1);
}
