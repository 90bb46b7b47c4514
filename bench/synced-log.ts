/**
 * Bare with a synced log: it answers creates and deletes as bare.ts does, but appends each to a log and syncs the log
 * first. `node synced-log.ts FILE` writes the log to FILE and prints its address. A service can exceed it: the log
 * grows, so each fdatasync commits the new file size too, and each group makes two trips through libuv's pool.
 */
import { fdatasync, openSync, write } from 'node:fs';
import { listen, receive, sendCreated, sendDeleted } from './bare-http.ts';

const [, , file = ''] = process.argv;
const log = openSync(file, 'a'); // at the end of the file, even after the bench truncates it

/** Changes that wait for the next group: their lines, and what answers them. */
let lines = '';
let answers: (() => void)[] = [];
let isSyncing = false;

listen('synced log', (request, response) => {
  if (request.method === 'DELETE') {
    return append(`delete ${request.url ?? ''}\n`, () => sendDeleted(response));
  }
  receive(request, (body) => append(`create ${body}\n`, () => sendCreated(response)));
});

function append(line: string, answer: () => void): void {
  lines += line;
  answers.push(answer);
  // In the check phase, so that all requests that the event loop has read go together.
  if (answers.length === 1 && !isSyncing) setImmediate(syncGroup);
}

/** Writes and syncs what waits, then answers it. Meanwhile the next group collects. */
function syncGroup(): void {
  if (isSyncing || answers.length === 0) return;
  isSyncing = true;
  const group = Buffer.from(lines);
  const groupAnswers = answers;
  lines = '';
  answers = [];
  write(log, group, 0, group.length, null, (writeError, written) => {
    if (writeError !== null) throw writeError;
    if (written < group.length) throw new Error('the log was written in part');
    fdatasync(log, (syncError) => {
      if (syncError !== null) throw syncError;
      isSyncing = false;
      syncGroup(); // first, so that the disk works while the answers are sent
      for (const answer of groupAnswers) answer();
    });
  });
}
