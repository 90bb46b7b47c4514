/**
 * When tokens were last used. A request only changes a number in memory; the storage gets all of them once a minute, when
 * a shutdown begins, and at its end. What a failed write had is in the next one. A crash loses the last minute.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Grant } from '../../access/access.ts';
import type { IdentityStorage, TokenUse } from '../../access/identity-storage.ts';

const flushIntervalMs = 60_000;
/** Maximum number of tokens that wait for a write; the uses of others are lost. */
const maxTokens = 10_000;
/** Tokens in one write, so that the writes of other requests come between. */
const maxWriteTokens = 500;
/** How long the end of a shutdown waits for the last flush. A drain of 10 seconds and this are within its limit. */
const closeTimeoutMs = 3_000;

export class TokenUses {
  readonly #storage: Pick<IdentityStorage, 'recordUses'>;
  readonly #timer: NodeJS.Timeout;
  #uses = new Map<string, TokenUse>();
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
    const uses = [...this.#uses];
    this.#uses = new Map();
    for (let at = 0; at < uses.length; at += maxWriteTokens) {
      const some = uses.slice(at, at + maxWriteTokens);
      const toWrite = some.map(([, { usedAtMs, ...use }]) => {
        return { ...use, usedAtMs: usedAtMs - (usedAtMs % flushIntervalMs) };
      });
      // If a server fails, the uses of the others are still written.
      await this.#storage.recordUses(toWrite).catch(() => this.#putBack(some));
    }
  }

  #putBack(uses: readonly [tokenId: string, use: TokenUse][]): void {
    for (const [tokenId, use] of uses) {
      const isNewer = this.#uses.has(tokenId);
      if (!isNewer && this.#uses.size < maxTokens) this.#uses.set(tokenId, use);
    }
  }
}
