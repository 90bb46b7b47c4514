import { hash, randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import type { Command } from '@commander-js/extra-typings';
import { pauseMs } from '../../client/call.ts';
import {
  PlantStore,
  type NewPlant,
  type PlantStoreError,
  type PlantStoreOptions,
} from '../../client/client.ts';
import { maxTimeoutMs } from '../../client/options.ts';
import { printable } from '../../client/printable.ts';
import { InvalidFile, readFile, type ImportFile } from '../../client/read-rows.ts';
import {
  columnLabels,
  importedFields,
  omissionsOf,
  rowsOf,
  tableOf,
  type ImportRow,
} from '../../client/read-table.ts';
import {
  contentOf,
  importPlants,
  noCounts,
  placeOf,
  summaryOf,
  type ImportOutcome,
} from '../../client/send-rows.ts';
import { pause } from '../../client/waiting.ts';
import { textsOf } from '../../plants/fields.ts';
import { Refusal, UsageError } from '../../refusal.ts';
import { integer } from '../options.ts';
import { failWith, io, print, printError, readInput, takesEscapes } from '../output.ts';
import { createBar } from '../progress.ts';
import { onSignal } from '../signals.ts';
import { printableJson } from '../terminal.ts';
import { serviceCommand, withService } from '../service.ts';
import { beginRun, record, undoLastImport } from './undo-import.ts';

/** How many rows that were already added are listed. */
const maxListed = 20;

/** How long an import waits for an outcome while the service is not available. */
const maxOutageMs = 10 * 60_000;

export function addImportCommand(plants: Command): void {
  importCommand(plants).action(importFile);
}

function importCommand(plants: Command) {
  return serviceCommand(plants, 'import', [
    'plant-store plants import plants.csv',
    'plant-store plants import bestand.csv --name-column Bezeichnung --tag-column Gruppe',
    'plant-store plants list --csv > plants.csv && plant-store plants import plants.csv --update',
    'curl -s https://plants.example/list.csv | plant-store plants import - --key list',
  ])
    .description(
      'add the plants of a CSV or JSON file; to continue after an interruption, run it again',
    )
    .argument('<file>', 'path of the file; - reads standard input')
    .option('--concurrency <number>', 'number of requests in flight', integer(1, 1_000), 32)
    .option(
      '--key <text>',
      'identifies this import: with the same key, a row is not added again; by default the content of the file, and a random text for a pipe',
    )
    .option(
      '--name-column <column>',
      'heading of the column with the names; a letter, as in a spreadsheet, if the file has no headings',
      'name',
    )
    .option('--tag-column <column>', 'the same for the tags', 'tag')
    .option('--id-column <column>', 'the same for the ids', 'id')
    .option('--update', 'change plants that have the id of a row, instead of refusing the row')
    .option('--undo', 'undo the last import of this file: delete and change back what it did');
}

type ImportOptions = ReturnType<ReturnType<typeof importCommand>['opts']>;

/** Exit status: 1 if a row was refused, 130 if a signal stopped the import. */
async function importFile(file: string, options: ImportOptions): Promise<void> {
  if (file === '-' && options.token === '-') {
    throw new UsageError(
      'Standard input cannot be both the token and the file. Use --token @FILE.',
    );
  }
  if (options.undo) {
    if (file === '-') {
      throw new UsageError(
        'An import of standard input cannot be undone. Use the file with --undo that was imported.',
      );
    }
    return withService(options, (clientOptions) => undoLastImport(clientOptions, file));
  }
  const source = await readSource(file, options);
  await withService(options, (clientOptions) => run(clientOptions, source, options));
}

interface Source {
  file: string;
  rows: readonly ImportRow[];
  /** The key of the import, unless the user chooses another. */
  key: string;
  /** Whether the same command has the same key. */
  isRepeatable: boolean;
}

/** Rejects with a Refusal if the file cannot be imported. */
async function readSource(file: string, options: ImportOptions): Promise<Source> {
  const bytes = new Uint8Array(await readInput('plants', file));
  // A pipe has the same path for every delivery.
  const isRepeatable = file !== '-' && (await stat(file)).isFile();
  const key = isRepeatable ? hash('sha256', bytes).slice(0, 32) : randomUUID();
  try {
    return { file, rows: rowsIn(readFile(bytes), options), key, isRepeatable };
  } catch (error) {
    if (!(error instanceof InvalidFile)) throw error;
    throw new Refusal(printable(`${file}: ${error.message}`), { cause: error });
  }
}

/** The rows of a file. Prints how it was read, and throws InvalidFile if the user has to choose its columns. */
function rowsIn(
  file: ImportFile,
  { nameColumn, tagColumn, idColumn }: ImportOptions,
): readonly ImportRow[] {
  if (file.encoding !== 'UTF-8') printError(`Read as ${file.encoding}.`);
  if ('rows' in file) return file.rows;
  const words = { name: nameColumn, tag: tagColumn, id: idColumn };
  const table = tableOf(file.records, words);
  const labels = columnLabels(table);
  const list = `The columns are ${labels.join(', ')}.`;
  const ofLetter = (letter: string) =>
    labels.findIndex((label) => label.split(':')[0] === letter.toUpperCase());
  if (table.columns.name === undefined) {
    if (ofLetter(nameColumn) === -1) {
      throw new InvalidFile(
        `No column has the heading "${nameColumn}", or several have. ${list} Choose the one with the names with --name-column: its heading, or its letter if no line has headings.`,
      );
    }
    printError('No line has headings, so the first line is a plant too.');
    table.header = undefined;
    table.columns = {};
  }
  for (const field of importedFields) {
    if (table.columns[field] !== undefined || words[field] === field) continue;
    const at = ofLetter(words[field]);
    if (at === -1) throw new InvalidFile(`There is no column "${words[field]}". ${list}`);
    table.columns[field] = at;
  }
  for (const omission of omissionsOf(table)) printError(printable(omission));
  return rowsOf(table);
}

async function run(
  clientOptions: PlantStoreOptions,
  source: Source,
  { key, concurrency, json, ...options }: ImportOptions,
): Promise<void> {
  const { rows, file } = source;
  const update = options.update === true;
  const importKey = key ?? source.key;
  const withKey = key === undefined ? `with --key ${source.key}` : 'again';
  const stop = new AbortController();
  using _ = onSignal(() => stop.abort());
  const report = createReport(rows, json === true);
  let recorded: Awaited<ReturnType<typeof beginRun>>;
  let isIdTaken = false;
  try {
    const { signal } = stop;
    const beforeRetry = (problem: PlantStoreError) => report.waitAfter(problem, signal);
    const store = new PlantStore({ ...clientOptions, timeoutMs: maxTimeoutMs, beforeRetry });
    if (source.isRepeatable) recorded = await beginRun(file, store, clientOptions.url);
    const keyOf = keysOf(importKey, recorded?.undone);
    const added = recorded?.added;
    const outcomes = importPlants({ store, rows, keyOf, added, update, concurrency, signal });
    for await (const outcome of outcomes) {
      report.add(outcome);
      isIdTaken ||= outcome.kind === 'id-taken';
      const isDone = outcome.status === 'added' || outcome.status === 'updated';
      if (isDone && recorded && !record(file, recorded.run, outcome)) recorded = undefined;
    }
    report.end();
    if (recorded && report.counts.added + report.counts.updated > 0) {
      printError('To undo this import, run the same command with --undo.');
    }
    if (report.counts.refused === 0) return;
    if (isIdTaken && !update)
      printError('To change plants that have the id of a row, add --update.');
    printError(`After you fix the file, run the same command ${withKey} to add only what is new.`);
    failWith(1);
  } catch (error) {
    report.end();
    const how = source.isRepeatable ? 'again' : withKey;
    printError(`The import is not complete. Run the same command ${how} to continue.`);
    if (error !== stop.signal.reason) throw error;
    failWith(130);
  }
}

/**
 * Returns a function that makes the keys of rows, in their order. A key consists of the row's content and the number of
 * equal rows before it, so it stays the same when other rows are corrected or moved. A row that was undone gets a new
 * key, because the service would not add it again.
 */
function keysOf(importKey: string, undone?: ReadonlySet<unknown>): (plant: NewPlant) => string {
  const counts = new Map<string, number>();
  return (plant) => {
    const content = JSON.stringify({ ...textsOf(plant), ...plant });
    const count = counts.get(content) ?? 0;
    counts.set(content, count + 1);
    let key = hash('sha256', JSON.stringify([importKey, content, count]), 'base64url');
    while (undone?.has(key)) key = hash('sha256', key, 'base64url');
    return key;
  };
}

/**
 * Shows the outcomes of an import: what was not added on standard error, a summary on standard output, and a progress
 * bar on a terminal. As JSON, standard output has a line for each row instead.
 */
function createReport(rows: readonly ImportRow[], json: boolean) {
  const counts = { ...noCounts };
  const refusals: ImportOutcome[] = [];
  const bar = createBar('Importing', 'rows');
  bar.start(rows.length, 0);
  let lastOutcomeMs = performance.now();
  let isWaiting = false;

  return {
    counts,

    add(outcome: ImportOutcome): void {
      const { row, line, status, id, reason } = outcome;
      lastOutcomeMs = performance.now();
      isWaiting = false;
      counts[status]++;
      bar.increment();
      if (json) print(printableJson({ row, line, status, id, reason }));
      else if (status === 'refused') refusals.push(outcome);
      else if (status === 'already added' && counts[status] <= maxListed)
        printAboveBar(`${placeOf(outcome)}: already added as plant ${id}`);
    },

    /** Waits before a call is repeated, and reports that once. Throws the problem if it lasts too long. */
    async waitAfter(problem: PlantStoreError, signal: AbortSignal): Promise<void> {
      const waitMs = pauseMs(problem, 1);
      if (performance.now() + waitMs > lastOutcomeMs + maxOutageMs) throw problem;
      if (!isWaiting) printAboveBar(`Waiting for the service: ${problem.detail}`);
      isWaiting = true;
      await pause(waitMs, signal);
    },

    end(): void {
      bar.stop();
      if (refusals.length > 0) printError('Refused rows:');
      for (const refusal of refusals.toSorted((one, other) => one.row - other.row)) {
        const content = contentOf(rows[refusal.row - 1]);
        printError(printable(`  ${placeOf(refusal)}: ${content}`));
        printError(printable(`    ${refusal.reason}`));
      }
      const before = counts['already added'];
      if (before > 0 && !json) {
        const more = before > maxListed ? `${before - maxListed} more: --json lists all. ` : '';
        printError(`${more}To add rows again that were already added, choose another --key.`);
      }
      const summary = summaryOf(counts);
      if (json) printError(summary);
      else print(summary);
    },
  };
}

function printAboveBar(message: string): void {
  if (takesEscapes()) io.stderr.write('\r\x1b[K');
  printError(printable(message));
}
