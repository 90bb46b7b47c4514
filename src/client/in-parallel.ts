/**
 * Runs `work` on each item, at most `width` at a time, and yields the results as they arrive. If an item fails or the
 * consumer stops, starts no further item and waits for those in progress.
 */
export async function* inParallel<Item, Result>(
  items: Iterable<Item>,
  width: number,
  work: (item: Item) => Promise<Result>,
): AsyncGenerator<Result, void> {
  const running = new Map<Item, Promise<{ item: Item; result: Result }>>();
  const next = async () => {
    const { item, result } = await Promise.race(running.values());
    running.delete(item);
    return result;
  };
  try {
    for (const item of items) {
      running.set(
        item,
        work(item).then((result) => ({ item, result })),
      );
      if (running.size === width) yield await next();
    }
    while (running.size > 0) yield await next();
  } finally {
    await Promise.allSettled(running.values());
  }
}
