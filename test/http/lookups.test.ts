import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { limitLookups, maxWaitingLookups } from '../../src/http/auth/lookup-limit.ts';
import { until } from '../support/until.ts';

const maxLookups = 32;
const maxLookupsPerClient = 16;

/** Lookups that are in progress until the test ends them. */
class Held {
  readonly lookups = limitLookups(maxLookups);
  /** Who has lookups in progress, in the order in which they began. */
  readonly begun: string[] = [];
  readonly refused: string[] = [];
  readonly #ends: (() => void)[] = [];
  readonly #results: Promise<void>[] = [];

  ask(address: string, count = 1): void {
    for (let at = 0; at < count; at++) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const lookup = () => {
        this.begun.push(address);
        this.#ends.push(resolve);
        return promise;
      };
      const result = this.lookups.run(address, lookup).catch((error: unknown) => {
        assert.match(String(error), /overloaded/);
        this.refused.push(address);
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

const fill = (held: Held, clients = maxLookups / maxLookupsPerClient) => {
  for (let at = 0; at < clients; at++) held.ask(`192.0.2.${at}`, maxLookupsPerClient);
};

describe('lookups of unknown tokens', () => {
  it('are limited for each client, so that others have room', async () => {
    const held = new Held();
    held.ask('192.0.2.1', 1_000);
    assert.equal(held.begun.length, maxLookupsPerClient);
    held.ask('192.0.2.2');
    assert.equal(held.begun.at(-1), '192.0.2.2');
    await held.endAll();
    assert.equal(held.begun.length, 1_001);
    assert.deepEqual(held.refused, []);
  });

  it('are limited in total, and clients then take turns', async () => {
    const held = new Held();
    fill(held);
    for (const client of ['a', 'b', 'c']) held.ask(client, 3);
    assert.equal(held.begun.length, maxLookups);
    await held.end(9);
    assert.equal(held.begun.slice(maxLookups).join(''), 'abcabcabc');
    await held.endAll();
  });

  it('wait in a bounded queue, from which the client with the most lookups is dropped', async () => {
    const held = new Held();
    fill(held);
    held.ask('greedy', maxWaitingLookups);
    held.ask('greedy', 10);
    held.ask('modest', 5);
    await nextTurn();
    assert.deepEqual(
      held.refused,
      Array.from({ length: 15 }, () => 'greedy'),
    );
    await held.end(2);
    assert.deepEqual(held.begun.slice(maxLookups), ['greedy', 'modest']);
    await held.endAll();
    assert.equal(held.begun.length, maxLookups + maxWaitingLookups);
  });

  it('are refused in time if none is free, and leave the queue', async () => {
    const held = new Held();
    fill(held);
    held.ask('late', 3);
    await until('they are refused', () => held.refused.length === 3, 4_000);
    await held.endAll();
    assert.ok(!held.begun.includes('late'));
  });

  it('free their place if they fail', async () => {
    const lookups = limitLookups(maxLookups);
    const failing = () => Promise.reject(new Error('the storage is down'));
    for (let at = 0; at < 3 * maxLookups; at++) {
      await assert.rejects(lookups.run('192.0.2.1', failing), /the storage is down/);
    }
    assert.equal(await lookups.run('192.0.2.1', async () => 'found'), 'found');
  });
});
