/**
 * Bare with a synced log. Like bare.ts, it responds to creates and deletes, but first appends each to a log and
 * syncs the log. `node synced-log.ts FILE` writes the log to FILE and prints its URL.
 *
 * A service can be faster: the log grows, so each fdatasync also commits the new file size, and each group makes
 * two trips through the thread pool of libuv.
 */
import { fdatasync, openSync, write } from 'node:fs';
import { listen, receive, sendCreated, sendDeleted } from './bare-http.ts';

const [, , file = ''] = process.argv;
const log = openSync(file, 'a'); // at the end of the file, even after the bench truncates it

/** The changes of the next group: their lines, and the functions that send their responses. */
let lines = '';
let responders: (() => void)[] = [];
let isSyncing = false;

listen('synced log', (request, response) => {
  if (request.method === 'DELETE') {
    return append(`delete ${request.url ?? ''}\n`, () => sendDeleted(response));
  }
  receive(request, (body) => append(`create ${body}\n`, () => sendCreated(response)));
});

function append(line: string, respond: () => void): void {
  lines += line;
  responders.push(respond);
  // In the check phase, so that all requests of this event loop iteration share a sync.
  if (responders.length === 1 && !isSyncing) setImmediate(syncGroup);
}

/** Writes and syncs the waiting changes, then responds to them. Meanwhile, the next group collects. */
function syncGroup(): void {
  if (isSyncing || responders.length === 0) return;
  isSyncing = true;
  const group = Buffer.from(lines);
  const groupResponders = responders;
  lines = '';
  responders = [];
  write(log, group, 0, group.length, null, (writeError, written) => {
    if (writeError !== null) throw writeError;
    if (written < group.length) throw new Error('short write to the log');
    fdatasync(log, (syncError) => {
      if (syncError !== null) throw syncError;
      isSyncing = false;
      syncGroup(); // first, so that the disk works while the responses are sent
      for (const respond of groupResponders) respond();
    });
  });
}
