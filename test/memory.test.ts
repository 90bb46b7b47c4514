import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Memory } from '../src/memory.ts';

it('reads once for each key, until it forgets', () => {
  const memory = new Memory<{ n: number }>(10);
  let reads = 0;
  const recall = (key: string) => memory.recall(key, () => ({ n: ++reads }));
  assert.deepEqual([recall('a').n, recall('b').n, recall('a').n], [1, 2, 1]);
  memory.forget();
  assert.equal(recall('a').n, 3);
});

it('does not keep that there is nothing', () => {
  const memory = new Memory<{ n: number }>(10);
  assert.equal(
    memory.recall('a', () => undefined),
    undefined,
  );
  assert.deepEqual(
    memory.recall('a', () => ({ n: 1 })),
    { n: 1 },
  );
});

it('lets the oldest go when all together weigh too much', () => {
  const memory = new Memory<{ text: string }>(10, ({ text }) => text.length);
  const reads: string[] = [];
  const recall = (key: string, text: string) =>
    memory.recall(key, () => {
      reads.push(key);
      return { text };
    });
  for (const [key, text] of [
    ['a', '1234'],
    ['b', '1234'],
    ['c', '12'],
    ['a', ''],
    ['d', '1'], // a goes
    ['b', ''],
    ['a', '1234567890'], // the rest goes
    ['d', '1'], // a goes
    ['huge', 'more than all that may be kept'],
    ['huge', ''],
  ] as const) {
    recall(key, text);
  }
  assert.deepEqual(reads, ['a', 'b', 'c', 'd', 'a', 'd', 'huge', 'huge']);
});
