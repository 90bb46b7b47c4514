/**
 * A cache bounded by the total weight of its values. The oldest value is evicted first, whether or not it
 * was used since.
 *
 * The service caches
 * - grants: sqlite/tables/grants.ts and postgres/tables/grant-cache.ts, which also detect that they are stale
 * - counts of plants: sqlite/tables/plant-counts.ts, dropped after each commit of another process
 * - hashes of tokens by Authorization header: http/auth/auth.ts
 * - verified tokens of an identity provider: http/auth/sign-on.ts, and its keys: oidc/keys.ts
 * - documents, such as openapi.json: http/response/documents.ts, without this class
 * - PostgreSQL's schema version for 1 s (postgres/schema/readiness.ts)
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
    const replaced = this.#values.get(key);
    if (replaced !== undefined) this.#weight -= this.#weightOf(replaced);
    this.#values.set(key, value);
    this.#weight += this.#weightOf(value);
    for (const [oldest, evicted] of this.#values) {
      if (this.#weight <= this.#maxWeight) return;
      this.#values.delete(oldest);
      this.#weight -= this.#weightOf(evicted);
    }
  }

  /** Returns whether there was a value. */
  delete(key: string): boolean {
    const value = this.#values.get(key);
    if (value !== undefined) this.#weight -= this.#weightOf(value);
    return this.#values.delete(key);
  }

  deleteWhere(isDeleted: (value: Value, key: string) => boolean): void {
    for (const [key, value] of this.#values) if (isDeleted(value, key)) this.delete(key);
  }

  clear(): void {
    this.#values.clear();
    this.#weight = 0;
  }
}
