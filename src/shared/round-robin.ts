/** Items by key. The keys take turns, so a key with many items does not delay the others. */
export class RoundRobin<Item> {
  /** In the order of their turns. No set is empty. */
  readonly #items = new Map<string, Set<Item>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(key: string): boolean {
    return this.#items.has(key);
  }

  add(key: string, item: Item): void {
    const items = this.#items.get(key) ?? new Set();
    this.#items.set(key, items.add(item));
    this.#size++;
  }

  /** Removes the oldest item of the next key whose item `isAllowed`. The next turn of this key comes after all others. */
  take(isAllowed = (_key: string, _item: Item) => true): Item | undefined {
    for (const [key, items] of this.#items) {
      const [item] = items;
      if (item === undefined || !isAllowed(key, item)) continue;
      this.delete(key, item);
      if (this.#items.delete(key)) this.#items.set(key, items);
      return item;
    }
    return undefined;
  }

  delete(key: string, item: Item): void {
    const items = this.#items.get(key);
    if (items?.delete(item) !== true) return;
    this.#size--;
    if (items.size === 0) this.#items.delete(key);
  }

  /** The oldest item of the key with the most items, if it has more than `key`. */
  oldestOfMoreThan(key: string): Item | undefined {
    const own = this.#items.get(key) ?? new Set();
    let most = own;
    for (const items of this.#items.values()) if (items.size > most.size) most = items;
    const [oldest] = most;
    return most === own ? undefined : oldest;
  }
}
