import type { PlantStoreError } from '../../client/client.ts';
import { summaryOf, type ImportOutcome } from '../../client/import.ts';
import type { ImportFile } from '../../client/import-file.ts';
import { io, print, printError } from '../output.ts';
import { createBar } from '../progress.ts';
import { printable, printableJson } from '../terminal.ts';

/**
 * Shows the outcomes of an import: refusals on standard error, a summary on standard output, and a progress bar on a
 * terminal. As JSON, standard output has a line for each row instead.
 */
export function createReport(rows: number, format: ImportFile['format'], json: boolean) {
  const counts = { added: 0, 'already added': 0, refused: 0 };
  const bar = createBar('Importing', 'rows');
  bar.start(rows, 0);
  let waitingFor: PlantStoreError['kind'] | undefined;

  return {
    counts,

    add(outcome: ImportOutcome): void {
      const { row, line, status, reason } = outcome;
      counts[status]++;
      bar.increment();
      if (json) print(printableJson(outcome));
      else if (status === 'refused') {
        printAboveBar(`${format === 'json' ? `row ${row}, ` : ''}line ${line}: ${reason}`);
      }
    },

    /** Shows a problem once, however often and for how many rows the import waits. */
    onWait: ({ kind, detail }: PlantStoreError): void => {
      if (kind === waitingFor) return;
      waitingFor = kind;
      printAboveBar(`Waiting for the service: ${detail}`);
    },

    end(): void {
      bar.stop();
      const summary = summaryOf(counts);
      if (json) printError(summary);
      else print(summary);
    },
  };
}

function printAboveBar(message: string): void {
  if (io.stderr.isTTY) io.stderr.write('\r\x1b[K');
  printError(printable(message));
}
