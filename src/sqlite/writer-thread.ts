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
import { lockTimeoutMs } from './database.ts';
import { isLocked } from './errors.ts';
import {
  apply,
  nowMs,
  type Failure,
  type Outcome,
  type Outcomes,
  type Batch,
  type ThreadData,
  type Write,
} from './writes.ts';

/** Writes of one transaction, give or take a batch: a commit of so many takes some milliseconds. */
const commitWritesMax = 512;
/** Writes touch every tree of the schema, two of them at random. */
const cacheKiB = 16_384;

const { path, fileId, lastTaken }: ThreadData = workerData;
const lastTakenNumber = new BigInt64Array(lastTaken);
const connection = new Connection(path, cacheKiB, fileId);

if (parentPort !== null) serve(parentPort);

function serve(port: MessagePort): void {
  let lastNumber = 0;
  port.on('message', (first: Message) => {
    for (let next: Message | undefined = first; next !== undefined;) {
      const batches: Batch[] = [];
      let writes = 0;
      while (next !== undefined && next !== 'close' && writes < commitWritesMax) {
        batches.push(next);
        writes += next.writes.size;
        for (const number of next.writes.keys()) lastNumber = number;
        next = received(port);
      }
      Atomics.store(lastTakenNumber, 0, BigInt(lastNumber));
      settle(port, batches);
      connection.restartWal();
      if (next === 'close') {
        connection.close();
        port.close(); // nothing is left to wait for, so the thread ends
        return;
      }
    }
  });
}

type Message = Batch | 'close';

function received(port: MessagePort): Message | undefined {
  return receiveMessageOnPort(port)?.message as Message | undefined; // nobody else sends here
}

/**
 * Reports the outcome of each write. A write waits for the lock until its own time is
 * up, in the queue included: those that came later do not start the wait again.
 */
function settle(port: MessagePort, batches: readonly Batch[]): void {
  for (const [at, { sinceMs, writes }] of batches.entries()) {
    const untilMs = sinceMs + lockTimeoutMs;
    const waiting = batches.slice(at).flatMap((batch) => [...batch.writes]);
    const outcomes = nowMs() < untilMs ? commit(waiting, untilMs) : undefined;
    port.postMessage(outcomes ?? sameOutcome([...writes], tooLate));
    if (outcomes !== undefined) return;
  }
}

type Numbered = readonly [number: number, write: Write];

const tooLate = failure(
  storageUnavailable(new Error(`the database was locked for ${lockTimeoutMs} ms`)),
);

/** Undefined if another process held the lock until then; nothing has changed. */
function commit(writes: readonly Numbered[], untilMs: number): Outcomes | undefined {
  try {
    return connection.write(
      (tables) => new Map(writes.map(([number, write]) => [number, outcomeOf(tables, write)])),
      untilMs,
    );
  } catch (error) {
    if (error instanceof Problem && isLocked(error.cause)) return undefined;
    const { diskFailure } = connection;
    if (diskFailure !== undefined) parentPort?.postMessage({ diskFailure });
    return sameOutcome(writes, failure(error)); // none of them is stored, or nobody knows
  }
}

function sameOutcome(writes: readonly Numbered[], outcome: Outcome): Outcomes {
  return new Map(writes.map(([number]) => [number, outcome]));
}

/** A refusal is the outcome of one write and no concern of its neighbours. */
function outcomeOf(tables: Tables, write: Write): Outcome {
  try {
    return apply(tables, write);
  } catch (error) {
    if (error instanceof Problem) return failure(error);
    throw error;
  }
}

function failure(error: unknown): Failure {
  const { kind, detail, cause } = error instanceof Problem ? error : defect(error);
  return { problem: { kind, detail, cause } };
}
