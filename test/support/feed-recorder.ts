/**
 * Follows the changes of a store as a manager, who sees all of them, and compares what it got with the log.
 */
import assert from 'node:assert/strict';
import type { PlantStore } from '../../src/client/client.ts';
import type { LoggedChange } from '../../src/log/change-log.ts';
import type { Storage } from '../../src/storage.ts';
import { until } from './until.ts';

/** The ids of the plants whose changes are at these positions. */
interface Batch {
  after: number;
  to: number;
  ids: number[];
}

export class FeedRecorder {
  readonly #batches: Batch[] = [];
  readonly #end = new AbortController();
  #position = 0;
  #followed = Promise.resolve();

  /** Resolves once the recorder has its first cursor. It also ends with the signal. */
  static async start(client: PlantStore, signal: AbortSignal): Promise<FeedRecorder> {
    const recorder = new FeedRecorder();
    const begin = (await client.changes().next()).value;
    recorder.#position = begin.position;
    recorder.#followed = recorder.#follow(
      client,
      begin.after,
      AbortSignal.any([signal, recorder.#end.signal]),
    );
    recorder.#followed.catch(() => {}); // `check` rejects with it
    return recorder;
  }

  /** Ends. Each plant that has changed was in the batch of that change, and in no other. */
  async check(storage: Storage, store: string): Promise<void> {
    const { store: number = 0 } = await storage.users.find(store);
    const last = await storage.log.position(number);
    const hasAll = () => this.#position >= last;
    await Promise.race([this.#followed, until('the recorder has all changes', hasAll)]);
    this.#end.abort();
    await this.#followed;
    const [{ after: first } = assert.fail('there are no changes')] = this.#batches;
    const log = await logAfter(storage, store, first);
    const deletedAt = new Map<number, number>();
    for (const { event, plant, position } of log) {
      if (event === 'deleted' && plant !== undefined) deletedAt.set(plant, position);
    }
    let expectedAfter = first;
    for (const { after, to, ids } of this.#batches) {
      assert.equal(after, expectedAfter);
      assert.ok(to > after, 'a batch is later than the one before');
      expectedAfter = to;
      const changed = log.slice(after - first, to - first).flatMap(({ plant }) => plant ?? []);
      const missing = new Set(changed);
      for (const id of ids) assert.ok(missing.delete(id), `${id} is in the batch to ${to} once`);
      // A plant that was created and is gone is only in the batch of its deletion.
      for (const id of missing) assert.ok((deletedAt.get(id) ?? 0) > to, `${id} is in no batch`);
    }
  }

  async #follow(client: PlantStore, begin: string, signal: AbortSignal): Promise<void> {
    try {
      for await (const { changes, position } of client.changes({ after: begin, signal })) {
        if (position === this.#position) continue; // the first batch can be empty
        this.#batches.push({
          after: this.#position,
          to: position,
          ids: changes.map(({ id }) => id),
        });
        this.#position = position;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

async function logAfter(storage: Storage, store: string, first: number): Promise<LoggedChange[]> {
  const all: LoggedChange[] = [];
  for (let after: number | undefined = first; after !== undefined;) {
    const page = await storage.log.list({ store, after, limit: 1_000 });
    all.push(...page.changes);
    after = page.next;
  }
  return all;
}
