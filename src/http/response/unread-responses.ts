/**
 * Limits the memory of long responses that clients have not read yet, in total and for each user. Short responses
 * are not counted, because they fit in the socket buffers of the operating system.
 */
import type { ServerResponse } from 'node:http';
import { userKey, type Identity } from '../../access/access.ts';
import { Problem } from '../../problem.ts';
import { FairSemaphore } from '../../shared/fair-semaphore.ts';
import { maxUnreadBytes, maxUnreadBytesOfUser, maxUnreadWaitMs } from '../limits.ts';

/** Responses up to this length are not counted. */
const maxUncountedChars = 16 * 1024;

/** Of the memory of all users, so that short responses do not pass a long one that waits. */
const everyone = '';
const waiting = { maxWaitMs: maxUnreadWaitMs, refusal: tooManyUnread };

export class UnreadResponses {
  /** What the responses of a user can need at most. */
  readonly #ofUsers = new FairSemaphore({ maxOfKey: maxUnreadBytesOfUser, ...waiting });
  /** What all responses need so far. */
  readonly #total = new FairSemaphore({ max: maxUnreadBytes, ...waiting });

  /**
   * Waits until the user can have a response that needs that much memory at most. Take what it needs before each read
   * with `growTo`, which also waits, and return what the complete response does not need with `reduceTo`. The rest is
   * released when the response closes. Both waits throw `overloaded` if they take too long.
   */
  async reserve(user: Identity, response: ServerResponse, maxBytes: number) {
    const key = userKey(user);
    let [ofUser, total] = [maxBytes, 0];
    await this.#ofUsers.acquire(key, maxBytes);
    const reduceTo = (needed: number) => {
      const left = response.destroyed ? 0 : needed;
      this.#ofUsers.release(key, ofUser - left);
      this.#total.release(everyone, total - left);
      [ofUser, total] = [left, left];
    };
    const growTo = async (bytes: number) => {
      const more = bytes - total;
      if (more <= 0) return;
      await this.#total.acquire(everyone, more);
      total += more;
      if (response.destroyed) reduceTo(0);
    };
    if (response.destroyed)
      reduceTo(0); // no `close` would follow
    else response.once('close', () => reduceTo(0));
    return { growTo, reduceTo };
  }

  /** Takes the memory of a text without a wait, or throws `overloaded`. */
  reserveText(user: Identity, response: ServerResponse, text: string): void {
    if (text.length <= maxUncountedChars || response.destroyed) return;
    const key = userKey(user);
    const bytes = Buffer.byteLength(text);
    if (!this.#ofUsers.tryAcquire(key, bytes)) throw tooManyUnread();
    if (!this.#total.tryAcquire(everyone, bytes)) {
      this.#ofUsers.release(key, bytes);
      throw tooManyUnread();
    }
    response.once('close', () => {
      this.#ofUsers.release(key, bytes);
      this.#total.release(everyone, bytes);
    });
  }
}

function tooManyUnread(): Problem {
  return new Problem(
    'overloaded',
    'Too many long responses are unread. Read them first, or request short pages with "limit".',
  );
}
