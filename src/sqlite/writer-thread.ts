/**
 * The thread that writes: one transaction and one synced commit for all that has come, so that the
 * event loop of the service never waits for the disk or for a lock.
 */
import {
  parentPort,
  receiveMessageOnPort,
  workerData,
  type MessagePort,
} from 'node:worker_threads';
import { defect, Problem, storageUnavailable } from '../problem.ts';
import { Connection, type Tables } from './connection.ts';
import { apply, nowMs, type Outcome, type Parcel, type Write } from './writes.ts';

/** Writes of one transaction, give or take a parcel: a commit of so many takes some milliseconds. */
const togetherMax = 512;
/** Writes that have waited for longer are not begun: nobody waits for them any more. */
const waitMsMax = 5_000;

/** Writes touch every tree of the schema, two of them at random. */
const cacheKiB = 16_384;

const connection = new Connection(String(workerData), cacheKiB);

if (parentPort !== null) serve(parentPort);

function serve(port: MessagePort): void {
  port.on('message', (first: Message) => {
    for (let next: Message | undefined = first; next !== undefined;) {
      const parcels: Parcel[] = [];
      let writes = 0;
      while (next !== undefined && next !== 'close' && writes < togetherMax) {
        parcels.push(next);
        writes += next.writes.length;
        next = received(port);
      }
      if (parcels.length > 0) port.postMessage(outcomesOf(parcels));
      if (next === 'close') {
        connection.close();
        port.close(); // nothing is left to wait for, so the thread ends
        return;
      }
    }
  });
}

type Message = Parcel | 'close';

function received(port: MessagePort): Message | undefined {
  return receiveMessageOnPort(port)?.message as Message | undefined; // nobody else sends here
}

function outcomesOf(parcels: readonly Parcel[]): Outcome[] {
  const tooLateMs = nowMs() - waitMsMax;
  const isLate = ({ sinceMs }: Parcel) => sinceMs < tooLateMs;
  const late = parcels.filter(isLate).flatMap(({ writes }) => writes);
  const timely = parcels.filter((parcel) => !isLate(parcel)).flatMap(({ writes }) => writes);
  // The late ones came first.
  return [...late.map(() => tooLate), ...(timely.length > 0 ? commit(timely) : [])];
}

const tooLate = failure(storageUnavailable(undefined));

function commit(writes: readonly Write[]): Outcome[] {
  try {
    return connection.write((tables) => writes.map((write) => outcomeOf(tables, write)));
  } catch (error) {
    const { diskFailure } = connection;
    if (diskFailure !== undefined) parentPort?.postMessage({ diskFailure });
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
