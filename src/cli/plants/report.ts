import type { PlantStoreError } from '../../client/client.ts';
import { placeOf, summaryOf, type ImportOutcome } from '../../client/send-rows.ts';
import { printable } from '../../client/printable.ts';
import { pauseMs } from '../../client/retry-rules.ts';
import { pause } from '../../client/waiting.ts';
import { io, print, printError, takesEscapes } from '../output.ts';
import { createBar } from '../progress.ts';
import { printableJson } from '../terminal.ts';

/** How many rows that were already added are listed. */
const maxListed = 20;

/** How long an import waits for an outcome while the service is not available. */
const maxOutageMs = 10 * 60_000;

/**
 * Shows the outcomes of an import: what was not added on standard error, a summary on standard output, and a progress
 * bar on a terminal. As JSON, standard output has a line for each row instead.
 */
export function createReport(rows: number, json: boolean) {
  const counts = { added: 0, 'already added': 0, refused: 0 };
  const bar = createBar('Importing', 'rows');
  bar.start(rows, 0);
  let lastOutcomeMs = performance.now();
  let isWaiting = false;

  return {
    counts,

    add(outcome: ImportOutcome): void {
      const { status, id, reason } = outcome;
      lastOutcomeMs = performance.now();
      isWaiting = false;
      counts[status]++;
      bar.increment();
      if (json) print(printableJson(outcome));
      else if (status === 'refused') printAboveBar(`${placeOf(outcome)}: ${reason}`);
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
