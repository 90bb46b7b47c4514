/**
 * What was worked out or read before, up to a weight of all together: the oldest makes room.
 */
export class Memory<Value extends object> {
  readonly #weightMax: number;
  readonly #weightOf: (value: Value) => number;
  readonly #values = new Map<string, Value>();
  #weight = 0;

  constructor(weightMax: number, weightOf: (value: Value) => number = () => 1) {
    this.#weightMax = weightMax;
    this.#weightOf = weightOf;
  }

  /** What `read` gave for this key before, or gives now. That there is nothing is not kept. */
  recall<Read extends Value | undefined>(key: string, read: () => Read): Value | Read {
    const known = this.get(key);
    if (known !== undefined) return known;
    const value = read();
    if (value !== undefined) this.keep(key, value);
    return value;
  }

  get(key: string): Value | undefined {
    return this.#values.get(key);
  }

  forget(): void {
    this.#values.clear();
    this.#weight = 0;
  }

  /** Takes the place of the value that the key had. */
  keep(key: string, value: Value): void {
    const before = this.#values.get(key);
    if (before !== undefined) this.#weight -= this.#weightOf(before);
    this.#values.set(key, value);
    this.#weight += this.#weightOf(value);
    for (const [oldest, its] of this.#values) {
      if (this.#weight <= this.#weightMax) return;
      this.#values.delete(oldest);
      this.#weight -= this.#weightOf(its);
    }
  }
}
