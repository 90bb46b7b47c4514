/**
 * When tokens were last used. A request only changes a number in memory; the storage gets all of them once a minute, when
 * a shutdown begins, and at its end. What a failed write had is in the next one. A crash loses the last minute.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Grant } from '../../access/access.ts';
import type { IdentityStorage } from '../../access/identity-storage.ts';

const flushIntervalMs = 60_000;
/** Maximum number of tokens that wait for a write; the uses of others are lost. */
const maxTokens = 10_000;
/** Tokens in one write, and writes at once: in one commit on SQLite. The writes of requests come between. */
const maxWriteTokens = 500;
const maxWrites = 64;
/** How long the end of a shutdown waits for the last flush. A drain of 10 seconds and this are within its limit. */
const closeTimeoutMs = 3_000;

interface TokenUse {
  readonly hash: Uint8Array;
  readonly store: number;
  usedAtMs: number;
}

export class TokenUses {
  readonly #storage: Pick<IdentityStorage, 'recordUses'>;
  readonly #timer: NodeJS.Timeout;
  /** By the id of the token. */
  readonly #uses = new Map<string, TokenUse>();
  #flushing: Promise<void> = Promise.resolve();

  constructor(storage: Pick<IdentityStorage, 'recordUses'>, intervalMs = flushIntervalMs) {
    this.#storage = storage;
    this.#timer = setInterval(() => void this.flush(), intervalMs).unref();
  }

  note({ tokenId, tokenHash: hash, isStored, caller: { store } }: Grant, nowMs: number): void {
    if (!isStored) return;
    const use = this.#uses.get(tokenId);
    if (use !== undefined) use.usedAtMs = nowMs;
    else if (this.#uses.size < maxTokens) this.#uses.set(tokenId, { hash, store, usedAtMs: nowMs });
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.race([this.flush(), pause(closeTimeoutMs, undefined, { ref: false })]);
  }

  /** Never rejects. Waits for the flush before it. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#write()).catch(() => {});
    return this.#flushing;
  }

  async #write(): Promise<void> {
    let count = 0;
    const groups = Map.groupBy(this.#uses, ([, use]) => {
      return `${use.store} ${minuteOf(use)} ${Math.floor(count++ / maxWriteTokens)}`;
    });
    const all = [...groups.values()];
    for (let at = 0; at < all.length; at += maxWrites) {
      // If a server fails, the uses of the others are still written.
      await Promise.allSettled(all.slice(at, at + maxWrites).map((some) => this.#record(some)));
    }
  }

  /** Of tokens of a store, all in the same minute. */
  async #record(uses: readonly [tokenId: string, use: TokenUse][]): Promise<void> {
    const [[, first] = []] = uses;
    if (first === undefined) return;
    const { store } = first;
    const usedAtMs = minuteOf(first);
    const hashes = uses.map(([, { hash }]) => hash);
    await this.#storage.recordUses(store, usedAtMs, hashes);
    for (const [tokenId, use] of uses) if (minuteOf(use) === usedAtMs) this.#uses.delete(tokenId);
  }
}

function minuteOf({ usedAtMs }: TokenUse): number {
  return usedAtMs - (usedAtMs % flushIntervalMs);
}
