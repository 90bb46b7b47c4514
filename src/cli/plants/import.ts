import { resolve } from 'node:path';
import { PlantStore, type PlantStoreError, type PlantStoreOptions } from '../../client/client.ts';
import {
  memoryJournal,
  type ImportJournal,
  type JournalEntry,
} from '../../client/import-journal.ts';
import { maxTimeoutMs } from '../../client/options.ts';
import { decodeText, InvalidFile, readRows, type ImportRow } from '../../client/read-rows.ts';
import { importPlants } from '../../client/send-rows.ts';
import { Refusal, UsageError } from '../../refusal.ts';
import { Journal } from '../../sqlite/import-journal.ts';
import { failWith, printError, readInput } from '../output.ts';
import { onSignal } from '../signals.ts';
import { printable } from '../terminal.ts';
import { createReport } from './report.ts';
import { withStore, type StoreOptions } from './store.ts';

interface ImportOptions extends StoreOptions {
  concurrency: number;
  journal?: string | undefined;
}

/** Exit status: 1 if a row was refused, 130 if a signal stopped the import. */
export async function importFile(file: string, options: ImportOptions): Promise<void> {
  if (file === '-' && options.token === '-') {
    throw new UsageError(
      'Standard input cannot be both the token and the file. Use --token @FILE.',
    );
  }
  const rows = await readPlants(file);
  await withStore(options, async (store, clientOptions) => {
    const { user, store: name } = await store.token();
    using journal = openJournal(file, options, `user ${user} in store ${name} at ${options.url}`);
    await run(clientOptions, rows, journal, options);
  });
}

/** Rejects with a Refusal if the file cannot be imported. */
async function readPlants(file: string): Promise<ImportRow[]> {
  const bytes = new Uint8Array(await readInput('plants', file));
  try {
    return readRows(decodeText(bytes));
  } catch (error) {
    if (!(error instanceof InvalidFile)) throw error;
    throw new Refusal(printable(`${file}: ${error.message}`), { cause: error });
  }
}

function openJournal(file: string, { journal }: ImportOptions, owner: string) {
  // Standard input has no name, so its journal has none either.
  if (journal === undefined && file === '-') return { ...memoryJournal(), [Symbol.dispose]() {} };
  return new Journal(resolve(journal ?? `${file}.import-journal`), owner, isEntry);
}

function isEntry(value: unknown): value is JournalEntry {
  const { id, added, after } = Object(value);
  if (id === undefined) return Number.isSafeInteger(after);
  return Number.isSafeInteger(id) && typeof added === 'boolean';
}

async function run(
  clientOptions: PlantStoreOptions,
  rows: readonly ImportRow[],
  journal: ImportJournal,
  { concurrency, json }: ImportOptions,
): Promise<void> {
  const stop = new AbortController();
  using _ = onSignal(() => stop.abort());
  const report = createReport(rows.length, json === true);
  try {
    const { signal } = stop;
    const beforeRetry = (problem: PlantStoreError) => report.waitAfter(problem, signal);
    const store = new PlantStore({ ...clientOptions, timeoutMs: maxTimeoutMs, beforeRetry });
    const outcomes = importPlants({ store, rows, journal, concurrency, signal });
    for await (const outcome of outcomes) report.add(outcome);
    report.end();
    if (report.counts.refused > 0) failWith(1);
  } catch (error) {
    report.end();
    const advice =
      journal instanceof Journal
        ? 'Run the same command again to continue.'
        : 'It cannot continue without --journal: the same command would add rows a second time.';
    printError(`The import is not complete. ${advice}`);
    if (error !== stop.signal.reason) throw error;
    failWith(130);
  }
}
