import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Cache } from '../src/shared/cache.ts';

it('evicts the oldest when the total weight is too large', () => {
  const cache = new Cache<{ text: string }>(10, ({ text }) => text.length);
  const reads: string[] = [];
  const load = (key: string, text: string) =>
    cache.getOrLoad(key, () => {
      reads.push(key);
      return { text };
    });
  for (const [key, text] of [
    ['a', '1234'],
    ['b', '1234'],
    ['c', '12'],
    ['a', ''],
    ['d', '1'], // a is evicted
    ['b', ''],
    ['a', '1234567890'], // the rest is evicted
    ['d', '1'], // a is evicted
    ['huge', 'more than the cache can hold'],
    ['huge', ''],
  ] as const) {
    load(key, text);
  }
  assert.deepEqual(reads, ['a', 'b', 'c', 'd', 'a', 'd', 'huge', 'huge']);
});
