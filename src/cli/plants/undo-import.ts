/**
 * What imports of a file have done, and what of that was undone: a record in a file beside it, with a line for each
 * change. `plants import --undo` reads it. Lines are only added, so that nothing is lost when a command is killed.
 */
import { randomUUID } from 'node:crypto';
import { appendFileSync, closeSync, constants, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { PlantStore, type PlantStoreOptions } from '../../client/client.ts';
import { printable } from '../../client/printable.ts';
import { undoImport, type Done } from '../../client/send-rows.ts';
import { Refusal } from '../../refusal.ts';
import { systemCode, systemReason } from '../../shared/system-errors.ts';
import { refuseUnreadable } from '../errors.ts';
import { failWith, print, printError } from '../output.ts';

/** Plants that are undone at the same time. */
const concurrency = 32;

/** One run of the command. A file can be imported several times, and each run is undone by itself. */
export interface Run {
  id: string;
  /** The user, the store and the service, because plants of others can have the same ids. */
  by: string;
}

/** A line of the record. With `undone`, it is about the lines of the same run and plant. */
interface Line extends Done {
  run: Run;
  id: number;
  undone?: boolean;
}

const recordOf = (file: string) => `${file}.undo`;

async function importerOf(store: PlantStore, url: string | URL): Promise<string> {
  const { user, store: name } = await store.token();
  return `user ${user} of store ${name} at ${new URL(url).href}`;
}

/**
 * Begins a run. With the keys of the rows that an undo took back: with other keys, the service adds these rows again. And
 * with the plants of the other rows, by key: the service does not know their keys for longer than a day. Undefined, with a
 * message, if the record of the file cannot be read.
 */
export async function beginRun(file: string, store: PlantStore, url: string | URL) {
  const run: Run = { id: randomUUID(), by: await importerOf(store, url) };
  try {
    const lines = await readRecord(file, '');
    const deleted = new Set(lines.filter(({ undone }) => undone).map(plantOf));
    const undone = new Set<unknown>();
    const added = new Map<unknown, number>();
    for (const line of lines.filter(({ run: { by } }) => by === run.by)) {
      if (deleted.has(plantOf(line))) undone.add(line.key);
      else if (line.before === undefined) added.set(line.key, line.id);
    }
    return { run, undone, added };
  } catch (error) {
    warn(error);
    return undefined;
  }
}

/** Adds to the record at once, because an import can be killed. Returns false, with a message, if it cannot. */
export function record(file: string, run: Run, { id, key, etag, before }: Done): boolean {
  if (etag === undefined) return false; // the token cannot read plants
  try {
    append(file, { run, id, key, etag, before });
    return true;
  } catch (error) {
    warn(error);
    return false;
  }
}

function warn(error: unknown): void {
  if (!(error instanceof Refusal)) throw error;
  printError(`The import cannot be undone. ${error.message}`);
}

/** Undoes the last run that imported a file, and was not undone before. */
export async function undoLastImport(options: PlantStoreOptions, file: string): Promise<void> {
  const lines = await readRecord(file);
  const settled = new Set(lines.filter(({ undone }) => undone !== undefined).map(plantOf));
  const open = lines.filter((line) => !settled.has(plantOf(line)));
  const run = open.at(-1)?.run;
  if (run === undefined) {
    throw new Refusal(printable(`${recordOf(file)} has no import that can be undone.`));
  }
  const store = new PlantStore(options);
  if (run.by !== (await importerOf(store, options.url))) {
    const message = `The last import of ${file} was by ${run.by}. To undo it, use a token of that user, and that address.`;
    throw new Refusal(printable(message));
  }
  append(file); // before anything is undone, because the record may be read-only
  const ofRun = open.filter((line) => line.run.id === run.id);
  let [undone, kept] = [0, 0];
  for await (const { id, isUndone } of undoImport(store, ofRun, concurrency)) {
    append(file, { run, id, undone: isUndone });
    if (isUndone) undone++;
    else kept++;
  }
  print(`Plants whose import was undone: ${undone}.`);
  if (open.length > ofRun.length) {
    printError('The file was imported before too. To undo that, run the same command again.');
  }
  if (kept === 0) return;
  printError(`Plants that stay as they are, because they were changed since then: ${kept}.`);
  failWith(1);
}

/** Identifies a plant of a run. */
function plantOf({ run, id }: Line): string {
  return `${run.id} ${id}`;
}

/** A line break comes first too, because the line before can be incomplete. Throws a Refusal if it cannot be written. */
function append(file: string, ...lines: readonly (Partial<Line> | Done)[]): void {
  const { O_WRONLY, O_APPEND, O_CREAT, O_NOFOLLOW } = constants;
  try {
    const descriptor = openSync(recordOf(file), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW);
    try {
      for (const line of lines) appendFileSync(descriptor, `\n${JSON.stringify(line)}\n`);
    } finally {
      closeSync(descriptor);
    }
  } catch (cause) {
    const isLink = systemCode(cause) === 'ELOOP';
    const reason = isLink
      ? 'it is a symbolic link'
      : systemReason(cause, 'the folder does not exist');
    if (reason === undefined) throw cause;
    throw new Refusal(printable(`Cannot write ${recordOf(file)}: ${reason}.`), { cause });
  }
}

/** Throws a Refusal if a line is not one of a record. `missing` is the text of a record that is not there. */
async function readRecord(file: string, missing?: string): Promise<Line[]> {
  const text = await readFile(recordOf(file), 'utf8').catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT' && missing !== undefined) return missing;
    return refuseUnreadable(recordOf(file))(error);
  });
  const texts = text.split('\n');
  return texts.flatMap((each, at) => {
    if (each === '') return [];
    const line = lineIn(each);
    if (line !== undefined) return [line];
    if (at === texts.length - 1) return []; // the command was killed while it wrote the line
    const message = `Line ${at + 1} of ${recordOf(file)} is damaged. Remove that line, or the file: what they list can then not be undone.`;
    throw new Refusal(printable(message));
  });
}

function lineIn(text: string): Line | undefined {
  try {
    const line: Line = JSON.parse(text);
    const { run, id, etag } = line;
    const isValid =
      typeof run.id === 'string' &&
      typeof run.by === 'string' &&
      Number.isSafeInteger(id) &&
      /^"[!#-~]+"$/.test(etag ?? '"-"');
    return isValid ? line : undefined;
  } catch {
    return undefined;
  }
}
