/**
 * The thread that writes: one transaction and one synced commit for each message, however many
 * writes it holds, so that the event loop of the service never waits for the disk or for a lock.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { defect, Problem } from '../problem.ts';
import { Connection, type Tables } from './connection.ts';
import { apply, type Outcome, type Write } from './writes.ts';

const connection = new Connection(String(workerData));

parentPort?.on('message', (writes: readonly Write[] | 'close') => {
  if (writes === 'close') {
    connection.close();
    parentPort?.close(); // nothing is left to wait for, so the thread ends
  } else {
    parentPort?.postMessage(commit(writes));
  }
});

function commit(writes: readonly Write[]): Outcome[] {
  try {
    return connection.write((tables) => writes.map((write) => outcomeOf(tables, write)));
  } catch (error) {
    // None of them is stored, or nobody knows.
    const outcome = failure(error);
    return writes.map(() => outcome);
  }
}

/** A refusal is the outcome of one write and no concern of its neighbours. */
function outcomeOf(tables: Tables, write: Write): Outcome {
  try {
    return { value: apply(tables, write) };
  } catch (error) {
    if (error instanceof Problem) return failure(error);
    throw error;
  }
}

function failure(error: unknown): Outcome {
  const { kind, detail, cause } = error instanceof Problem ? error : defect(error);
  return { problem: { kind, detail, cause } };
}
