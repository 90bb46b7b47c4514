/**
 * Runs `work` on each item, at most `width` at a time, and yields the results as they arrive. If an item fails, starts no
 * further one, yields the results of those in progress, and throws. If the consumer stops, waits for them.
 */
export async function* inParallel<Item, Result>(
  items: Iterable<Item>,
  width: number,
  work: (item: Item) => Promise<Result>,
): AsyncGenerator<Result, void> {
  const running = new Map<Item, Promise<void>>();
  const results: Result[] = [];
  const failures: unknown[] = [];
  const run = async (item: Item) => {
    try {
      results.push(await work(item));
    } catch (error) {
      failures.push(error);
    }
    running.delete(item);
  };
  try {
    for (const item of items) {
      running.set(item, run(item));
      if (running.size === width) await Promise.race(running.values());
      yield* results.splice(0);
      if (failures.length > 0) break;
    }
    while (running.size > 0) {
      await Promise.race(running.values());
      yield* results.splice(0);
    }
  } finally {
    await Promise.all(running.values());
  }
  if (failures.length > 0) throw failures[0];
}
