/**
 * Adds the rows of a file to a store, many at a time, and never a row twice. A row without an id gets one here,
 * because only a request with an id can be repeated safely. The journal has the id before the request is sent
 * (decision 30).
 */
import { PlantStoreError, type NewPlant, type PlantStore } from './client.ts';
import type { ImportJournal } from './import-journal.ts';
import type { ImportOutcome } from './import-outcome.ts';
import { inParallel } from './in-parallel.ts';
import { largestVisibleId } from './largest-id.ts';
import { findCreated } from './lost-response.ts';
import { isProblem } from './problem.ts';
import type { ImportRow } from './read-rows.ts';
import { isTemporary, maxRequestMs } from './retry-rules.ts';
import { pause } from './waiting.ts';

export interface ImportOptions {
  /** A client whose calls wait for the service as long as the import should. */
  store: PlantStore;
  rows: readonly ImportRow[];
  journal: ImportJournal;
  /** Number of requests in flight. */
  concurrency: number;
  /** Stops the import, which then throws the reason of the signal. */
  signal: AbortSignal;
}

/**
 * Yields an outcome for each row, in the order in which they happen. Throws a PlantStoreError if a failure concerns
 * more than one row. To continue after that, import the same rows again with the same journal.
 */
export async function* importPlants(options: ImportOptions): AsyncGenerator<ImportOutcome, void> {
  for (const [at, row] of options.rows.entries()) {
    if (!('fault' in row)) continue;
    yield { row: at + 1, line: row.line, status: 'refused', reason: row.fault };
  }
  const tasks = tasksOf(options.rows);
  const sender = new Sender(options);
  // Rows with ids come first, because the reserved ids must be above theirs.
  yield* sender.addWithOwnIds(tasks.filter(({ plant }) => plant.id !== undefined));
  yield* sender.addWithoutIds(tasks.filter(({ plant }) => plant.id === undefined));
}

/** A row to add. */
interface Task extends Pick<ImportOutcome, 'row' | 'line'> {
  plant: NewPlant;
  /** The key of its journal entry. */
  key: string;
}

/** Equal rows have different keys: the second one is another plant. */
function tasksOf(rows: readonly ImportRow[]): Task[] {
  const counts = new Map<string, number>();
  return rows.flatMap((row, at) => {
    if ('fault' in row) return [];
    const { line, plant } = row;
    const { name, tag = '', id } = plant;
    const content = JSON.stringify([name, tag, id]);
    const count = (counts.get(content) ?? 0) + 1;
    counts.set(content, count);
    return [{ row: at + 1, line, plant, key: `${content} ${count}` }];
  });
}

/** What happened to a row. `taken`: another plant has its id. */
interface Result extends Pick<ImportOutcome, 'id' | 'reason'> {
  status: ImportOutcome['status'] | 'taken';
}

/** Ids that are reserved for rows. */
interface Block {
  first: number;
  last: number;
}

class Sender {
  readonly #store: PlantStore;
  readonly #journal: ImportJournal;
  readonly #concurrency: number;
  readonly #signal: AbortSignal;
  /** True after another plant had an id that looked free. */
  #hadConflict = false;

  constructor({ store, journal, concurrency, signal }: ImportOptions) {
    this.#store = store;
    this.#journal = journal;
    this.#concurrency = concurrency;
    this.#signal = signal;
  }

  async *addWithOwnIds(tasks: readonly Task[]): AsyncGenerator<ImportOutcome, void> {
    const add = async (task: Task) => outcomeOf(task, await this.#create(task.plant, true));
    yield* inParallel(tasks, this.#concurrency, add);
  }

  async *addWithoutIds(tasks: readonly Task[]): AsyncGenerator<ImportOutcome, void> {
    const started: Task[] = [];
    const left: Task[] = [];
    for (const task of tasks) {
      const entry = this.#journal.entries.get(task.key);
      if (entry === undefined) left.push(task);
      else if ('added' in entry && entry.added) {
        yield outcomeOf(task, { status: 'already added', id: entry.id });
      } else started.push(task);
    }
    const moved = yield* this.#addAll(started, (task) => this.#resume(task));
    for (const task of moved) left.push(task); // there can be too many for a spread
    while (left.length > 0) {
      left.sort((one, other) => one.row - other.row);
      const { first, last } = yield* this.#reserve(left);
      const batch = left.splice(0, last - first + 1);
      const ids = new Map(batch.map((task, at) => [task, first + at]));
      const add = (task: Task) => this.#addWithId(task, ids.get(task) ?? first);
      const conflicts = yield* this.#addAll(batch, add);
      this.#hadConflict ||= conflicts.length > 0;
      for (const task of conflicts) left.push(task);
    }
  }

  /**
   * Returns the tasks whose ids other plants have. After the first of them, starts only tasks that are in the journal,
   * because their plants may exist.
   */
  async *#addAll(
    tasks: readonly Task[],
    add: (task: Task) => Promise<Result>,
  ): AsyncGenerator<ImportOutcome, Task[]> {
    const conflicts: Task[] = [];
    const outcomes = inParallel(tasks, this.#concurrency, async (task) => {
      const isNew = !this.#journal.entries.has(task.key);
      const result = conflicts.length > 0 && isNew ? undefined : await add(task);
      if (result && result.status !== 'taken') return outcomeOf(task, result);
      conflicts.push(task);
      return undefined;
    });
    for await (const outcome of outcomes) if (outcome) yield outcome;
    return conflicts;
  }

  /**
   * Reserves a block of ids for the tasks: it adds the last task with the id above the block, so that the service
   * assigns only larger ids to other clients. Removes the tasks that it completes from the list.
   */
  async *#reserve(left: Task[]): AsyncGenerator<ImportOutcome, Block> {
    // Undefined if the store has plants that this user cannot see: the service then has to assign an id.
    let base = this.#hadConflict ? undefined : await largestVisibleId(this.#store, this.#signal);
    for (let task = left.at(-1); task !== undefined; task = left.at(-1)) {
      if (base === undefined) {
        left.pop();
        const result = await this.#addWithoutId(task);
        yield outcomeOf(task, result);
        base = result.id;
        continue;
      }
      if (base + left.length > Number.MAX_SAFE_INTEGER) {
        // No number is left above the largest id: any free ones will do.
        base = Math.floor(Math.random() * (Number.MAX_SAFE_INTEGER - left.length));
      }
      const id = base + left.length;
      const result = await this.#addWithId(task, id);
      if (result.status === 'taken') {
        base = undefined;
        continue;
      }
      left.pop();
      yield outcomeOf(task, result);
      if (result.status === 'refused') continue;
      return { first: await this.#firstFree(id - left.length, id), last: id - 1 };
    }
    return { first: 1, last: 0 }; // no task is left
  }

  /** The first id above the plants between the two ids. Other clients got those ids before `last` was taken. */
  async #firstFree(first: number, last: number): Promise<number> {
    let free = first;
    const options = { after: first - 1, fields: ['id'], signal: this.#signal } as const;
    for await (const { id } of this.#store.list(options)) {
      if (id >= last) break;
      free = id + 1;
    }
    return free;
  }

  #resume(task: Task): Promise<Result> {
    const entry = this.#journal.entries.get(task.key);
    return entry && 'id' in entry ? this.#addWithId(task, entry.id) : this.#addWithoutId(task);
  }

  async #addWithId({ plant, key }: Task, id: number): Promise<Result> {
    this.#signal.throwIfAborted();
    const entry = this.#journal.entries.get(key);
    const mayExist = entry !== undefined && 'id' in entry && entry.id === id;
    if (!mayExist) await this.#journal.write(key, { id, added: false });
    const result = await this.#create({ ...plant, id }, mayExist);
    if (result.id !== undefined) await this.#journal.write(key, { id, added: true });
    return result;
  }

  /** Lets the service assign the id. After an unknown outcome, searches for the plant before another request. */
  async #addWithoutId({ plant, key }: Task): Promise<Result> {
    const entry = this.#journal.entries.get(key);
    let after = entry && 'after' in entry ? entry.after : undefined;
    for (;;) {
      const found = after === undefined ? undefined : await this.#findLost(plant, after);
      if (found !== undefined) {
        await this.#journal.write(key, { id: found, added: true });
        return { status: 'already added', id: found };
      }
      if (after === undefined) {
        after = await largestVisibleId(this.#store, this.#signal);
        await this.#journal.write(key, { after });
      }
      try {
        const { id } = await this.#store.create(plant, { signal: this.#signal });
        await this.#journal.write(key, { id, added: true });
        return { status: 'added', id };
      } catch (error) {
        if (isRefusal(error)) return refusalOf(error);
        if (!isLost(error)) throw error;
      }
    }
  }

  /** Searches above the id twice: the second time after the service must have ended the lost request. */
  async #findLost(plant: NewPlant, after: number): Promise<number | undefined> {
    const found = await this.#find(plant, after);
    if (found !== undefined) return found;
    await pause(maxRequestMs, this.#signal);
    return this.#find(plant, after);
  }

  /** The id of an equal plant above `after` that is not another row. */
  async #find({ name, tag = '' }: NewPlant, after: number): Promise<number | undefined> {
    const entries = this.#journal.entries.values();
    const own = new Set(entries.map((entry) => ('id' in entry ? entry.id : 0)));
    const fields = ['id', 'name', 'tag'] as const;
    for await (const plant of this.#store.list({ after, tag, fields, signal: this.#signal })) {
      if (plant.name === name && !own.has(plant.id)) return plant.id;
    }
    return undefined;
  }

  /** Creates a plant with an id. If the id is taken, the plant there can be this one only if `mayExist` is true. */
  async #create(plant: NewPlant, mayExist: boolean): Promise<Result> {
    const { id } = plant;
    const options = { signal: this.#signal };
    try {
      await this.#store.create(plant, options);
      return { status: 'added', id };
    } catch (error) {
      if (isRefusal(error)) return refusalOf(error);
      if (!isProblem(error, 'id-taken')) throw error;
      const found = mayExist && (await findCreated(plant, (it) => this.#store.get(it, options)));
      return found ? { status: 'already added', id } : { status: 'taken', reason: error.detail };
    }
  }
}

function outcomeOf({ row, line }: Task, { status, ...others }: Result): ImportOutcome {
  return { row, line, status: status === 'taken' ? 'refused' : status, ...others };
}

const refusals: readonly string[] = ['invalid-request', 'body-too-large'];

/** Whether the service refuses this row, and not the whole import. */
function isRefusal(error: unknown): error is PlantStoreError {
  return error instanceof PlantStoreError && refusals.includes(error.kind);
}

function refusalOf({ detail, errors }: PlantStoreError): Result {
  const reasons = errors.map((fault) => fault.detail);
  return { status: 'refused', reason: reasons.length === 0 ? detail : reasons.join(' ') };
}

/** Whether the request may have added the row, and can be sent again if it has not. */
function isLost(error: unknown): boolean {
  if (!(error instanceof PlantStoreError) || !error.outcomeUnknown) return false;
  return isTemporary(error) || error.kind === 'timeout';
}
