/**
 * A log of changes that is synced before their responses, for bare.ts.
 *
 * A service can be faster: the log grows, so each fdatasync also commits the new file size, and each group makes
 * two trips through the thread pool of libuv.
 */
import { fdatasync, openSync, write } from 'node:fs';

/** Returns what appends a line to the file, and calls `respond` once it is on disk. */
export function syncedLog(file: string): (line: string, respond: () => void) => void {
  const log = openSync(file, 'a'); // at the end of the file, even after the bench truncates it
  /** The changes of the next group: their lines, and the functions that send their responses. */
  let lines = '';
  let responders: (() => void)[] = [];
  let isSyncing = false;

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

  return (line, respond) => {
    lines += line;
    responders.push(respond);
    // In the check phase, so that all requests of this event loop iteration share a sync.
    if (responders.length === 1 && !isSyncing) setImmediate(syncGroup);
  };
}
