/**
 * Changes to plants, in groups: all of one store that came while the group before was under way make
 * the next transaction. Each keeps an outcome of its own.
 */
import { randomBytes } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import type { Reach } from '../access.ts';
import type { NewPlant, Plant } from '../plant.ts';
import { tooManyWrites } from '../problem.ts';
import { isLoss, isWorthRetrying, problemOf, TooSlow } from './errors.ts';
import { Group, groupSql, type Waiting, type Write } from './group.ts';
import { jitter, type Pool } from './pool.ts';
import type { Watch } from './watch.ts';

/** Writes that may be under way at a time; one more is refused at once. */
const underWayMax = 4_096;
/** Writes of one transaction. */
const groupMax = 512;
/** Writes that have waited for longer are not begun. */
const waitMsMax = 4_000;
/** And those that were are told by then, though nobody knows their outcome yet. */
const tellMsMax = 5_500;
/** How often it is looked for such. */
const lookMs = 200;
/** How often a transaction is begun that conflicts with others or loses its connection. */
const attemptsMax = 5;
/** How long is asked whether a commit came through, whose answer was lost. */
const askMsMax = 3_000;

/** For metrics, after each commit: `{ writes, durationMs }`, from when the first of them came. */
const committed = channel('plant-store:commit');

/** The writes of one store that wait for their turn. */
interface Queue {
  store: number;
  waiting: Waiting[];
  /** What is on its way. */
  group: Group | undefined;
  /** Resolves when nothing waits any more. */
  done: Promise<void>;
}

export class Writer {
  readonly #pool: Pool;
  readonly #watch: Watch;
  /** By store, as long as there is something to do. */
  readonly #queues = new Map<number, Queue>();
  /** Tells the groups of this process from those of others. */
  readonly #name = randomBytes(9).toString('base64url');
  #attempts = 0;
  #underWay = 0;

  constructor(pool: Pool, watch: Watch) {
    this.#pool = pool;
    this.#watch = watch;
  }

  async create(store: number, owner: number, plant: NewPlant): Promise<Plant> {
    return (await this.#write(store, { kind: 'create', owner, plant })) as Plant; // of a create
  }

  async delete(store: number, reach: Reach, id: number): Promise<boolean> {
    return (await this.#write(store, { kind: 'delete', reach, id })) as boolean; // of a delete
  }

  /** Waits for every write that was taken. */
  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map(({ done }) => done));
  }

  async #write(store: number, write: Write): Promise<Plant | boolean> {
    if (this.#underWay >= underWayMax) throw tooManyWrites();
    this.#underWay++;
    const { promise, resolve, reject } = Promise.withResolvers<Plant | boolean>();
    const waiting = { write, sinceMs: performance.now(), resolve, reject };
    const queue = this.#queues.get(store);
    if (queue !== undefined) {
      queue.waiting.push(waiting);
    } else {
      const done = Promise.withResolvers<void>();
      const own = { store, waiting: [waiting], group: undefined, done: done.promise };
      this.#queues.set(store, own);
      // Those of this turn of the event loop go along.
      setImmediate(() => void this.#work(own).then(done.resolve));
    }
    return promise.finally(() => this.#underWay--);
  }

  /** Never rejects: each write is told its own outcome. */
  async #work(queue: Queue): Promise<void> {
    const timer = setInterval(() => giveUpLate(queue), lookMs);
    while (queue.waiting.length > 0) {
      queue.group = new Group(queue.store, takeGroup(queue));
      await this.#settle(queue.group);
      queue.group = undefined;
      giveUpLate(queue);
    }
    clearInterval(timer);
    this.#queues.delete(queue.store);
  }

  /** Tries until the outcome is known, or is not to be known. */
  async #settle(group: Group): Promise<void> {
    const endMs = group.sinceMs + waitMsMax;
    for (let attempt = 1; ; attempt++) {
      const writer = `${this.#name} ${++this.#attempts}`;
      let isSent = false;
      try {
        await this.#pool.lend((connection) => {
          isSent = true;
          return group.commit(connection, writer);
        }, endMs - performance.now());
      } catch (error) {
        const isCommitted = isSent && isLoss(error) ? await this.#ask(group, writer) : false;
        if (isCommitted === undefined) return group.tellUnknown(error);
        if (!isCommitted) {
          const isPassing = isWorthRetrying(error) || isLoss(error);
          const isOver = attempt === attemptsMax || performance.now() > endMs;
          if (!isPassing || isOver) return group.tellFailed(error);
          await jitter();
          continue;
        }
      }
      this.#watch.changed(group.store);
      if (committed.hasSubscribers) {
        const { size: writes, sinceMs } = group;
        committed.publish({ writes, durationMs: performance.now() - sinceMs });
      }
      // Later, so that the next group is on its way before those of this one are answered.
      setImmediate(() => group.tell());
      return;
    }
  }

  /** Whether an attempt came through, whose answer was lost; undefined where nobody can tell. */
  async #ask(group: Group, writer: string): Promise<boolean | undefined> {
    for (const endMs = performance.now() + askMsMax; performance.now() < endMs; await jitter()) {
      try {
        const [row] = await this.#pool.lend((connection) =>
          connection.query(groupSql.askLast, [group.store, group.assigned]),
        );
        if (row === undefined) continue;
        const [id, version, lastWriter] = row;
        if (lastWriter === writer) {
          group.last = { id, version };
          return true;
        }
        // It had the row locked, so it is over by now: where it is not there and nobody came after
        // it, it has failed. Where it had not, the server may not even have begun it.
        return group.last !== undefined && version <= group.last.version ? false : undefined;
      } catch {
        // The server is not back yet, or another holds the row.
      }
    }
    return undefined;
  }
}

/** Tells those who have waited for too long: there may be no end to it. */
function giveUpLate({ waiting, group }: Queue): void {
  const nowMs = performance.now();
  while (waiting[0] !== undefined && waiting[0].sinceMs < nowMs - waitMsMax) {
    waiting.shift()?.reject(problemOf(new TooSlow()));
  }
  if (group !== undefined && group.sinceMs < nowMs - tellMsMax) group.tellUnknown(new TooSlow());
}

/** The first of the queue, of which no two name the same plant: the order of such is up to the database. */
function takeGroup(queue: Queue): Waiting[] {
  const ids = new Set<number>();
  const group: Waiting[] = [];
  for (const waiting of queue.waiting) {
    const { write } = waiting;
    const id = write.kind === 'create' ? write.plant.id : write.id;
    if (group.length === groupMax || (id !== undefined && ids.has(id))) break;
    if (id !== undefined) ids.add(id);
    group.push(waiting);
  }
  queue.waiting.splice(0, group.length);
  return group;
}
