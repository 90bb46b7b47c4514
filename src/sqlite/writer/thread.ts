/**
 * The writer thread. All writes that have arrived are committed in one transaction, with one sync.
 */
import {
  parentPort,
  receiveMessageOnPort,
  workerData,
  type MessagePort,
} from 'node:worker_threads';
import { defect, Problem } from '../../problem.ts';
import { Connection } from '../connection.ts';
import { nowMs } from '../file/locks.ts';
import { lockTimeoutMs } from '../file/open.ts';
import { namedWrite } from '../../sql/named-writes.ts';
import { perform } from '../tables/statements.ts';
import type { Tables } from '../tables/tables.ts';
import {
  unpack,
  type Failure,
  type Outcomes,
  type Batch,
  type ThreadData,
  type Write,
} from './messages.ts';

/** A transaction with this many writes gets no further batch. Its commit takes a few milliseconds. */
const maxCommitWrites = 512;
/** SQLite's page cache. Writes change every B-tree of the schema, two of them in random places. */
const cacheKiB = 16_384;

const file: ThreadData = workerData;
const onFailure = (diskFailure: unknown) => parentPort?.postMessage({ diskFailure });
const connection = new Connection({ ...file, cacheKiB, onFailure });

if (parentPort !== null) run(parentPort);

function run(port: MessagePort): void {
  prepare();
  port.on('message', (first: Message) => {
    for (let next: Message | undefined = first; next !== undefined;) {
      const batches: Batch[] = [];
      let writes = 0;
      while (next !== undefined && next !== 'close' && writes < maxCommitWrites) {
        batches.push(next);
        writes += next.writes.length;
        next = receiveMessageOnPort(port)?.message;
      }
      commitBatches(port, batches);
      connection.checkpoint();
      if (next === 'close') {
        connection.close();
        port.close(); // nothing else keeps the thread alive
        return;
      }
    }
  });
}

/** So that the first write finds the file open. If it cannot be opened, each write tries again and gets the error. */
function prepare(): void {
  try {
    connection.open({ create: false, deadlineMs: nowMs() });
  } catch {
    // The next write reports it.
  }
}

type Message = Batch | 'close';

/** Commits the batches together and posts their outcomes. They wait for a lock until the deadline of the oldest. */
function commitBatches(port: MessagePort, batches: readonly Batch[]): void {
  const [oldest] = batches;
  if (oldest === undefined) return;
  let outcomes: Outcomes;
  try {
    outcomes = connection.write(
      (tables) => batches.map(({ writes }) => writes.map((write) => outcomeOf(tables, write))),
      oldest.sentMs + lockTimeoutMs, // tries once even if it has passed
    );
  } catch (error) {
    const failure = toFailure(error); // they share the transaction
    outcomes = batches.map(({ writes }) => writes.map(() => failure));
  }
  port.postMessage(outcomes);
}

/** A Problem is the outcome of its own write, which has changed nothing. Any other error fails the transaction. */
function outcomeOf(tables: Tables, write: Write): unknown {
  try {
    return apply(tables, write);
  } catch (error) {
    if (error instanceof Problem) return toFailure(error);
    throw error;
  }
}

function apply(tables: Tables, write: Write): unknown {
  switch (write[0]) {
    case 'change':
      return tables.plants.change(unpack(write));
    case 'add-store':
      return tables.stores.add(write[1]);
    case 'touch':
      return tables.stores.touch(write[1]);
    case 'call': {
      const [, name, ...args] = write;
      const result = perform(tables, namedWrite(name, ...args));
      tables.grants.clearVersion();
      return result;
    }
  }
}

function toFailure(error: unknown): Failure {
  const { kind, detail, scope, cause } = error instanceof Problem ? error : defect(error);
  return { problem: { kind, detail, scope, cause } };
}
