import type { SingleBar } from 'cli-progress';
import type { PlantStoreError } from '../../client/client.ts';
import { summaryOf, type ImportOutcome } from '../../client/import.ts';
import type { ImportFile } from '../../client/import-file.ts';
import { io, print, printError } from '../output.ts';
import { createBar } from '../progress.ts';
import { printable, printableJson } from '../terminal.ts';

const waitingMessageMs = 5_000;

/**
 * Shows the outcomes of an import: refusals on standard error, a summary on standard output, and a progress bar on a
 * terminal. As JSON, standard output has a line for each row instead.
 */
export class Report {
  readonly #counts = { added: 0, 'already added': 0, refused: 0 };
  readonly #json: boolean;
  readonly #format: ImportFile['format'];
  readonly #bar: SingleBar;
  #waitingShownMs = -Infinity;

  constructor(rows: number, format: ImportFile['format'], json: boolean) {
    this.#format = format;
    this.#json = json;
    this.#bar = createBar('Importing', 'rows');
    this.#bar.start(rows, 0);
  }

  get refused(): number {
    return this.#counts.refused;
  }

  add(outcome: ImportOutcome): void {
    const { row, line, status, reason } = outcome;
    this.#counts[status]++;
    this.#bar.increment();
    if (this.#json) print(printableJson(outcome));
    else if (status === 'refused') {
      this.#print(`${this.#format === 'json' ? `row ${row}, ` : ''}line ${line}: ${reason}`);
    }
  }

  waiting({ detail }: PlantStoreError): void {
    const nowMs = performance.now();
    if (nowMs - this.#waitingShownMs < waitingMessageMs) return;
    this.#waitingShownMs = nowMs;
    this.#print(`Waiting for the service: ${detail}`);
  }

  /** Prints the summary. */
  end(): void {
    this.#bar.stop();
    const summary = summaryOf(this.#counts);
    if (this.#json) printError(summary);
    else print(summary);
  }

  /** Prints a line above the bar. */
  #print(message: string): void {
    if (io.stderr.isTTY) io.stderr.write('\r\x1b[K');
    printError(printable(message));
  }
}
