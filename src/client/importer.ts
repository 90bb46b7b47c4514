/**
 * Assigns ids to rows, and sends them.
 */
import { PlantStoreError, type NewPlant, type PlantStore } from './client.ts';
import type { ImportJournal, ImportOptions, ImportOutcome } from './import.ts';
import { inParallel } from './in-parallel.ts';
import { largestVisibleId } from './largest-id.ts';
import { isProblem } from './problem.ts';
import { isTemporary, pause } from './retry-rules.ts';

/** A row to add. */
export interface Task {
  row: number;
  line: number;
  plant: NewPlant;
  /** The key of its journal entry. */
  key: string;
}

/** The service answers every request within 12 s, so after this time a lost one has ended. */
const settleMs = 15_000;

/** While the service is not available, calls are repeated for much longer than the client does it. */
const retryMs = 1_000;
const maxPauseMs = 60_000;
const maxOutageMs = 600_000;

/** Ids that are reserved for rows. */
interface Block {
  first: number;
  last: number;
}

export class Importer {
  readonly #store: PlantStore;
  readonly #journal: ImportJournal;
  readonly #concurrency: number;
  readonly #signal: AbortSignal;
  readonly #onWait: (problem: PlantStoreError) => void;
  #lastReplyMs = performance.now();
  /** True after another plant had an id that looked free. */
  #hadConflict = false;

  constructor(options: ImportOptions) {
    this.#store = options.store;
    this.#journal = options.journal;
    this.#concurrency = options.concurrency ?? 32;
    this.#signal = options.signal ?? new AbortController().signal;
    this.#onWait = options.onWait ?? (() => {});
  }

  async *addWithOwnIds(tasks: readonly Task[]): AsyncGenerator<ImportOutcome, void> {
    yield* inParallel(tasks, this.#concurrency, async ({ row, line, plant }) => {
      const { status, ...result } = await this.#create(plant, true);
      return { row, line, status: status === 'taken' ? 'refused' : status, ...result };
    });
  }

  async *addWithoutIds(tasks: readonly Task[]): AsyncGenerator<ImportOutcome, void> {
    const started: Task[] = [];
    const left: Task[] = [];
    for (const task of tasks) {
      const entry = this.#journal.entries.get(task.key);
      if (entry === undefined) left.push(task);
      else if ('added' in entry && entry.added) {
        yield { row: task.row, line: task.line, status: 'already added', id: entry.id };
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
   * Returns the tasks whose id another plant has. After the first one, no new task is started. Those in the journal
   * are, because their plants may exist.
   */
  async *#addAll(
    tasks: readonly Task[],
    add: (task: Task) => Promise<ImportOutcome | undefined>,
  ): AsyncGenerator<ImportOutcome, Task[]> {
    const conflicts: Task[] = [];
    const outcomes = inParallel(tasks, this.#concurrency, async (task) => {
      const isNew = !this.#journal.entries.has(task.key);
      const outcome = conflicts.length > 0 && isNew ? undefined : await add(task);
      if (outcome === undefined) conflicts.push(task);
      return outcome;
    });
    for await (const outcome of outcomes) if (outcome) yield outcome;
    return conflicts;
  }

  /**
   * Reserves a block of ids for the tasks. The last task gets the id above the block. The service assigns other clients
   * only larger ids, so the block stays free. Tasks that this completes are removed from the list.
   */
  async *#reserve(left: Task[]): AsyncGenerator<ImportOutcome, Block> {
    let base = this.#hadConflict
      ? undefined
      : await this.#repeat(() => largestVisibleId(this.#store, this.#signal));
    for (let task = left.at(-1); task !== undefined; task = left.at(-1)) {
      // No number is left above the largest id: any free ones will do.
      if (base !== undefined && base + left.length > Number.MAX_SAFE_INTEGER)
        base = Math.floor(Math.random() * (Number.MAX_SAFE_INTEGER - left.length));
      const id = base === undefined ? undefined : base + left.length;
      const outcome = await (id === undefined
        ? this.#addWithoutId(task)
        : this.#addWithId(task, id));
      if (outcome === undefined) {
        base = undefined; // the store has plants that this user cannot see, so the service has to assign an id
        continue;
      }
      left.pop();
      yield outcome;
      if (outcome.id === undefined) continue;
      if (id === undefined) {
        base = outcome.id;
        continue;
      }
      return { first: await this.#firstFree(id - left.length, id), last: id - 1 };
    }
    return { first: 1, last: 0 }; // no task is left
  }

  /** The first id above the plants between the two ids. Other clients got those ids before `last` was taken. */
  #firstFree(first: number, last: number): Promise<number> {
    return this.#repeat(async () => {
      let free = first;
      const options = { after: first - 1, fields: ['id'], signal: this.#signal } as const;
      for await (const { id } of this.#store.list(options)) {
        if (id >= last) break;
        free = id + 1;
      }
      return free;
    });
  }

  async #resume(task: Task): Promise<ImportOutcome | undefined> {
    const entry = this.#journal.entries.get(task.key);
    return entry && 'id' in entry ? this.#addWithId(task, entry.id) : this.#addWithoutId(task);
  }

  /** Undefined if another plant has the id. */
  async #addWithId(
    { row, line, plant, key }: Task,
    id: number,
  ): Promise<ImportOutcome | undefined> {
    this.#signal.throwIfAborted();
    const entry = this.#journal.entries.get(key);
    const mayExist = entry !== undefined && 'id' in entry && entry.id === id;
    if (!mayExist) await this.#journal.write(key, { id, added: false });
    const { status, ...result } = await this.#create({ ...plant, id }, mayExist);
    if (status === 'taken') return undefined;
    if (status !== 'refused') await this.#journal.write(key, { id, added: true });
    return { row, line, status, ...result };
  }

  /**
   * The service assigns the id. If the outcome of the request is unknown, the plant is searched for above the largest
   * id that was visible before, and once more after the service must have ended the request.
   */
  async #addWithoutId({ row, line, plant, key }: Task): Promise<ImportOutcome> {
    const entry = this.#journal.entries.get(key);
    let after = entry && 'after' in entry ? entry.after : undefined;
    const add = async () => {
      if (after === undefined) {
        after = await largestVisibleId(this.#store, this.#signal);
        await this.#journal.write(key, { after });
      } else {
        let found = await this.#find(plant, after);
        if (found === undefined) {
          await pause(settleMs, this.#signal);
          found = await this.#find(plant, after);
        }
        if (found !== undefined) return { status: 'already added' as const, id: found };
      }
      try {
        const { id } = await this.#store.create(plant, { signal: this.#signal });
        return { status: 'added' as const, id };
      } catch (error) {
        if (error instanceof PlantStoreError && !error.outcomeUnknown) after = undefined;
        throw error;
      }
    };
    try {
      const { status, id } = await this.#repeat(add);
      await this.#journal.write(key, { id, added: true });
      return { row, line, status, id };
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return { row, line, status: 'refused', reason: reasonOf(error) };
    }
  }

  /**
   * Creates a plant with an id. If the id is taken, the plant there can be this one only if `mayExist` is true, or if
   * an attempt had an unknown outcome.
   */
  async #create(plant: NewPlant, mayExist: boolean): Promise<Creation> {
    const { id } = plant;
    let isUnknown = false;
    try {
      await this.#repeat(
        () => this.#store.create(plant, { signal: this.#signal }),
        (problem) => (isUnknown ||= problem.outcomeUnknown),
      );
      return { status: 'added', id };
    } catch (error) {
      if (isRefusal(error)) return { status: 'refused', reason: reasonOf(error) };
      if (!isProblem(error, 'id-taken')) throw error;
      if ((mayExist || isUnknown) && (await this.#exists(plant))) {
        return { status: isUnknown ? 'added' : 'already added', id };
      }
      return { status: 'taken', reason: error.detail };
    }
  }

  async #exists({ id = 0, name, tag = '' }: NewPlant): Promise<boolean> {
    try {
      const found = await this.#repeat(() => this.#store.get(id, { signal: this.#signal }));
      return found.name === name && found.tag === tag;
    } catch (error) {
      if (isProblem(error, 'plant-not-found')) return false; // it belongs to another user
      throw error;
    }
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

  /**
   * Repeats the call while the service is not available. `onProblem` is called before each repetition. Throws the last
   * error after 10 minutes without a reply to any call.
   */
  async #repeat<T>(
    call: () => Promise<T>,
    onProblem: (problem: PlantStoreError) => void = () => {},
  ): Promise<T> {
    for (;;) {
      try {
        const result = await call();
        this.#lastReplyMs = performance.now();
        return result;
      } catch (error) {
        if (!isOutage(error)) {
          this.#lastReplyMs = performance.now();
          throw error;
        }
        if (performance.now() - this.#lastReplyMs > maxOutageMs) throw error;
        onProblem(error);
        this.#onWait(error);
        const pauseMs = Math.max((error.retryAfterSeconds ?? 0) * 1_000, retryMs);
        await pause(Math.min(pauseMs, maxPauseMs), this.#signal);
      }
    }
  }
}

/** A result of creating a plant with an id. `taken`: another plant has the id. */
type Creation =
  | { status: 'added' | 'already added'; id: number | undefined }
  | { status: 'refused' | 'taken'; reason: string };

function isOutage(error: unknown): error is PlantStoreError {
  if (!(error instanceof PlantStoreError)) return false;
  return isTemporary(error) || ['timeout', 'request-timeout'].includes(error.kind);
}

const refusals: readonly string[] = ['invalid-request', 'body-too-large'];

/** Whether the service refuses this row, and not the whole import. */
function isRefusal(error: unknown): error is PlantStoreError {
  return error instanceof PlantStoreError && refusals.includes(error.kind);
}

function reasonOf({ detail, errors }: PlantStoreError): string {
  return errors.length === 0 ? detail : errors.map((fault) => fault.detail).join(' ');
}
