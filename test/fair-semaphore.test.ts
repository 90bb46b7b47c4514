/**
 * Work that is limited in total and for each key, of which the keys take turns.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { FairSemaphore } from '../src/shared/fair-semaphore.ts';
import { until } from './support/until.ts';

const max = 32;
const maxOfKey = 16;
const maxWaiting = 2_048;

const openSemaphore = () =>
  new FairSemaphore({
    max,
    maxOfKey,
    maxWaiting,
    maxWaitMs: 1_000,
    refusal: () => new Error('refused'),
  });

/** Work that is in progress until the test ends it. */
class Held {
  readonly semaphore = openSemaphore();
  /** Whose work is in progress, in the order in which it began. */
  readonly begun: string[] = [];
  readonly refused: string[] = [];
  readonly #ends: (() => void)[] = [];
  readonly #results: Promise<void>[] = [];

  ask(key: string, count = 1): void {
    for (let at = 0; at < count; at++) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const work = () => {
        this.begun.push(key);
        this.#ends.push(resolve);
        return promise;
      };
      const result = this.semaphore.run(key, work).catch((error: unknown) => {
        assert.match(String(error), /refused/);
        this.refused.push(key);
      });
      this.#results.push(result);
    }
  }

  /** Ends the oldest ones. */
  async end(count: number): Promise<void> {
    for (const end of this.#ends.splice(0, count)) end();
    await nextTurn();
  }

  async endAll(): Promise<void> {
    while (this.#ends.length > 0) await this.end(this.#ends.length);
    await Promise.all(this.#results);
  }
}

const fill = (held: Held, keys = max / maxOfKey) => {
  for (let at = 0; at < keys; at++) held.ask(`key ${at}`, maxOfKey);
};

describe('what a fair semaphore limits', () => {
  it('is limited for each key, so that others have room', async () => {
    const held = new Held();
    held.ask('a', 1_000);
    assert.equal(held.begun.length, maxOfKey);
    held.ask('b');
    assert.equal(held.begun.at(-1), 'b');
    await held.endAll();
    assert.equal(held.begun.length, 1_001);
    assert.deepEqual(held.refused, []);
  });

  it('is limited in total, and keys then take turns', async () => {
    const held = new Held();
    fill(held);
    for (const key of ['a', 'b', 'c']) held.ask(key, 3);
    assert.equal(held.begun.length, max);
    await held.end(9);
    assert.equal(held.begun.slice(max).join(''), 'abcabcabc');
    await held.endAll();
  });

  it('waits in a bounded queue, from which the key with the most work is dropped', async () => {
    const held = new Held();
    fill(held);
    held.ask('greedy', maxWaiting);
    held.ask('greedy', 10);
    held.ask('modest', 5);
    await nextTurn();
    assert.deepEqual(
      held.refused,
      Array.from({ length: 15 }, () => 'greedy'),
    );
    await held.end(2);
    assert.deepEqual(held.begun.slice(max), ['greedy', 'modest']);
    await held.endAll();
    assert.equal(held.begun.length, max + maxWaiting);
  });

  it('is refused in time if no place is free, and leaves the queue', async () => {
    const held = new Held();
    fill(held);
    held.ask('late', 3);
    await until('it is refused', () => held.refused.length === 3, 4_000);
    await held.endAll();
    assert.ok(!held.begun.includes('late'));
  });

  it('frees its place if it fails', async () => {
    const semaphore = openSemaphore();
    const failing = () => Promise.reject(new Error('it failed'));
    for (let at = 0; at < 3 * max; at++) {
      await assert.rejects(semaphore.run('a', failing), /it failed/);
    }
    assert.equal(await semaphore.run('a', async () => 'done'), 'done');
  });
});
