/**
 * A cache bounded by the total weight of its values. Evicts the oldest value first, even if it was just used. The
 * comment at each cache begins with "Stale", and describes how long its values can be outdated.
 */
export class Cache<Value extends object> {
  readonly #maxWeight: number;
  readonly #weightOf: (value: Value) => number;
  readonly #values = new Map<string, Value>();
  #weight = 0;

  constructor(maxWeight: number, weightOf: (value: Value) => number = () => 1) {
    this.#maxWeight = maxWeight;
    this.#weightOf = weightOf;
  }

  get(key: string): Value | undefined {
    return this.#values.get(key);
  }

  /** The cached value, or what `load` returns, which is then cached unless it is undefined. */
  getOrLoad<Loaded extends Value | undefined>(key: string, load: () => Loaded): Value | Loaded {
    const cached = this.get(key);
    if (cached !== undefined) return cached;
    const value = load();
    if (value !== undefined) this.set(key, value);
    return value;
  }

  set(key: string, value: Value): void {
    this.delete(key);
    this.#values.set(key, value);
    this.#weight += this.#weightOf(value);
    for (const oldest of this.#values.keys()) {
      if (this.#weight <= this.#maxWeight) return;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const value = this.#values.get(key);
    if (value === undefined) return;
    this.#values.delete(key);
    this.#weight -= this.#weightOf(value);
  }

  clear(): void {
    this.#values.clear();
    this.#weight = 0;
  }
}
